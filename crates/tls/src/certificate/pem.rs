//! Diagnoses a file that should contain certificates or a key, and names the remedy. Pure.

use x509_parser::der_parser::asn1_rs::{Any, FromDer, Integer, Oid, Sequence};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedContent {
    Certificate,
    Key,
    RevocationList,
}

impl ExpectedContent {
    /// Subcommand of openssl that reads and writes it.
    fn tool(self) -> &'static str {
        match self {
            ExpectedContent::Certificate => "x509",
            ExpectedContent::Key => "pkey",
            ExpectedContent::RevocationList => "crl",
        }
    }
}

/// Returns why `bytes` contain nothing of the kind, what was expected, and the command that converts them, if there is
/// one. `trouble` is the error of the PEM parser, if any.
pub(crate) fn explain_content(
    bytes: &[u8],
    wanted: ExpectedContent,
    trouble: Option<&str>,
) -> String {
    let tool = wanted.tool();
    if bytes.is_empty() {
        return format!("{}: it is empty", nothing(wanted));
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return "it is UTF-16: expected PEM, which is ASCII; save it as plain text".into();
    }
    if is_der(bytes) {
        return if Pkcs12::is(bytes) {
            "it is PKCS #12: expected PEM; convert it: openssl pkcs12 -in FILE -nodes -out FILE.pem"
                .into()
        } else {
            format!(
                "it is DER: expected PEM; convert it: openssl {tool} -inform DER -in FILE -out FILE.pem"
            )
        };
    }
    let labels = labels(bytes);
    if let Some(cut) = labels.iter().find(|label| !is_closed(bytes, label)) {
        return format!(
            "it is cut off: no -----END {cut}----- after -----BEGIN {cut}-----; copy the whole file"
        );
    }
    let has = |label: &str| labels.iter().any(|found| found == label);
    if wanted == ExpectedContent::Key {
        if has("ENCRYPTED PRIVATE KEY") || contains(bytes, b"Proc-Type: 4,ENCRYPTED") {
            return "the key is encrypted: store it without a passphrase: openssl pkey -in FILE -out FILE.key".into();
        }
        if has("OPENSSH PRIVATE KEY") {
            return "it is a key in OpenSSH format: expected PKCS #8, PKCS #1 or SEC 1; convert a copy: ssh-keygen -p -N '' -m PKCS8 -f FILE".into();
        }
        if has("DSA PRIVATE KEY") {
            return format!("cannot use a key of type DSA: {SUPPORTED_KEYS}");
        }
    }
    match (trouble, labels.first()) {
        (Some(trouble), Some(_)) => format!(
            "its PEM cannot be read: {trouble}; expected {}",
            form(wanted)
        ),
        (_, Some(label)) => format!(
            "it holds {}: expected {}",
            readable(label, wanted),
            form(wanted)
        ),
        (_, None) => nothing(wanted).into(),
    }
}

/// Error for a byte order mark: the parser would skip the line, and take a chain's second certificate for the first.
pub(crate) fn explain_byte_order_mark(bytes: &[u8]) -> Option<&'static str> {
    bytes.starts_with("\u{feff}".as_bytes()).then_some(
        "a byte order mark (BOM) is before its first line: save the file as UTF-8 without BOM, or remove it: sed -i '1s/^\\xEF\\xBB\\xBF//' FILE",
    )
}

/// Supported keys, and the command that generates one.
const SUPPORTED_KEYS: &str = "supported are RSA of 2048 to 8192 bits (rsaEncryption), ECDSA on P-256, P-384 and P-521, and Ed25519; create another key and a certificate for it: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out FILE.key";

/// Error for an unusable private key in DER of any of its three formats: its kind and size, and the supported ones.
pub(crate) fn explain_key(der: &[u8], trouble: &str) -> String {
    match kind(der) {
        Some(kind) => format!("cannot use a key of type {kind} ({trouble}): {SUPPORTED_KEYS}"),
        None => format!("the key cannot be used ({trouble}): {SUPPORTED_KEYS}"),
    }
}

/// Error if the X.509 version of a certificate is unsupported.
pub(crate) fn explain_version(version: u32) -> Option<String> {
    // Encoded from 0 (RFC 5280 4.1.2.1).
    (version != 2).then(|| {
        format!(
            "the certificate is of X.509 version {}, which has no host names and is not supported: expected version 3, such as the output of openssl req -x509 -addext subjectAltName=DNS:NAME",
            version + 1
        )
    })
}

fn nothing(wanted: ExpectedContent) -> &'static str {
    match wanted {
        ExpectedContent::Certificate => "it contains no certificate (-----BEGIN CERTIFICATE-----)",
        ExpectedContent::Key => "it contains no private key (-----BEGIN PRIVATE KEY-----)",
        ExpectedContent::RevocationList => {
            "it contains no revocation list (-----BEGIN X509 CRL-----)"
        }
    }
}

fn form(wanted: ExpectedContent) -> &'static str {
    match wanted {
        ExpectedContent::Certificate => "PEM with -----BEGIN CERTIFICATE-----",
        ExpectedContent::Key => "PEM with -----BEGIN PRIVATE KEY-----",
        ExpectedContent::RevocationList => "PEM with -----BEGIN X509 CRL-----",
    }
}

fn readable(label: &str, wanted: ExpectedContent) -> String {
    match label {
        "CERTIFICATE" if wanted == ExpectedContent::Key => "a certificate and no key".into(),
        "CERTIFICATE" => "a certificate".into(),
        "X509 CRL" => "a revocation list".into(),
        "PUBLIC KEY" | "RSA PUBLIC KEY" => "a public key".into(),
        "CERTIFICATE REQUEST" | "NEW CERTIFICATE REQUEST" => {
            "a request for a certificate, which an authority has to sign".into()
        }
        label if label.ends_with("PRIVATE KEY") => "a private key".into(),
        label => format!("a {label}"),
    }
}

/// The first PEM labels of a file (RFC 7468 2).
fn labels(bytes: &[u8]) -> Vec<String> {
    const LABELS_MAX: usize = 8;
    const LABEL_BYTES_MAX: usize = 64;
    let text = String::from_utf8_lossy(bytes);
    let begin = |line: &str| {
        let label = line
            .trim()
            .strip_prefix("-----BEGIN ")?
            .strip_suffix("-----")?;
        (label.len() <= LABEL_BYTES_MAX)
            .then(|| label.replace(|letter: char| letter.is_control(), " "))
    };
    text.lines().filter_map(begin).take(LABELS_MAX).collect()
}

fn is_closed(bytes: &[u8], label: &str) -> bool {
    contains(bytes, format!("-----END {label}-----").as_bytes())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Whether `bytes` are a DER sequence; certificates and keys have more than 127 bytes, and no text starts like that.
pub(crate) fn is_der(bytes: &[u8]) -> bool {
    matches!(bytes, [0x30, 0x80..=0x84, ..])
        || (bytes.first() == Some(&0x30)
            && Sequence::from_der(bytes).is_ok_and(|(rest, _)| rest.is_empty()))
}

/// PKCS #12 (RFC 7292 4): a sequence that starts with version 3 and another sequence.
struct Pkcs12;

impl Pkcs12 {
    fn is(bytes: &[u8]) -> bool {
        let Ok((_, outer)) = Sequence::from_der(bytes) else {
            return false;
        };
        let Ok((rest, version)) = Integer::from_der(&outer.content) else {
            return false;
        };
        version.as_u32() == Ok(3) && Sequence::from_der(rest).is_ok()
    }
}

/// Kind and size of a private key: PKCS #8 (RFC 5958 2), PKCS #1 (RFC 8017 A.1.2) or SEC 1 (RFC 5915 3).
fn kind(der: &[u8]) -> Option<String> {
    let (_, outer) = Sequence::from_der(der).ok()?;
    let (rest, _version) = Integer::from_der(&outer.content).ok()?;
    let (behind, second) = Any::from_der(rest).ok()?;
    match second.tag().0 {
        // PKCS #1: the modulus.
        2 => rsa(&outer.content),
        // SEC 1: the key, then its curve in [0].
        4 => {
            let (_, parameters) = Any::from_der(behind).ok()?;
            let (_, curve) = Oid::from_der(parameters.data).ok()?;
            Some(elliptic(&curve))
        }
        // PKCS #8: the algorithm with its parameters, then the key in an octet string.
        16 => {
            let (parameters, algorithm) = Oid::from_der(second.data).ok()?;
            let (_, key) = Any::from_der(behind).ok()?;
            match algorithm.to_id_string().as_str() {
                "1.2.840.113549.1.1.1" => {
                    let (_, inner) = Sequence::from_der(key.data).ok()?;
                    rsa(&inner.content)
                }
                // A key for PSS signatures only (RFC 4055 1.2).
                "1.2.840.113549.1.1.10" => Some("RSA-PSS (id-RSASSA-PSS)".into()),
                "1.2.840.10045.2.1" => match Oid::from_der(parameters) {
                    Ok((_, curve)) => Some(elliptic(&curve)),
                    Err(_) => {
                        Some("ECDSA with parameters of its own instead of a named curve".into())
                    }
                },
                "1.2.840.10040.4.1" => Some("DSA".into()),
                "1.3.101.110" => Some("X25519, which cannot sign".into()),
                "1.3.101.111" => Some("X448, which cannot sign".into()),
                "1.3.101.112" => Some("Ed25519".into()),
                "1.3.101.113" => Some("Ed448".into()),
                other => Some(format!("with the identifier {other}")),
            }
        }
        _ => None,
    }
}

/// Size of an RSAPrivateKey, which starts with a version and the modulus.
fn rsa(content: &[u8]) -> Option<String> {
    let (rest, _version) = Integer::from_der(content).ok()?;
    let (_, modulus) = Integer::from_der(rest).ok()?;
    let bytes: &[u8] = modulus.as_ref();
    let first = bytes.iter().position(|byte| *byte != 0)?;
    let bits = (bytes.len() - first) * 8 - bytes[first].leading_zeros() as usize;
    Some(format!("RSA with {bits} bits"))
}

fn elliptic(curve: &Oid<'_>) -> String {
    let curve = curve.to_id_string();
    let name = match curve.as_str() {
        "1.2.840.10045.3.1.7" => "P-256",
        "1.3.132.0.34" => "P-384",
        "1.3.132.0.35" => "P-521",
        "1.3.132.0.33" => "P-224",
        "1.2.840.10045.3.1.1" => "P-192",
        "1.3.132.0.10" => "secp256k1",
        "1.3.36.3.3.2.8.1.1.7" => "brainpoolP256r1",
        "1.3.36.3.3.2.8.1.1.11" => "brainpoolP384r1",
        "1.3.36.3.3.2.8.1.1.13" => "brainpoolP512r1",
        other => other,
    };
    format!("ECDSA on {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Runs openssl with these arguments, and returns its output file.
    fn openssl(words: &str) -> Vec<u8> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("out");
        let words: Vec<&str> = words.split(' ').collect();
        // Some subcommands require a number as the last argument.
        let (tool, words) = words.split_first().expect("a tool");
        let mut command = Command::new("openssl");
        let made = command
            .arg(tool)
            .arg("-out")
            .arg(&path)
            .args(words)
            .output();
        let made = made.unwrap_or_else(|error| panic!("openssl: {error}"));
        assert!(made.status.success(), "{words:?}: {made:?}");
        std::fs::read(path).expect("what it made")
    }

    #[test]
    fn unsupported_key_error_has_type_and_size() {
        for (words, expected) in [
            (
                "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -outform DER",
                "RSA with 1024 bits",
            ),
            ("genrsa -traditional 1024", "RSA with 1024 bits"),
            (
                "genpkey -algorithm RSA-PSS -pkeyopt rsa_keygen_bits:2048 -outform DER",
                "RSA-PSS (id-RSASSA-PSS) (x)",
            ),
            (
                "ecparam -name secp256k1 -genkey -noout",
                "ECDSA on secp256k1",
            ),
            (
                "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-224 -outform DER",
                "ECDSA on P-224",
            ),
            ("genpkey -algorithm ED448 -outform DER", "Ed448"),
            ("genpkey -algorithm X25519 -outform DER", "X25519"),
        ] {
            let made = openssl(words);
            let der = match rustls::pki_types::PrivateKeyDer::from_pem_slice(&made) {
                Ok(key) => key.secret_der().to_vec(),
                Err(_) => made,
            };
            let said = explain_key(&der, "x");
            let kind = format!("cannot use a key of type {expected}");
            assert!(
                said.starts_with(&kind) && said.contains("supported are RSA of 2048"),
                "{words}: {said}"
            );
        }
        assert!(
            explain_key(b"\x30\x00", "why")
                .starts_with("the key cannot be used (why): supported are")
        );
    }

    use rustls::pki_types::pem::PemObject;

    #[test]
    fn invalid_key_file_errors_explain_cause() {
        let der = openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -outform DER");
        let ed = openssl("genpkey -algorithm ED25519 -outform DER");
        let pem = openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256");
        let cut = &pem[..pem.len() / 2];
        let locked = openssl(
            "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -aes128 -pass pass:abcd",
        );
        for (bytes, part) in [
            (&der[..], "it is DER: expected PEM; convert it: openssl pkey -inform DER"),
            (&ed[..], "it is DER: "),
            (cut, "it is cut off: no -----END PRIVATE KEY-----"),
            (&locked[..], "the key is encrypted"),
            (b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\nAAAA\n-----END RSA PRIVATE KEY-----\n", "the key is encrypted"),
            (b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n", "ssh-keygen -p"),
            (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "it holds a certificate and no key"),
            (b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "it holds a public key"),
            (b"", "it contains no private key (-----BEGIN PRIVATE KEY-----): it is empty"),
            (b"hello", "it contains no private key"),
            (b"\xff\xfe-\0", "it is UTF-16"),
        ] {
            let said = explain_content(bytes, ExpectedContent::Key, None);
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = explain_content(&pem, ExpectedContent::Key, Some("bad base64"));
        assert!(said.contains("cannot be read: bad base64"), "{said}");
    }

    #[test]
    fn invalid_certificate_file_errors_explain_cause() {
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=a -keyout /dev/null -outform DER";
        let der = openssl(words);
        for (bytes, part) in [
            (
                &der[..],
                "it is DER: expected PEM; convert it: openssl x509 -inform DER",
            ),
            (b"-----BEGIN CERTIFICATE-----\nAAAA\n", "it is cut off"),
            (
                b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
                "it holds a private key",
            ),
            (
                b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
                "an authority has to sign",
            ),
            (b"hello", "it contains no certificate"),
        ] {
            let said = explain_content(bytes, ExpectedContent::Certificate, None);
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(explain_version(2), None);
        assert!(explain_version(0).is_some_and(|said| said.contains("X.509 version 1")));
    }
}
