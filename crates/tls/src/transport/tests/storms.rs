//! Peers that send records which cost time without progress, and peers that do not read the replies.

use super::alerts::{pair_of, say};
use super::*;
use crate::limits::{IDLE_RECORDS_MAX, KEY_UPDATES_MAX};
use crate::record::Content;

const KEY_UPDATE: (Content, &[u8]) = (Content::Handshake, &[24, 0, 0, 1, 0]);
const HELLO_REQUEST: (Content, &[u8]) = (Content::Handshake, &[0, 0, 0, 0]);
const DATA: (Content, &[u8]) = (Content::Data, b"x");
const NOTHING: (Content, &[u8]) = (Content::Data, b"");
const CANCELED: (Content, &[u8]) = (Content::Alert, &[1, 90]);

const REFUSED: Result<usize, Error> = Err(Error::new(Op::Recv, Kind::Alert(10)));

/// KeyUpdate requests, each followed by a byte of data.
const STORM: usize = 2_000;

/// More buffers than a connection normally holds, and far fewer than there are requests.
const BUFFERS_MAX: usize = 64;

/// More bytes than any network buffers for a peer that does not read.
const RESPONSE_BYTES: usize = 32 << 20;

/// Requests new keys again and again and reads nothing, until `is_endured`.
async fn storm(from: Transport, is_endured: Rc<Cell<bool>>) {
    for _ in 0..STORM {
        let asked = {
            let session = &mut from.tls.as_ref().unwrap().borrow_mut().session;
            session.ask_for_new_keys(from.core())
        };
        from.stream.queue(asked);
        send(&from, b"x").await.unwrap();
    }
    while !is_endured.get() {
        from.core().yield_now().await;
    }
    from.reset_when_dropped();
}

/// Receives all of it, while the peer does not read a response.
async fn endure(to: Rc<Transport>) {
    let core = to.core().clone();
    let mut input = Input::default();
    let mut received = 0;
    // io_uring lends some buffers to the kernel.
    let lent = core.pool().in_use();
    while received < STORM {
        received += to.recv(&mut input).await.unwrap();
        input.consume(input.bytes().len());
        let held = core.pool().in_use().saturating_sub(lent);
        assert!(held <= BUFFERS_MAX, "{held} buffers after {received} bytes");
    }
    assert_eq!(received, STORM);
}

async fn weather(site: Site, from_client: bool) {
    let (server, client) = site.pair(Profile::Modern).await;
    let (from, to) = match from_client {
        true => (client, server),
        false => (server, client),
    };
    let (to, is_endured) = (Rc::new(to), Rc::new(Cell::new(false)));
    site.core.spawn(storm(from, Rc::clone(&is_endured)));
    let responding = Rc::clone(&to);
    site.core.spawn(async move {
        let sent = send(&responding, &bytes(RESPONSE_BYTES)).await;
        assert!(sent.is_err(), "nobody has read it");
    });
    while !to.stream.has_unsent() {
        site.core.yield_now().await;
    }
    endure(to).await;
    is_endured.set(true);
}

#[test]
fn client_key_update_flood_gets_one_reply() {
    on_every_driver(Simulation::with_seed, |site| weather(site, true));
}

#[test]
fn server_key_update_flood_gets_one_reply() {
    on_every_driver(Simulation::with_seed, |site| weather(site, false));
}

#[test]
fn key_update_replies_precede_data() {
    on_every_driver(calm, |site| async move {
        let (server, client) = site.pair(Profile::Modern).await;
        for _ in 0..KEY_UPDATES_MAX {
            let session = &mut client.tls.as_ref().unwrap().borrow_mut().session;
            client.stream.queue(session.ask_for_new_keys(&site.core));
        }
        send(&client, b"x").await.unwrap();
        let mut input = Input::default();
        assert_eq!(server.recv(&mut input).await, Ok(1));
        send(&server, b"y").await.unwrap();
        assert_eq!(client.recv(&mut Input::default()).await, Ok(1));
        let tls = client.tls.as_ref().unwrap().borrow();
        assert!(!tls.session.owes_reply(), "an answer is no question");
    });
}

/// A record without data: the TLS version, whether the server sends it, the record, and the number allowed in a row.
type Idle = (Version, bool, (Content, &'static [u8]), u32);

fn idle() -> [Idle; 7] {
    [
        (Version::Tls13, false, KEY_UPDATE, KEY_UPDATES_MAX),
        (Version::Tls13, true, KEY_UPDATE, KEY_UPDATES_MAX),
        (Version::Tls13, false, NOTHING, IDLE_RECORDS_MAX),
        (Version::Tls13, true, CANCELED, IDLE_RECORDS_MAX),
        (Version::Tls12, false, NOTHING, IDLE_RECORDS_MAX),
        (Version::Tls12, false, CANCELED, IDLE_RECORDS_MAX),
        (Version::Tls12, true, HELLO_REQUEST, IDLE_RECORDS_MAX),
    ]
}

fn idle_records(end: &Transport) -> u32 {
    end.tls.as_ref().unwrap().borrow().session.idle_records()
}

/// Sends a message `count` times; switches keys after each KeyUpdate.
async fn repeat(end: &Transport, what: (Content, &[u8]), count: u32) {
    for _ in 0..count {
        say(end, &[what]).await;
        if what == KEY_UPDATE {
            let session = &mut end.tls.as_ref().unwrap().borrow_mut().session;
            session.take_new_keys();
        }
    }
}

#[test]
fn application_data_resets_empty_record_count() {
    on_every_driver(calm, |site| async move {
        for (version, from_server, what, count_max) in idle() {
            let (server, client) = pair_of(&site, version).await;
            let (to, from) = match from_server {
                true => (client, server),
                false => (server, client),
            };
            // The server's tickets count, too.
            send(&from, b"x").await.unwrap();
            assert_eq!(to.recv(&mut Input::default()).await, Ok(1));
            for _ in 0..2 {
                repeat(&from, what, count_max).await;
                say(&from, &[DATA]).await;
                assert_eq!(to.recv(&mut Input::default()).await, Ok(1), "{what:?}");
                repeat(&from, what, count_max).await;
                while idle_records(&to) < count_max {
                    assert!(!to.is_spent(), "{what:?}");
                    site.core.yield_now().await;
                }
                send(&to, b"z").await.unwrap();
                assert_eq!(from.recv(&mut Input::default()).await, Ok(1));
            }
            repeat(&from, what, count_max + 1).await;
            assert_eq!(to.recv(&mut Input::default()).await, REFUSED, "{what:?}");
        }
    });
}

#[test]
fn idle_client_gets_tickets_without_buffer() {
    on_every_driver(Simulation::with_seed, |site| async move {
        let (acceptor, connector) = (acceptor(Profile::Intermediate), connector());
        let (server, client) = site.shake(&acceptor, &connector).await;
        let (server, client) = (patient(server.unwrap()), patient(client.unwrap()));
        site.core.spawn(async move {
            assert_eq!(server.recv(&mut Input::default()).await, Ok(0));
        });
        let deadline = site.core.now_exact() + PATIENCE;
        loop {
            assert!(!client.is_spent(), "tickets spend nothing");
            let (server, _other) = site.shake(&acceptor, &connector).await;
            if server.unwrap().info().unwrap().is_resumed {
                break;
            }
            assert!(site.core.now_exact() < deadline, "no ticket has come");
        }
        client.shutdown().await.unwrap();
    });
    for seed in seeds(SEEDS) {
        let core = Core::simulated(Simulation::with_seed(seed));
        run("simulated", core, &|site: Site| async move {
            let (server, client) = site.pair(Profile::Modern).await;
            for end in [server, client] {
                site.core.spawn(async move {
                    end.set_deadline(Some(end.core().now_exact() + Duration::from_secs(1)));
                    let received = end.recv(&mut Input::default()).await;
                    assert_eq!(received, Err(Error::new(Op::Recv, Kind::TimedOut)));
                    // No buffer is held, even while the other end is still waiting.
                    assert_eq!(end.core().pool().in_use(), 0);
                    end.reset_when_dropped();
                });
            }
        });
    }
}
