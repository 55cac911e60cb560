//! Data before a record that violates the protocol: it is delivered, and the error is reported afterwards.

use super::alerts::pair_of;
use super::*;
use crate::record::Content;

/// Invalid bytes after the data, and the expected alert.
#[derive(Clone, Copy, Debug)]
enum Bad {
    Bytes(&'static [u8], u8),
    /// More KeyUpdates than allowed.
    KeyUpdates,
}

const BAD: &[(Version, Bad)] = &[
    // An unencrypted alert, a record with random content, and bytes that are not a record.
    (
        Version::Tls13,
        Bad::Bytes(b"\x15\x03\x03\x00\x02\x02\x50", 10),
    ),
    (
        Version::Tls13,
        Bad::Bytes(b"\x17\x03\x03\x00\x18zzzzzzzzzzzzzzzzzzzzzzzz", 20),
    ),
    (
        Version::Tls13,
        Bad::Bytes(b"HTTP/1.1 408 Request Timeout\r\n\r\n", 10),
    ),
    (Version::Tls13, Bad::KeyUpdates),
    (
        Version::Tls12,
        Bad::Bytes(b"\x15\x03\x03\x00\x02\x02\x50", 20),
    ),
    (
        Version::Tls12,
        Bad::Bytes(b"\x17\x03\x03\x00\x18zzzzzzzzzzzzzzzzzzzzzzzz", 20),
    ),
    (
        Version::Tls12,
        Bad::Bytes(b"HTTP/1.1 408 Request Timeout\r\n\r\n", 10),
    ),
];

/// Sends `data` and the invalid bytes together.
async fn send_both(from: &Transport, data: &[u8], bad: Bad) {
    {
        let session = &mut from.tls.as_ref().unwrap().borrow_mut().session;
        let core = from.core();
        from.stream.queue(session.say(Content::Data, data, core));
        match bad {
            Bad::Bytes(bytes, _) => from.stream.queue(Rc::<[u8]>::from(bytes)),
            Bad::KeyUpdates => {
                for _ in 0..=crate::limits::KEY_UPDATES_MAX {
                    from.stream.queue(session.ask_for_new_keys(core));
                }
            }
        }
    }
    from.stream.flush().await.unwrap();
}

#[test]
fn data_before_invalid_record_is_delivered() {
    on_every_driver(calm, |site| async move {
        for &(version, bad) in BAD {
            for to_server in [true, false] {
                let (server, client) = pair_of(&site, version).await;
                let (to, from) = match to_server {
                    true => (server, client),
                    false => (client, server),
                };
                send_both(&from, b"all of it", bad).await;
                let mut input = Input::default();
                let mut received = 0;
                while received < 9 {
                    let count = to.recv(&mut input).await;
                    received +=
                        count.unwrap_or_else(|error| panic!("{version:?} {bad:?}: {error}"));
                }
                assert_eq!(input.bytes(), b"all of it");
                let alert = match bad {
                    Bad::Bytes(_, alert) => alert,
                    Bad::KeyUpdates => 10,
                };
                let expected = Err(Error::new(Op::Recv, Kind::Alert(alert)));
                assert_eq!(to.recv(&mut input).await, expected, "{version:?} {bad:?}");
                // The error is permanent.
                assert_eq!(to.recv(&mut input).await, expected, "{version:?} {bad:?}");
            }
        }
    });
}
