//! Compatibility with rustls: each side opens the records of the other.

use std::sync::Arc;

use ::aws_lc_rs::aead::NONCE_LEN;
use proptest::prelude::*;
use rustls::client::UnbufferedClientConnection;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedCipherSuite};

use super::*;

/// A client of rustls, and the keys of its server.
struct Pair {
    client: UnbufferedClientConnection,
    sealer: Sealer,
    opener: Opener,
}

/// All TLS 1.3 suites, and the TLS 1.2 suites for an ECDSA key, as generated certificates have.
fn suites() -> impl Iterator<Item = SupportedCipherSuite> {
    let suites = aws_lc_rs::ALL_CIPHER_SUITES.iter().copied();
    suites.filter(|suite| !format!("{:?}", suite.suite()).contains("ECDHE_RSA"))
}

/// Advances one end until it needs data from the other; returns whether its handshake is done.
macro_rules! advance {
    ($connection:expr, $incoming:expr, $outgoing:expr) => {
        loop {
            let UnbufferedStatus { discard, state } =
                $connection.process_tls_records(&mut $incoming);
            let done = match state.unwrap() {
                ConnectionState::EncodeTlsData(mut message) => {
                    let mut record = vec![0; 20_000];
                    let count = message.encode(&mut record).unwrap();
                    $outgoing.extend_from_slice(&record[..count]);
                    None
                }
                ConnectionState::TransmitTlsData(message) => {
                    message.done();
                    None
                }
                ConnectionState::BlockedHandshake => Some(false),
                ConnectionState::WriteTraffic(_) => Some(true),
                other => panic!("{other:?} within a handshake"),
            };
            $incoming.drain(..discard);
            if let Some(done) = done {
                break done;
            }
        }
    };
}

/// Does a handshake in memory.
fn pair(suite: SupportedCipherSuite) -> Pair {
    let (client_config, server_config) = configs(suite);
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = UnbufferedClientConnection::new(client_config, name).unwrap();
    let mut server = UnbufferedServerConnection::new(server_config).unwrap();
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    loop {
        let client_is_done = advance!(client, to_client, to_server);
        let server_is_done = advance!(server, to_server, to_client);
        if client_is_done && server_is_done && to_client.is_empty() {
            break;
        }
    }
    let version = server.protocol_version().unwrap();
    let (secrets, _) = server.dangerous_into_kernel_connection().unwrap();
    Pair {
        client,
        sealer: Sealer::new(version, secrets.tx.0, &secrets.tx.1),
        opener: Opener::new(version, secrets.rx.0, &secrets.rx.1),
    }
}

fn configs(suite: SupportedCipherSuite) -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let provider = Arc::new(CryptoProvider {
        cipher_suites: vec![suite],
        ..aws_lc_rs::default_provider()
    });
    let versions = &[suite.version()];
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    server.enable_secret_extraction = true;
    (Arc::new(client), Arc::new(server))
}

impl Pair {
    fn client_seals(&mut self, data: &[u8]) -> Vec<u8> {
        let status = self.client.process_tls_records(&mut []);
        let Ok(ConnectionState::WriteTraffic(mut traffic)) = status.state else {
            panic!("the handshake is done");
        };
        let mut record = vec![0; data.len() + 100];
        let count = traffic.encrypt(data, &mut record).unwrap();
        record.truncate(count);
        record
    }

    fn client_opens(&mut self, mut record: Vec<u8>) -> Vec<u8> {
        let status = self.client.process_tls_records(&mut record);
        let Ok(ConnectionState::ReadTraffic(mut traffic)) = status.state else {
            panic!("{:?} is no data", status.state);
        };
        traffic.next_record().unwrap().unwrap().payload.to_vec()
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 31 % 251) as u8).collect()
}

#[test]
fn records_interoperate_with_rustls() {
    for suite in suites() {
        let mut pair = pair(suite);
        for count in [1, 2, 150, 16_383, PLAINTEXT_MAX] {
            let data = bytes(count);
            let mut record = pair.client_seals(&data);
            assert_eq!(length(&record), Ok(Some(record.len())), "{suite:?}");
            let opened = pair.opener.open(&mut record).unwrap();
            assert_eq!(opened.content, Content::Data);
            assert!(record[opened.data] == data, "{count} bytes by {suite:?}");

            let mut sealed = vec![0; count + 100];
            let record_bytes = pair.sealer.seal(Content::Data, &data, &mut sealed);
            sealed.truncate(record_bytes);
            assert!(
                pair.client_opens(sealed) == data,
                "{count} bytes by {suite:?}"
            );

            let prefix = pair.sealer.prefix();
            let mut sealed = vec![0; count + 100];
            sealed[prefix..prefix + count].copy_from_slice(&data);
            let record_bytes = pair.sealer.seal_in_place(Content::Data, count, &mut sealed);
            sealed.truncate(record_bytes);
            assert!(
                pair.client_opens(sealed) == data,
                "{count} bytes in place by {suite:?}"
            );
        }
    }
}

#[test]
fn flipped_bits_are_detected() {
    for suite in suites() {
        let mut pair = pair(suite);
        let record = pair.client_seals(b"abc");
        for bit in 0..record.len() * 8 {
            if matches!(bit / 8, 3 | 4) {
                // The length, which determines the end of the record.
                continue;
            }
            let mut changed = record.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let sequence = pair.opener.0.sequence;
            assert!(
                pair.opener.open(&mut changed).is_err(),
                "bit {bit} by {suite:?}"
            );
            assert_eq!(pair.opener.0.sequence, sequence);
        }
        assert!(pair.opener.open(&mut record.clone()).is_ok());
        assert!(
            pair.opener.open(&mut record.clone()).is_err(),
            "a record is good once"
        );
    }
}

#[test]
fn padding_is_removed() {
    let mut record = [23, 3, 3, 0, 9, b'a', b'b', 21, 0, 0];
    assert_eq!(inner(&record, 5), Ok((Content::Alert, 7)));
    record[5..].fill(0);
    assert_eq!(inner(&record, 5), Err(Alert::UNEXPECTED_MESSAGE));
    record[5] = 20;
    assert_eq!(inner(&record, 5), Err(Alert::UNEXPECTED_MESSAGE));
}

/// Both ends of one direction of TLS 1.3.
fn direction() -> (Sealer, Opener) {
    let secrets = || ConnectionTrafficSecrets::Aes256Gcm {
        key: AeadKey::from([7; 32]),
        iv: Iv::from([9; NONCE_LEN]),
    };
    let version = ProtocolVersion::TLSv1_3;
    (
        Sealer::new(version, 0, &secrets()),
        Opener::new(version, 0, &secrets()),
    )
}

/// TLS 1.3 record with any inner plaintext: data, content type and padding.
fn seal_inner(sealer: &mut Sealer, inner: &[u8]) -> Vec<u8> {
    let length = (inner.len() + TAG_BYTES) as u16;
    let [high, low] = length.to_be_bytes();
    let header = [23, 3, 3, high, low];
    let mut body = inner.to_vec();
    let nonce = Nonce::assume_unique_for_key(sealer.0.nonce());
    let aad = Aad::from(header);
    sealer
        .0
        .with_cipher(|key| key.seal_in_place_append_tag(nonce, aad, &mut body))
        .unwrap();
    [&header[..], &body].concat()
}

#[test]
fn inner_plaintext_length_is_bounded() {
    for (data, padding, expected) in [
        (PLAINTEXT_MAX, 0, Ok(PLAINTEXT_MAX)),
        (PLAINTEXT_MAX, 1, Err(Alert::RECORD_OVERFLOW)),
        (PLAINTEXT_MAX + 1, 0, Err(Alert::RECORD_OVERFLOW)),
        (100, PLAINTEXT_MAX - 100, Ok(100)),
        (100, PLAINTEXT_MAX - 99, Err(Alert::RECORD_OVERFLOW)),
        (0, PLAINTEXT_MAX, Ok(0)),
        (0, PLAINTEXT_MAX + 200, Err(Alert::RECORD_OVERFLOW)),
    ] {
        let (mut sealer, mut opener) = direction();
        let inner = [&bytes(data)[..], &[23], &vec![0; padding]].concat();
        let mut record = seal_inner(&mut sealer, &inner);
        let opened = opener.open(&mut record).map(|opened| opened.data.len());
        assert_eq!(opened, expected, "{data} bytes and {padding} of padding");
    }
}

#[test]
fn unexpected_record_type_is_rejected_at_first_byte() {
    let (_, opener) = direction();
    for (header, expected) in [
        (&[20][..], Err(Alert::UNEXPECTED_MESSAGE)),
        (&[21, 3, 3, 0, 2], Err(Alert::UNEXPECTED_MESSAGE)),
        (&[22, 3, 3, 0, 5], Err(Alert::UNEXPECTED_MESSAGE)),
        (&[24, 3, 3, 255, 255], Err(Alert::UNEXPECTED_MESSAGE)),
        (&[23], Ok(None)),
        (&[23, 3, 3, 255, 255], Err(Alert::RECORD_OVERFLOW)),
        (&[23, 9, 9, 0, 1], Ok(Some(6))),
    ] {
        assert_eq!(opener.length(header), expected, "{header:?}");
    }
    for (mut record, alert) in [
        (vec![20, 3, 3, 0, 1, 1], Alert::UNEXPECTED_MESSAGE),
        (vec![23, 3, 3, 0, 1, 1], Alert::BAD_RECORD_MAC),
    ] {
        assert_eq!(direction().1.open(&mut record), Err(alert));
    }
}

#[test]
fn header_determines_record_length() {
    for (header, expected) in [
        (&[23, 3, 3, 0][..], Ok(None)),
        (&[23, 3, 3, 0, 0], Ok(Some(5))),
        (&[23, 3, 1, 65, 0, 9], Ok(Some(5 + CIPHERTEXT_MAX))),
        (&[20, 9, 9, 0, 1], Ok(Some(6))),
        (&[23, 3, 3, 65, 1], Err(Alert::RECORD_OVERFLOW)),
        (b"HTTP/", Err(Alert::UNEXPECTED_MESSAGE)),
    ] {
        assert_eq!(length(header), expected, "{header:?}");
    }
}

proptest! {
    #[test]
    fn invalid_records_fail_without_panic(garbage in proptest::collection::vec(any::<u8>(), 0..64)) {
        thread_local! {
            static PAIRS: std::cell::RefCell<Vec<Pair>> = std::cell::RefCell::new(suites().map(pair).collect());
        }
        PAIRS.with_borrow_mut(|pairs| {
            for pair in pairs {
                let mut record = garbage.clone();
                if length(&record) == Ok(Some(record.len())) {
                    prop_assert!(pair.opener.open(&mut record).is_err());
                }
                // Opened regardless of its header.
                if record.len() >= HEADER_BYTES {
                    prop_assert!(pair.opener.open(&mut record).is_err());
                }
            }
            Ok(())
        })?;
    }
}
