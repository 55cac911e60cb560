//! Both ends are this crate, on every driver.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::{
    Address, BUFFER_BYTES, Claim, Core, Error, Input, Io, Kind, Listener, Op, Root, Simulation,
    Stream,
};

use crate::Acceptor;
use crate::Authorities;
use crate::Cipher;
use crate::ClientSetup;
use crate::Clients;
use crate::Connector;
use crate::Group;
use crate::HandshakeError;
use crate::Identity;
use crate::Misdirected;
use crate::Profile;
use crate::ServerSetup;
use crate::Transport;
use crate::Verify;
use crate::Version;

mod alerts;
mod refusals;
#[path = "../../../../tests/seeds.rs"]
mod seeds;
mod storms;
mod strangers;
mod trust;

use seeds::seeds;

const SEEDS: u64 = 16;

/// Longer than any test takes; simulated cores do not wait in real time.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone)]
struct Site {
    core: Core,
    listener: Rc<Listener>,
    address: Address,
}

/// Simulated network that accepts all sent bytes at once, as kernels do with small amounts.
fn calm(seed: u64) -> Simulation {
    Simulation {
        short: 0,
        spurious_again: 0,
        ..Simulation::with_seed(seed)
    }
}

/// Runs `test` on epoll, on io_uring if available, and on networks created by `simulation`.
fn on_every_driver<F, T>(simulation: fn(u64) -> Simulation, test: F)
where
    F: Fn(Site) -> T,
    T: Future<Output = ()> + 'static,
{
    for io in [Io::Epoll, Io::IoUring] {
        match onrush_engine::choose(io) {
            Ok(_) => run(&format!("{io:?}"), Core::new(0, io).unwrap(), &test),
            Err(reason) => eprintln!("{io:?} is skipped: {reason}"),
        }
    }
    for seed in seeds(SEEDS) {
        let core = Core::simulated(simulation(seed));
        run(&format!("simulated, seed {seed}"), core, &test);
    }
}

fn run<F, T>(name: &str, core: Core, test: &F)
where
    F: Fn(Site) -> T,
    T: Future<Output = ()> + 'static,
{
    eprintln!("{name}");
    let claim = Claim::new(&Address::Tcp(([127, 0, 0, 1], 0).into())).unwrap();
    let site = Site {
        listener: Rc::new(Listener::new(&core, &claim).unwrap()),
        address: claim.address().clone(),
        core: core.clone(),
    };
    let finished = Rc::new(Cell::new(false));
    let (seen, body) = (Rc::clone(&finished), test(site));
    core.spawn(async move {
        body.await;
        seen.set(true);
    });
    assert_eq!(core.run(), 0, "all tasks came to their end");
    assert!(finished.get(), "the test came to its end");
}

impl Site {
    /// Does a handshake; returns the server's end and the client's.
    async fn shake(
        &self,
        acceptor: &Arc<Acceptor>,
        connector: &Arc<Connector>,
    ) -> (
        Result<Transport, HandshakeError>,
        Result<Transport, HandshakeError>,
    ) {
        let deadline = self.core.now_exact() + PATIENCE;
        let connected: Rc<Cell<Option<Result<Transport, HandshakeError>>>> = Rc::default();
        let (site, connector, result) =
            (self.clone(), Arc::clone(connector), Rc::clone(&connected));
        self.core.spawn(async move {
            let stream = Stream::connect(&site.core, &site.address, None)
                .await
                .unwrap();
            result.set(Some(
                Transport::connect(stream, &connector, "localhost", deadline).await,
            ));
        });
        let stream = self.listener.accept().await.unwrap();
        let accepted = Transport::accept(stream, Input::default(), acceptor, deadline).await;
        loop {
            match connected.take() {
                Some(connected) => return (accepted, connected),
                None => self.core.yield_now().await,
            }
        }
    }

    /// Returns both ends of a connection, the server's first.
    async fn pair(&self, profile: Profile) -> (Transport, Transport) {
        let (server, client) = self.shake(&acceptor(profile), &connector()).await;
        (patient(server.unwrap()), patient(client.unwrap()))
    }
}

fn patient(transport: Transport) -> Transport {
    transport.set_deadline(Some(transport.core().now_exact() + PATIENCE));
    transport
}

fn setup() -> ServerSetup {
    ServerSetup {
        certificates: vec![Identity::SelfSigned],
        profile: Profile::Intermediate,
        clients: Clients::Ignored,
        misdirected: Misdirected::Refuse,
        named_clients: Vec::new(),
        protocols: vec!["http/1.1"],
    }
}

fn acceptor(profile: Profile) -> Arc<Acceptor> {
    let setup = ServerSetup { profile, ..setup() };
    Arc::new(Acceptor::new(setup).ok().unwrap().0)
}

fn connector() -> Arc<Connector> {
    connector_of(ClientSetup {
        verify: Verify::Nothing,
        ..ClientSetup::default()
    })
}

fn connector_of(setup: ClientSetup) -> Arc<Connector> {
    Arc::new(Connector::new(setup).ok().unwrap().0)
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 31 % 251) as u8).collect()
}

async fn send(transport: &Transport, bytes: &[u8]) -> Result<(), Error> {
    for piece in bytes.chunks(BUFFER_BYTES) {
        let mut buffer = transport.core().buffer()?;
        assert!(buffer.put(piece));
        transport.queue(buffer);
        transport.flush().await?;
    }
    Ok(())
}

async fn receive_all(transport: &Transport) -> Result<Vec<u8>, Error> {
    let mut input = Input::default();
    let mut all = Vec::new();
    while transport.recv(&mut input).await? > 0 {
        all.extend_from_slice(input.bytes());
        input.consume(input.bytes().len());
    }
    Ok(all)
}

#[test]
fn sent_data_is_echoed_unchanged() {
    on_every_driver(Simulation::with_seed, |site| async move {
        for count in [1, 150, 16_384, 16_385, BUFFER_BYTES, 300_000] {
            let (server, client) = site.pair(Profile::Intermediate).await;
            site.core.spawn(async move {
                let mut input = Input::default();
                while server.recv(&mut input).await.unwrap() > 0 {
                    server.queue(input.take().unwrap());
                    server.flush().await.unwrap();
                }
                server.shutdown().await.unwrap();
            });
            let client = Rc::new(client);
            let sender = Rc::clone(&client);
            site.core.spawn(async move {
                send(&sender, &bytes(count)).await.unwrap();
                sender.shutdown().await.unwrap();
            });
            let received = receive_all(&client).await.unwrap();
            assert!(received == bytes(count), "{count} bytes came back changed");
        }
    });
}

#[test]
fn queued_bytes_are_received_completely() {
    on_every_driver(Simulation::with_seed, |site| async move {
        let (server, client) = site.pair(Profile::Intermediate).await;
        let wanted = bytes(2 * BUFFER_BYTES + 1);
        server.queue_bytes(&wanted);
        server.queue_bytes(b"");
        site.core.spawn(async move {
            server.flush().await.unwrap();
            server.shutdown().await.unwrap();
        });
        let received = receive_all(&client).await.unwrap();
        assert!(received == wanted, "the bytes came changed");
    });
}

#[test]
fn queued_parts_fill_records() {
    on_every_driver(Simulation::with_seed, |site| async move {
        let (server, client) = site.pair(Profile::Intermediate).await;
        let parts = |sizes: &[usize]| {
            for &size in sizes {
                server.queue(Rc::<[u8]>::from(bytes(size)));
            }
            let mut records = Vec::new();
            let mut tls = server.tls.as_ref().unwrap().borrow_mut();
            while tls.session.is_sealing() {
                let sealed = tls
                    .session
                    .seal_some(&site.core, |record| records.push(record.len()));
                sealed.unwrap();
            }
            records
        };
        let overhead = 22;
        assert_eq!(parts(&[]), []);
        assert_eq!(parts(&[130]), [130 + overhead]);
        assert_eq!(parts(&[130, 20, 5]), [155 + overhead]);
        assert_eq!(
            parts(&[130, 40_000, 1]),
            [
                16_384 + overhead,
                16_384 + overhead,
                40_131 - 2 * 16_384 + overhead
            ]
        );
        assert_eq!(parts(&[16_384, 16_384]), [16_384 + overhead; 2]);
        // Sealed records were never sent, so close_notify would not fit their sequence.
        server.reset_when_dropped();
        drop(server);
        drop(client);
    });
}

/// Sends the server's tickets and reads them at the client: unread bytes would turn its close into a reset.
async fn has_greeted(server: &Transport, client: &Transport) {
    let waits = poll_fn(|_| std::task::Poll::Ready(server.poll_recv(&mut Input::default())));
    assert!(waits.await.is_pending(), "nothing was sent");
    while !client.stream.is_spent() {
        server.core().yield_now().await;
    }
    assert!(!client.is_spent());
}

#[test]
fn eof_without_close_notify_is_truncation() {
    on_every_driver(calm, |site| async move {
        for (is_silent, expected) in [
            (false, Ok(0)),
            (true, Err(Error::new(Op::Recv, Kind::Truncated))),
        ] {
            let (server, client) = site.pair(Profile::Intermediate).await;
            has_greeted(&server, &client).await;
            send(&client, b"all there is").await.unwrap();
            client.tls.as_ref().unwrap().borrow_mut().is_resetting = is_silent;
            drop(client);
            let mut input = Input::default();
            while input.bytes().len() < 12 {
                assert!(matches!(server.recv(&mut input).await, Ok(1..)));
            }
            assert_eq!(input.bytes(), b"all there is");
            assert_eq!(server.recv(&mut input).await, expected);
            assert!(server.is_spent());
        }
    });
}

#[test]
fn garbage_causes_alert() {
    on_every_driver(calm, |site| async move {
        for (garbage, alert) in [
            (&[23, 3, 3, 0, 30][..], 20),
            (&[22, 3, 3, 0, 30], 10),
            (&[23, 3, 3, 255, 255], 22),
            (b"GET / HTTP/1.1\r\n", 10),
            (&[20, 3, 3, 0, 1, 1], 10),
            (&[23, 3, 3, 0, 1, 1], 20),
        ] {
            let (server, client) = site.pair(Profile::Intermediate).await;
            let mut bytes = garbage.to_vec();
            if bytes.len() != 6 {
                bytes.resize(35, 7);
            }
            client.stream.queue(Rc::<[u8]>::from(bytes));
            client.stream.flush().await.unwrap();
            let expected = Err(Error::new(Op::Recv, Kind::Alert(alert)));
            assert_eq!(server.recv(&mut Input::default()).await, expected);
            assert_eq!(server.recv(&mut Input::default()).await, expected);
            assert_eq!(client.recv(&mut Input::default()).await, expected);
        }
    });
}

#[test]
fn either_side_updates_keys() {
    on_every_driver(Simulation::with_seed, |site| async move {
        let (server, client) = site.pair(Profile::Modern).await;
        for round in 0..4u8 {
            for end in [&server, &client] {
                let session = &mut end.tls.as_ref().unwrap().borrow_mut().session;
                if round % 2 == 0 {
                    end.stream.queue(session.update_keys(&site.core).unwrap());
                } else {
                    session.wear_out();
                }
            }
            for (from, to) in [(&server, &client), (&client, &server)] {
                send(from, &[round; 100]).await.unwrap();
                let mut input = Input::default();
                while input.bytes().len() < 100 {
                    assert!(matches!(to.recv(&mut input).await, Ok(1..)));
                }
                assert_eq!(input.bytes(), [round; 100]);
            }
        }
    });
}

#[test]
fn requested_key_update_is_sent_immediately() {
    on_every_driver(Simulation::with_seed, |site| async move {
        let (server, client) = site.pair(Profile::Modern).await;
        let record = client
            .tls
            .as_ref()
            .unwrap()
            .borrow_mut()
            .session
            .ask_for_new_keys(&site.core);
        client.stream.queue(record);
        send(&client, b"x").await.unwrap();
        assert_eq!(server.recv(&mut Input::default()).await, Ok(1));
        send(&server, b"y").await.unwrap();
        assert_eq!(client.recv(&mut Input::default()).await, Ok(1));
    });
}

#[test]
fn tickets_resume_next_connection() {
    on_every_driver(Simulation::with_seed, |site| async move {
        for profile in [Profile::Intermediate, Profile::Modern] {
            let acceptor = acceptor(profile);
            let connector = connector();
            for is_resumed in [false, true] {
                let (server, client) = site.shake(&acceptor, &connector).await;
                let (server, client) = (patient(server.unwrap()), patient(client.unwrap()));
                send(&server, b"answer").await.unwrap();
                let mut input = Input::default();
                while input.bytes().len() < 6 {
                    assert!(matches!(client.recv(&mut input).await, Ok(1..)));
                }
                assert!(!client.is_spent());
                let (ours, theirs) = (server.info().unwrap(), client.info().unwrap());
                assert_eq!(
                    (ours.is_resumed, theirs.is_resumed),
                    (is_resumed, is_resumed)
                );
                assert_eq!(
                    (ours.version, theirs.version),
                    (Version::Tls13, Version::Tls13)
                );
                assert_eq!(ours.cipher, theirs.cipher);
                assert_eq!(ours.name.as_deref(), Some("localhost"));
                assert_eq!(ours.protocol.as_deref(), Some(&b"http/1.1"[..]));
                drop(server);
                while !client.is_spent() {
                    site.core.yield_now().await;
                }
            }
        }
    });
}

#[test]
fn unsolicited_data_prevents_connection_reuse() {
    on_every_driver(Simulation::with_seed, |site| async move {
        let (server, client) = site.pair(Profile::Intermediate).await;
        send(&server, b"unasked").await.unwrap();
        while !client.is_spent() {
            site.core.yield_now().await;
        }
        let mut input = Input::default();
        while input.bytes().len() < 7 {
            assert!(matches!(client.recv(&mut input).await, Ok(1..)));
        }
        assert_eq!(input.bytes(), b"unasked");
    });
}

#[test]
fn silent_client_times_out() {
    on_every_driver(Simulation::with_seed, |site| async move {
        let client = Stream::connect(&site.core, &site.address, None)
            .await
            .unwrap();
        let stream = site.listener.accept().await.unwrap();
        let deadline = site.core.now_exact() + Duration::from_millis(5);
        let refused = Transport::accept(
            stream,
            Input::default(),
            &acceptor(Profile::Modern),
            deadline,
        )
        .await;
        let said = refused.err().unwrap().to_string();
        assert_eq!(said, "the TLS handshake took too long");
        drop(client);
    });
}

#[test]
fn plain_http_gets_readable_response() {
    on_every_driver(Simulation::with_seed, |site| async move {
        let client = Transport::plain(
            Stream::connect(&site.core, &site.address, None)
                .await
                .unwrap(),
        );
        send(&client, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        let (core, listener) = (site.core.clone(), Rc::clone(&site.listener));
        site.core.spawn(async move {
            let stream = listener.accept().await.unwrap();
            let deadline = core.now_exact() + PATIENCE;
            let refused = Transport::accept(
                stream,
                Input::default(),
                &acceptor(Profile::Modern),
                deadline,
            )
            .await;
            assert!(matches!(refused, Err(HandshakeError::PlainHttp)));
        });
        let response = String::from_utf8(receive_all(&client).await.unwrap()).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 400 Bad Request\r\n"),
            "{response}"
        );
        assert!(
            head.contains(&format!("Content-Length: {}", body.len())),
            "{response}"
        );
    });
}

#[test]
fn untrusted_certificate_fails_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let authority = directory.path().join("authority.pem");
    std::fs::write(&authority, other.cert.pem()).unwrap();
    on_every_driver(Simulation::with_seed, move |site| {
        let verify = Verify::File(authority.clone());
        async move {
            let connector = connector_of(ClientSetup {
                verify,
                ..ClientSetup::default()
            });
            let (server, client) = site.shake(&acceptor(Profile::Modern), &connector).await;
            let said = client.err().unwrap().to_string();
            assert!(said.contains("untrusted authority"), "{said}");
            let said = server.err().unwrap().to_string();
            assert!(said.contains("does not trust the authority"), "{said}");
        }
    });
}

#[test]
fn required_client_certificate_is_enforced() {
    let directory = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["client.example".to_owned()]).unwrap();
    let (certificate, key) = (
        directory.path().join("c.pem"),
        directory.path().join("c.key"),
    );
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    on_every_driver(Simulation::with_seed, move |site| {
        let (certificate, key) = (certificate.clone(), key.clone());
        async move {
            let of = |clients: Clients| {
                let (acceptor, _) = Acceptor::new(ServerSetup { clients, ..setup() })
                    .ok()
                    .unwrap();
                Arc::new(acceptor)
            };
            let showing = connector_of(ClientSetup {
                verify: Verify::Nothing,
                certificate: Some((certificate.clone(), key)),
                ..ClientSetup::default()
            });
            let subject = Some("CN=rcgen self signed cert");
            for (clients, connector, expected) in [
                (Clients::Ignored, &showing, None),
                (
                    Clients::Optional(Authorities::new(certificate.clone())),
                    &connector(),
                    None,
                ),
                (
                    Clients::Optional(Authorities::new(certificate.clone())),
                    &showing,
                    subject,
                ),
                (
                    Clients::Required(Authorities::new(certificate.clone())),
                    &showing,
                    subject,
                ),
            ] {
                let (server, _client) = site.shake(&of(clients), connector).await;
                assert_eq!(server.unwrap().info().unwrap().client.as_deref(), expected);
            }
            let required = of(Clients::Required(Authorities::new(certificate)));
            let (server, client) = site.shake(&required, &connector()).await;
            assert_eq!(
                server.err().unwrap().to_string(),
                "the client sent no certificate"
            );
            // A TLS 1.3 client learns that only when it waits for a response.
            let refused = patient(client.unwrap()).recv(&mut Input::default()).await;
            assert_eq!(refused, Err(Error::new(Op::Recv, Kind::Alert(116))));
        }
    });
}

#[test]
fn only_configured_suites_are_offered() {
    let everything = |setup: ClientSetup| ClientSetup {
        verify: Verify::Nothing,
        ..setup
    };
    on_every_driver(Simulation::with_seed, move |site| async move {
        let acceptor = acceptor(Profile::Intermediate);
        // A self-signed certificate has an elliptic curve key.
        for (versions, ciphers, version, cipher) in [
            (vec![Version::Tls12], vec![], Version::Tls12, None),
            (vec![Version::Tls13], vec![], Version::Tls13, None),
            (
                vec![],
                vec![Cipher::ChaCha20, Cipher::EcdsaAes128],
                Version::Tls13,
                Some(Cipher::ChaCha20),
            ),
            (
                vec![],
                vec![Cipher::RsaAes256, Cipher::EcdsaAes128],
                Version::Tls12,
                Some(Cipher::EcdsaAes128),
            ),
        ] {
            let connector = connector_of(everything(ClientSetup {
                versions,
                ciphers,
                ..ClientSetup::default()
            }));
            let (server, client) = site.shake(&acceptor, &connector).await;
            for end in [server, client] {
                let end = end.unwrap();
                let info = end.info().unwrap();
                assert_eq!(info.version, version);
                let expected = cipher.map_or(info.cipher, Cipher::name);
                assert_eq!(info.cipher, expected);
            }
        }
        let only_rsa = connector_of(everything(ClientSetup {
            ciphers: vec![Cipher::RsaAes256],
            ..ClientSetup::default()
        }));
        let (server, client) = site.shake(&acceptor, &only_rsa).await;
        assert!(server.is_err() && client.is_err());
    });
}

#[test]
fn empty_offer_is_rejected() {
    for (setup, part) in [
        (
            ClientSetup {
                name: Some("a b".to_owned()),
                ..ClientSetup::default()
            },
            "is not a valid TLS server name",
        ),
        (
            ClientSetup {
                versions: vec![Version::Tls13],
                ciphers: vec![Cipher::RsaAes128],
                ..ClientSetup::default()
            },
            "expected some of TLS_AES_256_GCM_SHA384, ",
        ),
        (
            ClientSetup {
                versions: vec![Version::Tls12],
                groups: vec![Group::X25519MlKem768],
                ..ClientSetup::default()
            },
            "is a group of TLS 1.3",
        ),
    ] {
        let wrong = Connector::new(setup).err().unwrap();
        assert!(wrong[0].to_string().contains(part), "{wrong:?}");
    }
}

#[test]
fn certificate_larger_than_buffer_is_received() {
    let directory = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..1500)
        .map(|number| format!("name-{number}.some.example"))
        .collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let (certificate, key) = (
        directory.path().join("c.pem"),
        directory.path().join("c.key"),
    );
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    assert!(made.cert.der().len() > 2 * BUFFER_BYTES);
    let identity = Identity::Files {
        certificate: certificate.clone(),
        key,
        staple: None,
    };
    on_every_driver(Simulation::with_seed, move |site| {
        let certificates = vec![identity.clone()];
        let verify = Verify::File(certificate.clone());
        async move {
            let (acceptor, _) = Acceptor::new(ServerSetup {
                certificates,
                ..setup()
            })
            .ok()
            .unwrap();
            let name = Some("name-7.some.example".to_owned());
            let connector = connector_of(ClientSetup {
                verify,
                name,
                ..ClientSetup::default()
            });
            let (server, client) = site.shake(&Arc::new(acceptor), &connector).await;
            assert_eq!(
                server.unwrap().info().unwrap().name.as_deref(),
                Some("name-7.some.example")
            );
            assert!(client.is_ok());
        }
    });
}

#[test]
fn file_is_sent_after_queued_data() {
    let directory = tempfile::tempdir().unwrap();
    for size in [1, 100, 16_384, 200_000] {
        std::fs::write(directory.path().join(size.to_string()), bytes(size)).unwrap();
    }
    on_every_driver(Simulation::with_seed, move |site| {
        let root = Root::open(directory.path()).unwrap();
        async move {
            for size in [1, 100, 16_384, 200_000] {
                let file = root.open_beneath(size.to_string().as_bytes()).unwrap();
                let (server, client) = site.pair(Profile::Intermediate).await;
                site.core.spawn(async move {
                    server.queue(&b"head"[..]);
                    let mut offset = 0;
                    while offset < size as u64 {
                        offset += server
                            .send_file(&file, offset, size as u64 - offset)
                            .await
                            .unwrap();
                    }
                    let beyond = server.send_file(&file, offset, 1).await;
                    assert_eq!(beyond, Err(Error::new(Op::SendFile, Kind::FileTooShort)));
                    server.shutdown().await.unwrap();
                });
                let received = receive_all(&client).await.unwrap();
                assert!(
                    received == [b"head", &bytes(size)[..]].concat(),
                    "a file of {size} bytes"
                );
            }
        }
    });
}

#[test]
fn idle_connection_holds_no_buffer() {
    for seed in seeds(SEEDS) {
        let core = Core::simulated(Simulation::with_seed(seed));
        run("simulated", core, &|site: Site| async move {
            let (server, client) = site.pair(Profile::Intermediate).await;
            send(&server, &bytes(50_000)).await.unwrap();
            let mut input = Input::default();
            let mut count = 0;
            while count < 50_000 {
                count += client.recv(&mut input).await.unwrap();
                input.consume(input.bytes().len());
            }
            let core = site.core.clone();
            site.core.spawn(async move {
                let mut input = Input::default();
                assert_eq!(client.recv(&mut input).await, Ok(0));
            });
            // The task has run and is waiting.
            core.yield_now().await;
            assert_eq!(core.pool().in_use(), 0);
            server.shutdown().await.unwrap();
        });
    }
}

#[test]
fn reset_reaches_peer() {
    on_every_driver(Simulation::with_seed, |site| async move {
        let (server, client) = site.pair(Profile::Intermediate).await;
        server.reset_when_dropped();
        drop(server);
        let received = client.recv(&mut Input::default()).await;
        assert!(
            received.is_err_and(|error| error.is_reset()),
            "{received:?}"
        );
    });
}
