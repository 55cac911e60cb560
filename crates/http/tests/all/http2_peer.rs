//! Our HTTP/2 connections against the crate `h2`, as client and server, over a small in-memory pipe.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use onrush_http::http2::code::Code;
use onrush_http::http2::{LocalSettings, Role};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

use crate::support::http2::EchoPeer;

const REQUESTS: usize = 200;

/// Capacity of the pipe in bytes, in each direction.
const PIPE: usize = 777;

/// Content of request `number`; some is empty, some larger than a window.
fn content(number: usize) -> Vec<u8> {
    let length = match number % 10 {
        0 => 0,
        9 => 100_000,
        part => part * 997,
    };
    (0..length).map(|at| (at + number) as u8).collect()
}

fn run(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().expect("a thread of our own is enough");
    tokio::task::LocalSet::new().block_on(&runtime, work);
}

/// Transfers bytes between our end and the pipe until `is_done` or the peer has closed.
async fn carry(
    program: &mut EchoPeer,
    pipe: &mut DuplexStream,
    mut is_done: impl FnMut(&mut EchoPeer) -> bool,
) {
    let mut pipe = Pin::new(pipe);
    let (mut unsent, mut room) = (Vec::new(), [0; 500]);
    poll_fn(|context| {
        loop {
            program.pump(20_000);
            unsent.extend(program.take_output());
            if unsent.is_empty() && is_done(program) && program.out.is_empty() {
                return Poll::Ready(());
            }
            unsent.extend(program.take_output());
            let written = match unsent.is_empty() {
                true => Poll::Pending,
                false => {
                    let written = pipe.as_mut().poll_write(context, &unsent);
                    written.map(|bytes| bytes.expect("the peer is there"))
                }
            };
            if let Poll::Ready(written) = written {
                unsent.drain(..written);
            }
            let mut read = ReadBuf::new(&mut room);
            let outcome = pipe.as_mut().poll_read(context, &mut read);
            match (outcome, read.filled()) {
                (Poll::Ready(_), []) => return Poll::Ready(()),
                (Poll::Ready(_), bytes) => program.hear(bytes),
                (Poll::Pending, _) if written.is_pending() => return Poll::Pending,
                (Poll::Pending, _) => {}
            }
            assert_eq!(program.error, None);
        }
    })
    .await;
}

/// Reads a whole body and releases it to the window.
async fn read(body: &mut h2::RecvStream) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.expect("the body is whole");
        all.extend_from_slice(&piece);
        let released = body.flow_control().release_capacity(piece.len());
        released.expect("it has come");
    }
    all
}

async fn write(mut to: h2::SendStream<Bytes>, content: Vec<u8>) {
    let mut content = Bytes::from(content);
    while !content.is_empty() {
        to.reserve_capacity(content.len());
        let room = poll_fn(|context| to.poll_capacity(context)).await;
        let room = room.expect("the stream is open").expect("it has room");
        let piece = content.split_to(room.min(content.len()));
        to.send_data(piece, false).expect("there is room");
    }
    to.send_data(Bytes::new(), true).expect("it needs no room");
}

#[test]
fn server_interoperates_with_h2_client() {
    run(async {
        let (theirs, mut ours) = duplex(PIPE);
        let local = LocalSettings {
            stream_window: 10_000,
            concurrent_streams_max: 20,
            ..LocalSettings::DEFAULT
        };
        let server = tokio::task::spawn_local(async move {
            let mut server = EchoPeer::new(Role::Server, local);
            carry(&mut server, &mut ours, |_| false).await;
            server
        });
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(5_000)
            .initial_max_send_streams(20);
        let (client, connection) = builder.handshake(theirs).await.expect("we speak HTTP/2");
        let connection = tokio::task::spawn_local(connection);
        let mut requests = Vec::new();
        for number in 0..REQUESTS {
            let client = client.clone();
            requests.push(tokio::task::spawn_local(async move {
                let request = Request::post("http://example.com/").header("x-number", number);
                let request = request.body(()).expect("it is a request");
                let mut client = client.ready().await.expect("there is a stream at last");
                let content = content(number);
                let (response, body) = client
                    .send_request(request, content.is_empty())
                    .expect("the connection is open");
                if !content.is_empty() {
                    write(body, content.clone()).await;
                }
                let response: Response<_> = response.await.expect("it responds");
                assert_eq!(response.status(), StatusCode::OK);
                let mut body = response.into_body();
                assert!(read(&mut body).await == content, "{number}");
                let trailers = body.trailers().await.expect("the response is whole");
                trailers.is_some_and(|trailers| trailers.contains_key("checksum"))
            }));
        }
        let mut with_trailers = 0;
        for request in requests {
            with_trailers += usize::from(request.await.expect("no assertion failed"));
        }
        assert!(with_trailers > REQUESTS / 5, "every third, if not empty");
        drop(client);
        connection
            .await
            .expect("it ran")
            .expect("it ends without an error");
        let server = server.await.expect("no assertion failed");
        assert_eq!(server.connection.open_streams(), 0);
        assert_eq!(server.exchanges.len(), REQUESTS);
    });
}

#[test]
fn client_interoperates_with_h2_server() {
    run(async {
        let (theirs, mut ours) = duplex(PIPE);
        tokio::task::spawn_local(async move {
            let mut builder = h2::server::Builder::new();
            builder
                .initial_window_size(5_000)
                .max_concurrent_streams(100);
            let mut connection = builder
                .handshake::<_, Bytes>(theirs)
                .await
                .expect("we speak it");
            while let Some(request) = connection.accept().await {
                let (request, mut respond) = request.expect("it is a request");
                tokio::task::spawn_local(async move {
                    assert_eq!(request.uri(), "http://example.com/");
                    let content = read(&mut request.into_body()).await;
                    let response = Response::builder().header("x-length", content.len());
                    let response = response.body(()).expect("it is a response");
                    let body = respond.send_response(response, false);
                    write(body.expect("the stream is open"), content).await;
                });
            }
        });
        let local = LocalSettings {
            stream_window: 10_000,
            ..LocalSettings::DEFAULT
        };
        let mut client = EchoPeer::new(Role::Client, local);
        let mut ids = Vec::new();
        carry(&mut client, &mut ours, |client| {
            while ids.len() < REQUESTS
                && let Ok(id) = client.request(content(ids.len()))
            {
                ids.push(id);
            }
            ids.len() == REQUESTS && client.connection.open_streams() == 0 && client.out.is_empty()
        })
        .await;
        assert_eq!(client.error, None);
        for (number, id) in ids.iter().enumerate() {
            let exchange = &client.exchanges[id];
            assert!(exchange.is_whole);
            assert!(exchange.received == content(number), "{number}");
            let status = (":status".to_owned(), b"200".to_vec());
            assert!(exchange.fields.contains(&status));
        }
    });
}

#[test]
fn h2_client_receives_goaway() {
    run(async {
        let (theirs, mut ours) = duplex(PIPE);
        let server = tokio::task::spawn_local(async move {
            let mut server = EchoPeer::new(Role::Server, LocalSettings::DEFAULT);
            let mut said = false;
            carry(&mut server, &mut ours, |server| {
                if !said && server.exchanges.values().any(|exchange| exchange.is_whole) {
                    said = true;
                    server.connection.go_away(Code::NO_ERROR, &mut server.out);
                }
                said && server.out.is_empty() && server.connection.open_streams() == 0
            })
            .await;
        });
        let (mut client, connection) = h2::client::handshake(theirs).await.expect("it is HTTP/2");
        let connection = tokio::task::spawn_local(connection);
        let request = || {
            Request::get("http://example.com/")
                .body(())
                .expect("it is one")
        };
        let (response, _) = client.send_request(request(), true).expect("it is open");
        assert_eq!(
            response.await.expect("it responds").status(),
            StatusCode::OK
        );
        server.await.expect("no assertion failed");
        connection
            .await
            .expect("it ran")
            .expect("going away is no error");
        assert!(
            client.ready().await.is_err(),
            "no stream is opened any more"
        );
    });
}
