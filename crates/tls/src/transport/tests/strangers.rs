//! Foreign clients: hellos that no library sends, early data, and records that break a handshake.

use std::io::{Read, Write};
use std::sync::Mutex;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA384, KeyType, Prk};
use rustls::pki_types::ServerName;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, KeyLog, ServerConfig, ServerConnection,
};

use super::*;

const UNEXPECTED_MESSAGE: u8 = 10;
const HANDSHAKE_FAILURE: u8 = 40;
const PROTOCOL_VERSION: u8 = 70;
const MISSING_EXTENSION: u8 = 109;

const SUPPORTED_GROUPS: (u16, &[u8]) = (10, &[0, 4, 0, 29, 0, 23]);
const SIGNATURE_ALGORITHMS: (u16, &[u8]) = (13, &[0, 4, 4, 3, 8, 4]);
const SUPPORTED_VERSIONS: (u16, &[u8]) = (43, &[2, 3, 4]);

/// ClientHello in a record of its own (RFC 8446 4.1.2).
fn hello(version: [u8; 2], ciphers: &[u8], extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = version.to_vec();
    body.extend([7; 32]);
    body.push(0);
    body.extend((ciphers.len() as u16).to_be_bytes());
    body.extend(ciphers);
    body.extend([1, 0]);
    let mut all = Vec::new();
    for (kind, content) in extensions {
        all.extend(kind.to_be_bytes());
        all.extend((content.len() as u16).to_be_bytes());
        all.extend(*content);
    }
    body.extend((all.len() as u16).to_be_bytes());
    body.extend(all);
    let mut record = vec![22, 3, 1];
    record.extend((body.len() as u16 + 4).to_be_bytes());
    record.extend([1, 0]);
    record.extend((body.len() as u16).to_be_bytes());
    record.extend(body);
    record
}

/// Connects a raw stream to a server; also returns the result of the server's handshake.
async fn stranger(site: &Site, acceptor: Arc<Acceptor>) -> (Stream, Outcome) {
    let outcome = Outcome::default();
    let (core, listener, seen) = (
        site.core.clone(),
        Rc::clone(&site.listener),
        outcome.clone(),
    );
    site.core.spawn(async move {
        let stream = listener.accept().await.unwrap();
        let deadline = core.now_exact() + PATIENCE;
        let accepted = Transport::accept(stream, Input::default(), &acceptor, deadline).await;
        seen.0.set(Some(accepted));
    });
    let stream = Stream::connect(&site.core, &site.address, None)
        .await
        .unwrap();
    stream.set_deadline(Some(site.core.now_exact() + PATIENCE));
    (stream, outcome)
}

#[derive(Clone, Default)]
struct Outcome(Rc<Cell<Option<Result<Transport, HandshakeError>>>>);

impl Outcome {
    async fn get(&self, core: &Core) -> Result<Transport, HandshakeError> {
        loop {
            match self.0.take() {
                Some(outcome) => return outcome,
                None => core.yield_now().await,
            }
        }
    }
}

async fn send_raw(stream: &Stream, bytes: &[u8]) {
    stream.queue(Rc::<[u8]>::from(bytes));
    stream.flush().await.unwrap();
}

#[test]
fn incomplete_hello_gets_rfc_alert() {
    let ecdhe = &[0xc0, 0x2b];
    on_every_driver(Simulation::with_seed, move |site| async move {
        for (hello, alert, said) in [
            // RFC 5246 E.1.
            (
                hello([3, 1], ecdhe, &[SUPPORTED_GROUPS]),
                PROTOCOL_VERSION,
                "no TLS version in common",
            ),
            (
                hello([3, 2], ecdhe, &[SUPPORTED_GROUPS]),
                PROTOCOL_VERSION,
                "no TLS version in common",
            ),
            // RFC 8446 9.2.
            (
                hello(
                    [3, 3],
                    &[0x13, 2],
                    &[SUPPORTED_GROUPS, SIGNATURE_ALGORITHMS, SUPPORTED_VERSIONS],
                ),
                MISSING_EXTENSION,
                "the client offers TLS 1.3 without a key share (the extension key_share)",
            ),
        ] {
            let (stream, outcome) = stranger(&site, acceptor(Profile::Intermediate)).await;
            send_raw(&stream, &hello).await;
            stream.shutdown().await.unwrap();
            let answer = receive_all(&Transport::plain(stream)).await.unwrap();
            assert_eq!(answer, [21, 3, 3, 0, 2, 2, alert]);
            let refused = outcome.get(&site.core).await.err().unwrap();
            assert_eq!(refused.to_string(), said);
        }
    });
}

#[test]
fn tls12_client_without_certificate_gets_handshake_failure() {
    let directory = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["client.example".to_owned()]).unwrap();
    let file = directory.path().join("c.pem");
    std::fs::write(&file, made.cert.pem()).unwrap();
    on_every_driver(Simulation::with_seed, move |site| {
        let clients = Clients::Required(Authorities::new(file.clone()));
        async move {
            let setup = ServerSetup { clients, ..setup() };
            let acceptor = Arc::new(Acceptor::new(setup).ok().unwrap().0);
            let client = super::alerts::client_of(Version::Tls12);
            let (server, client) = site.shake(&acceptor, &client).await;
            let said = server.err().unwrap().to_string();
            assert_eq!(said, "the client sent no certificate");
            let told = match client.err().unwrap() {
                HandshakeError::Tls(rustls::Error::AlertReceived(alert)) => u8::from(alert),
                other => panic!("{other}"),
            };
            assert_eq!(told, HANDSHAKE_FAILURE);
        }
    });
}

#[test]
fn trailing_dot_of_name_is_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let identity = |name: &str| {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let path = |ending: &str| directory.path().join(format!("{name}.{ending}"));
        std::fs::write(path("pem"), made.cert.pem()).unwrap();
        std::fs::write(path("key"), made.signing_key.serialize_pem()).unwrap();
        Identity::Files {
            certificate: path("pem"),
            key: path("key"),
            staple: None,
        }
    };
    let certificates = vec![identity("first.example"), identity("second.example")];
    on_every_driver(Simulation::with_seed, move |site| {
        let certificates = certificates.clone();
        async move {
            let setup = ServerSetup {
                certificates,
                ..setup()
            };
            let acceptor = Arc::new(Acceptor::new(setup).ok().unwrap().0);
            let (stream, _outcome) = stranger(&site, acceptor).await;
            let name = b"\0\x12\0\0\x0fsecond.example.";
            let extensions = [(0, &name[..]), SUPPORTED_GROUPS, SIGNATURE_ALGORITHMS];
            send_raw(&stream, &hello([3, 3], &[0xc0, 0x2b], &extensions)).await;
            stream.shutdown().await.unwrap();
            // TLS 1.2 sends certificates unencrypted.
            let flight = receive_all(&Transport::plain(stream)).await.unwrap();
            let has = |name: &[u8]| flight.windows(name.len()).any(|window| window == name);
            assert!(has(b"second.example"));
            assert!(!has(b"first.example"));
        }
    });
}

fn client_config() -> ClientConfig {
    let mut config = ClientConfig::clone(&super::alerts::client_of(Version::Tls13).config());
    config.alpn_protocols = Vec::new();
    config
}

fn client(config: &ClientConfig) -> ClientConnection {
    let name = ServerName::try_from("localhost").unwrap();
    ClientConnection::new(Arc::new(config.clone()), name).unwrap()
}

/// Does a handshake in memory, which gives `client` a ticket.
fn shake_in_memory(client: &mut ClientConnection, server: ServerConfig) {
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    for _ in 0..4 {
        let mut flight = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut flight).unwrap();
        }
        server.read_tls(&mut &flight[..]).unwrap();
        server.process_new_packets().unwrap();
        flight.clear();
        while server.wants_write() {
            server.write_tls(&mut flight).unwrap();
        }
        client.read_tls(&mut &flight[..]).unwrap();
        client.process_new_packets().unwrap();
    }
    assert!(!client.is_handshaking());
}

/// Disables stateless tickets: rustls accepts early data only without them.
#[derive(Debug)]
struct NoTickets;

impl ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _plain: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _cipher: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn tickets_do_not_allow_early_data() {
    let mut config = client_config();
    config.enable_early_data = true;
    let ours = ServerConfig::clone(&acceptor(Profile::Modern).config());
    shake_in_memory(&mut client(&config), ours.clone());
    let mut client = client(&config);
    assert!(client.early_data().is_none());
    shake_in_memory(&mut client, ours);
    assert_eq!(
        client.handshake_kind(),
        Some(rustls::HandshakeKind::Resumed)
    );
}

async fn send_all_of(client: &mut ClientConnection, stream: &Stream) {
    let mut flight = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut flight).unwrap();
    }
    for piece in flight.chunks(BUFFER_BYTES) {
        send_raw(stream, piece).await;
    }
}

/// Reads the server's next messages; `false` at the end of the connection.
async fn hear(client: &mut ClientConnection, stream: &Stream) -> Result<bool, rustls::Error> {
    let mut input = Input::default();
    let count = stream.recv(&mut input).await.unwrap();
    let mut rest = input.bytes();
    while !rest.is_empty() {
        client.read_tls(&mut rest).unwrap();
        client.process_new_packets()?;
    }
    Ok(count > 0)
}

#[test]
fn rejected_early_data_is_skipped_within_limit() {
    on_every_driver(Simulation::with_seed, |site| async move {
        for (pieces, is_skipped) in [(1, true), (4, true), (30, true), (40, false)] {
            let mut config = client_config();
            config.enable_early_data = true;
            let mut other = ServerConfig::clone(&acceptor(Profile::Modern).config());
            other.ticketer = Arc::new(NoTickets);
            other.session_storage = ServerSessionMemoryCache::new(8);
            other.max_early_data_size = 1 << 20;
            shake_in_memory(&mut client(&config), other);
            let mut client = client(&config);
            for _ in 0..pieces {
                let piece = [b'e'; 1000];
                client.early_data().unwrap().write_all(&piece).unwrap();
            }
            let (stream, outcome) = stranger(&site, acceptor(Profile::Intermediate)).await;
            send_all_of(&mut client, &stream).await;
            let mut told = Ok(true);
            while client.is_handshaking() && told == Ok(true) {
                told = hear(&mut client, &stream).await;
            }
            if !is_skipped {
                // The client may have read the server's flight before the alert.
                let alert = rustls::Error::AlertReceived(AlertDescription::BadRecordMac);
                assert!(told == Ok(true) || told == Err(alert), "{told:?}");
                drop(stream);
                let said = outcome.get(&site.core).await.err().unwrap().to_string();
                assert!(said.contains("early data"), "{said}");
                continue;
            }
            assert_eq!(told, Ok(true), "{pieces}");
            assert!(!client.is_early_data_accepted());
            client.writer().write_all(b"later").unwrap();
            send_all_of(&mut client, &stream).await;
            let accepted = outcome.get(&site.core).await;
            let server = patient(accepted.unwrap());
            let mut input = Input::default();
            while input.bytes().len() < 5 {
                assert!(server.recv(&mut input).await.unwrap() > 0);
            }
            assert_eq!(input.bytes(), b"later");
            send(&server, b"answer").await.unwrap();
            let mut answer = [0; 6];
            while client.reader().read(&mut answer).is_err() {
                assert!(hear(&mut client, &stream).await.unwrap());
            }
            assert_eq!(&answer, b"answer");
        }
    });
}

/// Keeps the secret that encrypts a client's handshake.
#[derive(Debug, Default)]
struct Secret(Mutex<Vec<u8>>);

impl KeyLog for Secret {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        if label == "CLIENT_HANDSHAKE_TRAFFIC_SECRET" {
            *self.0.lock().unwrap() = secret.to_vec();
        }
    }
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label without a context (RFC 8446 7.1).
fn expand(secret: &[u8], label: &str, bytes: usize) -> Vec<u8> {
    let label = format!("tls13 {label}");
    let info = [&[0, bytes as u8, label.len() as u8], label.as_bytes(), &[0]].concat();
    let mut out = vec![0; bytes];
    let prk = Prk::new_less_safe(HKDF_SHA384, secret);
    let expanded = prk.expand(&[&info], Bytes(bytes)).unwrap().fill(&mut out);
    expanded.unwrap();
    out
}

/// First encrypted record of a client with TLS_AES_256_GCM_SHA384, with any content (RFC 8446 5.2).
fn first_record(secret: &[u8], inner: &[u8]) -> Vec<u8> {
    let key = UnboundKey::new(&AES_256_GCM, &expand(secret, "key", 32)).unwrap();
    let nonce: [u8; 12] = expand(secret, "iv", 12).try_into().unwrap();
    let header = [23, 3, 3, 0, inner.len() as u8 + 16];
    let mut body = inner.to_vec();
    LessSafeKey::new(key)
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(header),
            &mut body,
        )
        .unwrap();
    [&header[..], &body].concat()
}

#[test]
fn unexpected_handshake_record_is_refused() {
    on_every_driver(Simulation::with_seed, |site| async move {
        // Only zeros, an empty alert, data, and an empty data record (RFC 8446 5.4).
        for inner in [&[0; 8][..], &[21], b"data\x17", &[23]] {
            let secret = Arc::new(Secret::default());
            let mut config = client_config();
            config.key_log = Arc::clone(&secret) as Arc<dyn KeyLog>;
            let mut client = client(&config);
            let (stream, outcome) = stranger(&site, acceptor(Profile::Modern)).await;
            send_all_of(&mut client, &stream).await;
            while client.is_handshaking() {
                assert!(hear(&mut client, &stream).await.unwrap());
            }
            let record = first_record(&secret.0.lock().unwrap(), inner);
            send_raw(&stream, &record).await;
            let told = loop {
                match hear(&mut client, &stream).await {
                    Ok(true) => {}
                    Ok(false) => panic!("{inner:?}: nothing was told"),
                    Err(rustls::Error::AlertReceived(alert)) => break u8::from(alert),
                    Err(error) => panic!("{inner:?}: {error}"),
                }
            };
            assert_eq!(told, UNEXPECTED_MESSAGE, "{inner:?}");
            drop(stream);
            assert!(outcome.get(&site.core).await.is_err());
        }
    });
}
