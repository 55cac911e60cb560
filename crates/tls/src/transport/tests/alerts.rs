//! Protocol errors after the handshake, and the alert that both sides get.

use super::*;
use crate::record::Content;

const UNEXPECTED_MESSAGE: u8 = 10;
const ILLEGAL_PARAMETER: u8 = 47;
const DECODE_ERROR: u8 = 50;

/// End that receives the message.
#[derive(Clone, Copy, Debug)]
enum To {
    Server,
    Client,
}

/// Sends one record per message, together.
pub(super) async fn say(end: &Transport, messages: &[(Content, &[u8])]) {
    for (content, message) in messages {
        let session = &mut end.tls.as_ref().unwrap().borrow_mut().session;
        end.stream.queue(session.say(*content, message, end.core()));
    }
    end.stream.flush().await.unwrap();
}

pub(super) fn client_of(version: Version) -> Arc<Connector> {
    connector_of(ClientSetup {
        verify: Verify::Nothing,
        versions: vec![version],
        ..ClientSetup::default()
    })
}

/// Returns both ends of a connection of `version`, the server's first.
pub(super) async fn pair_of(site: &Site, version: Version) -> (Transport, Transport) {
    let (server, client) = site
        .shake(&acceptor(Profile::Intermediate), &client_of(version))
        .await;
    (patient(server.unwrap()), patient(client.unwrap()))
}

/// Messages that are refused, with the version and the alert.
#[rustfmt::skip]
const REFUSED: &[(Version, To, Content, &[u8], u8)] = &[
    // RFC 8446 4.6.3: an invalid value; an invalid length; two in one record, and a byte after one (5.1).
    (Version::Tls13, To::Server, Content::Handshake, &[24, 0, 0, 1, 2], ILLEGAL_PARAMETER),
    (Version::Tls13, To::Client, Content::Handshake, &[24, 0, 0, 1, 255], ILLEGAL_PARAMETER),
    (Version::Tls13, To::Server, Content::Handshake, &[24, 0, 0, 0], DECODE_ERROR),
    (Version::Tls13, To::Server, Content::Handshake, &[24, 0, 0, 2, 0, 0], DECODE_ERROR),
    (Version::Tls13, To::Server, Content::Handshake, &[24, 0, 0, 1, 0, 24, 0, 0, 1, 0], UNEXPECTED_MESSAGE),
    (Version::Tls13, To::Server, Content::Handshake, &[24, 0, 0, 1, 0, 24], UNEXPECTED_MESSAGE),
    // 4.6.1: a ticket sent to a server; an invalid ticket; a ticket that is too long, refused by its header.
    (Version::Tls13, To::Server, Content::Handshake, &[4, 0, 0, 1, 0], UNEXPECTED_MESSAGE),
    (Version::Tls13, To::Client, Content::Handshake, &[4, 0, 0, 1, 0], DECODE_ERROR),
    (Version::Tls13, To::Client, Content::Handshake, &[4, 1, 0, 0], DECODE_ERROR),
    // 4.6.2: a CertificateRequest without post_handshake_auth; 4.1.2: a second hello.
    (Version::Tls13, To::Client, Content::Handshake, &[13, 0, 0, 3, 0, 0, 0], UNEXPECTED_MESSAGE),
    (Version::Tls13, To::Server, Content::Handshake, &[1, 0, 1, 0], UNEXPECTED_MESSAGE),
    (Version::Tls13, To::Client, Content::Handshake, &[0, 0, 0, 0], UNEXPECTED_MESSAGE),
    (Version::Tls13, To::Server, Content::Handshake, &[99, 255, 255, 255], UNEXPECTED_MESSAGE),
    // 5.4: neither may be empty; 5.1: an alert is one message in one record.
    (Version::Tls13, To::Server, Content::Handshake, &[], UNEXPECTED_MESSAGE),
    (Version::Tls13, To::Server, Content::Alert, &[], UNEXPECTED_MESSAGE),
    (Version::Tls13, To::Server, Content::Alert, &[1], DECODE_ERROR),
    (Version::Tls13, To::Server, Content::Alert, &[1, 0, 1, 0], DECODE_ERROR),
    (Version::Tls12, To::Server, Content::Handshake, &[], UNEXPECTED_MESSAGE),
    (Version::Tls12, To::Server, Content::Alert, &[], UNEXPECTED_MESSAGE),
    // RFC 5246 7.4.1.1: a HelloRequest is sent by servers, and has no body; 7.4.1.2: a ClientHello is sent by clients.
    (Version::Tls12, To::Server, Content::Handshake, &[0, 0, 0, 0], UNEXPECTED_MESSAGE),
    (Version::Tls12, To::Client, Content::Handshake, &[0, 0, 0, 1, 0], DECODE_ERROR),
    (Version::Tls12, To::Client, Content::Handshake, &[1, 0, 0, 0], UNEXPECTED_MESSAGE),
    (Version::Tls12, To::Server, Content::Handshake, &[24, 0, 0, 1, 0], UNEXPECTED_MESSAGE),
    (Version::Tls12, To::Client, Content::Handshake, &[4, 0, 0, 1, 0], UNEXPECTED_MESSAGE),
];

#[test]
fn protocol_errors_get_rfc_alert() {
    on_every_driver(calm, |site| async move {
        for &(version, to, content, message, alert) in REFUSED {
            let (server, client) = pair_of(&site, version).await;
            let (to, from) = match to {
                To::Server => (server, client),
                To::Client => (client, server),
            };
            say(&from, &[(content, message)]).await;
            let expected = Err(Error::new(Op::Recv, Kind::Alert(alert)));
            let case = (version, content, message);
            for end in [to, from] {
                let received = end.recv(&mut Input::default()).await;
                assert_eq!(received, expected, "{case:?}");
            }
        }
    });
}

#[test]
fn fatal_alert_ends_connection() {
    on_every_driver(calm, |site| async move {
        for (version, message, ends) in [
            (Version::Tls13, [2, 80], true),
            // TLS 1.3 has no levels.
            (Version::Tls13, [1, 80], true),
            (Version::Tls13, [2, 90], false),
            (Version::Tls12, [2, 90], true),
            (Version::Tls12, [1, 90], false),
            (Version::Tls12, [1, 100], false),
        ] {
            let (server, client) = pair_of(&site, version).await;
            say(&client, &[(Content::Alert, &message)]).await;
            send(&client, b"x").await.unwrap();
            let received = server.recv(&mut Input::default()).await;
            let expected = match ends {
                true => Err(Error::new(Op::Recv, Kind::Alert(message[1]))),
                false => Ok(1),
            };
            assert_eq!(received, expected, "{version:?} {message:?}");
            if ends {
                drop(server);
                let told = client.recv(&mut Input::default()).await;
                assert!(
                    told.is_err_and(|error| !matches!(error.kind, Kind::Alert(_))),
                    "{told:?}"
                );
            }
        }
    });
}

#[test]
fn second_renegotiation_is_fatal() {
    on_every_driver(calm, |site| async move {
        let (server, client) = pair_of(&site, Version::Tls12).await;
        let hello: &[u8] = &[1, 0, 0, 3, 3, 3, 0];
        say(
            &client,
            &[(Content::Handshake, hello), (Content::Data, b"x")],
        )
        .await;
        assert_eq!(server.recv(&mut Input::default()).await, Ok(1));
        let warned = |client: &Transport| {
            let mut tls = client.tls.as_ref().unwrap().borrow_mut();
            // Processes records without data.
            tls.is_spent(&client.stream)
        };
        while !client.stream.is_spent() {
            site.core.yield_now().await;
        }
        assert!(!warned(&client), "a warning ends nothing");
        send(&server, b"y").await.unwrap();
        assert_eq!(client.recv(&mut Input::default()).await, Ok(1));
        say(&client, &[(Content::Handshake, hello)]).await;
        let expected = Err(Error::new(Op::Recv, Kind::Alert(UNEXPECTED_MESSAGE)));
        assert_eq!(server.recv(&mut Input::default()).await, expected);
        assert_eq!(client.recv(&mut Input::default()).await, expected);
    });
}
