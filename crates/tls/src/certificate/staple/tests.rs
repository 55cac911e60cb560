//! OCSP responses that OpenSSL makes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SerialNumber,
};
use rustls::crypto::aws_lc_rs;
use tempfile::TempDir;
use x509_parser::prelude::FromDer as _;

use super::*;
use crate::certificate::names::Names;
use crate::certificate::{self, Identity};
use crate::error::Subject;

/// An authority, and certificates with the serial numbers 7 and 8 in files `7.pem` and `8.pem`.
struct Made {
    directory: TempDir,
}

impl Made {
    fn new() -> Made {
        let directory = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: String| fs::write(directory.path().join(name), text).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Ours");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        write("ca.pem", authority.pem());
        write("ca.key", authority.key().serialize_pem());
        for serial in [7_u64, 8] {
            let mut params = CertificateParams::new(vec!["site.example".to_owned()]).unwrap();
            params.serial_number = Some(SerialNumber::from(serial));
            let key = KeyPair::generate().unwrap();
            write(
                &format!("{serial}.pem"),
                params.signed_by(&key, &authority).unwrap().pem(),
            );
            write(&format!("{serial}.key"), key.serialize_pem());
        }
        Made { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn openssl(&self, words: &str) {
        let mut command = Command::new("openssl");
        command
            .current_dir(self.directory.path())
            .args(words.split(' '));
        let made = command.output().expect("openssl is installed");
        assert!(made.status.success(), "{words}: {made:?}");
    }

    /// A response for the certificate with this serial number, as this line of an index has it.
    fn response(&self, serial: u64, index: &str) -> PathBuf {
        fs::write(self.path("index"), index).unwrap();
        self.openssl(&format!(
            "ocsp -issuer ca.pem -cert {serial}.pem -reqout request"
        ));
        self.openssl("ocsp -index index -CA ca.pem -rsigner ca.pem -rkey ca.key -reqin request -respout response -ndays 5");
        self.path("response")
    }

    /// Reads a file for certificate 7.
    fn read(&self, file: &Path) -> Result<Staple, NoStaple> {
        let chain = certificate::chain(&self.path("7.pem"), Subject::Certificate(0)).unwrap();
        let (_, certificate) = X509Certificate::from_der(&chain[0]).unwrap();
        read(file, &certificate)
    }
}

const GOOD: &str =
    "V\t22000101000000Z\t\t07\tunknown\t/CN=a\nV\t22000101000000Z\t\t08\tunknown\t/CN=b\n";
const REVOKED: &str = "R\t22000101000000Z\t200101000000Z\t07\tunknown\t/CN=a\n";

#[test]
fn good_response_is_sent_until_it_ends() {
    let made = Made::new();
    let file = made.response(7, GOOD);
    let Ok(staple) = made.read(&file) else {
        panic!("the response is good");
    };
    assert_eq!(staple.bytes, fs::read(&file).unwrap());
    let until = staple.until.expect("-ndays gives it an end");
    let identity = Identity::Files {
        certificate: made.path("7.pem"),
        key: made.path("7.key"),
        staple: Some(file),
    };
    let mut warnings = Vec::new();
    let provider = aws_lc_rs::default_provider();
    let loaded = certificate::load(&identity, 0, &provider, &mut warnings).unwrap();
    assert_eq!(warnings, []);
    let names = Names::new(vec![loaded]);
    assert_eq!(names.key(0, until - 1).ocsp, Some(staple.bytes));
    assert_eq!(names.key(0, until).ocsp, None);
}

#[test]
fn useless_response_is_a_warning_and_the_certificate_is_used_without_it() {
    let made = Made::new();
    for (serial, index, why) in [
        (
            8,
            GOOD,
            "is for another certificate, not for the one with serial number 07",
        ),
        (7, REVOKED, "says that the certificate is revoked"),
        (7, "", "says that the certificate is unknown"),
    ] {
        let file = made.response(serial, index);
        let identity = Identity::Files {
            certificate: made.path("7.pem"),
            key: made.path("7.key"),
            staple: Some(file),
        };
        let mut warnings = Vec::new();
        let provider = aws_lc_rs::default_provider();
        let loaded = certificate::load(&identity, 0, &provider, &mut warnings).unwrap();
        assert!(loaded.stapled.is_none());
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].subject, Subject::Staple(0));
        assert!(warnings[0].message.contains(why), "{}", warnings[0]);
    }
    // tryLater (RFC 6960 4.2.1).
    fs::write(made.path("response"), b"\x30\x03\x0a\x01\x03").unwrap();
    let failed = made.read(&made.path("response"));
    assert!(matches!(failed, Err(NoStaple::Useless(why)) if why.contains("response status 3")));
}

#[test]
fn every_cut_of_a_response_and_other_files_are_refused() {
    let made = Made::new();
    let whole = fs::read(made.response(7, GOOD)).unwrap();
    for bytes in 0..whole.len() {
        assert!(Response::parse(&whole[..bytes]).is_none(), "{bytes} bytes");
    }
    for file in ["7.pem", "index", "missing"] {
        assert!(
            matches!(made.read(&made.path(file)), Err(NoStaple::Wrong(_))),
            "{file}"
        );
    }
}
