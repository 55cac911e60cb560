//! Reset codes: they are forwarded to the client and do not count against healthy peers.

use onrush_engine::Input;
use onrush_http::http2::code::Code;
use onrush_http::http2::{Cause, End};

use super::server::{Reaction, Response, serve};
use super::{echo_path, plan};
use crate::observe::record;
use crate::testing::harness::{configured, on_every_driver};
use crate::testing::tests::http2::Http2Client;

#[test]
fn cancelled_stream_does_not_eject_server() {
    on_every_driver(|site| async move {
        let decide = |asked: &super::Asked| match asked.path() {
            "/late" => Reaction::Reset(Code::CANCEL),
            _ => echo_path(asked),
        };
        let (one, asked_one) = serve(&site, 100, decide);
        let (other, asked_other) = serve(&site, 100, decide);
        for eject in ["", "eject = true"] {
            let (address, service) = site.serve_worker(&configured(&format!(
                "[[route]]\npath = \"/\"\nforward = \"up\"\n[upstream.up]\nservers = [\"{one}\", \"{other}\"]\n\
                 protocol = \"h2\"\n{eject}\n"
            )));
            let mut client = Http2Client::connect(&site, &address, 65_535).await;
            for _ in 0..40 {
                let stream = client.open(("POST", "/late"), &[], End::Stream);
                let response = client.response(stream).await;
                assert_eq!(response.status, 0, "{eject}");
                assert_eq!(response.reset, Some(Cause::Peer(Code::CANCEL)), "{eject}");
            }
            let seen = service.worker.meter.take_seen();
            assert_eq!(seen.len(), 40, "{eject}");
            assert!(
                seen.iter()
                    .all(|it| it.status.is_none() && it.end == record::RequestEnd::Partial),
                "{eject}: {seen:?}"
            );
            for seen in [&asked_one, &asked_other] {
                seen.asked.borrow_mut().clear();
            }
            for _ in 0..10 {
                assert_eq!(client.get("/fine").await.status, 200);
            }
            for seen in [&asked_one, &asked_other] {
                assert_eq!(seen.asked.borrow().len(), 5, "{eject}: both are in service");
            }
        }
    });
}

#[test]
fn reset_code_after_head_is_forwarded() {
    for code in [Code::CANCEL, Code::ENHANCE_YOUR_CALM, Code::INTERNAL_ERROR] {
        on_every_driver(|site| async move {
            let (server, _) = serve(&site, 100, move |_| {
                Reaction::Cut(Response::ok("part"), code)
            });
            let (address, service) = site.serve_worker(&plan(server, "eject = false"));
            let mut client = Http2Client::connect(&site, &address, 65_535).await;
            let response = client.get("/").await;
            assert_eq!((response.status, &*response.body), (200, &b"part"[..]));
            assert_eq!(response.reset, Some(Cause::Peer(code)));
            let seen = service.worker.meter.take_seen();
            let seen: Vec<_> = seen.iter().map(|it| (it.failure, it.end)).collect();
            assert_eq!(
                seen,
                [(Some(record::FailureClass::Cut), record::RequestEnd::Partial)]
            );
        });
    }
}

#[test]
fn resets_and_discarded_statuses_are_consecutive_failures() {
    let cut = |_: &super::Asked| Reaction::Cut(Response::ok("part"), Code::INTERNAL_ERROR);
    let busy = |_: &super::Asked| {
        Reaction::Respond(Response {
            status: 503,
            ..Response::default()
        })
    };
    let deciders: [fn(&super::Asked) -> Reaction; 2] = [cut, busy];
    for decide in deciders {
        on_every_driver(|site| async move {
            let (bad, asked) = serve(&site, 100, decide);
            let (good, _) = serve(&site, 100, echo_path);
            let (address, service) = site.serve_worker(&configured(&format!(
                "[[route]]\npath = \"/\"\nforward = \"up\"\n[upstream.up]\nservers = [\"{bad}\", \"{good}\"]\n\
                 protocol = \"h2\"\nbalance = \"first\"\nretries = {{ statuses = [503] }}\n\
                 eject = {{ failures = 2, error_share = \"60%\" }}\n"
            )));
            let mut client = Http2Client::connect(&site, &address, 65_535).await;
            for _ in 0..4 {
                client.get("/").await;
            }
            assert!(service.group(0).is_out(0));
            assert_eq!(asked.asked.borrow().len(), 2);
        });
    }
}

#[test]
fn refusal_of_large_body_is_forwarded_to_client() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 100, |asked| match (asked.path(), asked.connection) {
            ("/goes", 0) => Reaction::GoAway,
            ("/refused", _) => Reaction::Reset(Code::REFUSED_STREAM),
            _ => echo_path(asked),
        });
        let address = site.serve(&plan(server, "eject = false"));
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        // Larger than the body kept for a retry.
        let long = [b'x'; 20_000];
        for path in ["/goes", "/refused"] {
            let stream = client.open(("POST", path), &[], End::Open);
            client.send_body(stream, &long).await;
            let response = client.response(stream).await;
            assert_eq!(response.status, 0, "{path}");
            assert_eq!(
                response.reset,
                Some(Cause::Peer(Code::REFUSED_STREAM)),
                "{path}"
            );
        }
        let stream = client.open(("POST", "/goes"), &[], End::Open);
        client.send_body(stream, b"a call").await;
        assert_eq!(client.response(stream).await.status, 200);
    });
}

#[test]
fn queued_bodies_do_not_exhaust_connection_window() {
    on_every_driver(|site| async move {
        let (server, _) = serve(&site, 1, |asked| {
            Reaction::Respond(Response::ok(&asked.body.len().to_string()))
        });
        let more = "streams_max = 1\nconnections_shared_max = 1";
        let address = site.serve(&plan(server, more));
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        assert_eq!(client.get("/first").await.status, 200);
        let streams: Vec<_> = (0..12)
            .map(|_| client.open(("POST", "/"), &[], End::Open))
            .collect();
        // All but the first are waiting; together they exceed a connection's window.
        let (first, others) = streams.split_first().expect("there are twelve");
        for stream in others {
            client.send_body(*stream, &[b'x'; 60_000]).await;
        }
        client.send_body(*first, &[b'x'; 300_000]).await;
        assert_eq!(client.response(*first).await.body, b"300000");
        for stream in others {
            assert_eq!(client.response(*stream).await.body, b"60000");
        }
    });
}

#[test]
fn aborted_upload_is_not_counted_as_bad_request() {
    for protocol in ["h1", "h2"] {
        on_every_driver(|site| async move {
            // An HTTP/1 server that accepts requests and never responds.
            let (listener, held) = site.listen();
            site.core.spawn(async move {
                let mut input = Input::default();
                while let Ok(stream) = listener.accept().await {
                    while stream.recv(&mut input).await.is_ok_and(|bytes| bytes > 0) {}
                }
            });
            let (server, _) = serve(&site, 100, echo_path);
            let server = match protocol {
                "h2" => server,
                _ => held,
            };
            let plan = configured(&format!(
                "[[route]]\npath = \"/\"\nforward = \"up\"\n[upstream.up]\nservers = [\"{server}\"]\nprotocol = \"{protocol}\"\n"
            ));
            let (address, service, _) = site.serve_to_change(&plan);
            let mut client = Http2Client::connect(&site, &address, 65_535).await;
            let stream = client.open(("POST", "/"), &[], End::Open);
            client.flush().await;
            while service.worker.live.stages().iter().sum::<u64>() == 0 {
                site.core.yield_now().await;
            }
            client.http.reset(stream, Code::CANCEL, &mut client.out);
            client.flush().await;
            while service.worker.meter.totals().given_up == 0 {
                site.core.yield_now().await;
            }
            assert_eq!(service.worker.meter.totals().refused, 0, "{protocol}");
        });
    }
}

#[test]
fn repeated_refusal_is_forwarded_to_client() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |_| Reaction::Reset(Code::REFUSED_STREAM));
        let address = site.serve(&plan(server, "eject = false"));
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        let response = client.get("/").await;
        let refused = Some(Cause::Peer(Code::REFUSED_STREAM));
        assert_eq!((response.status, response.reset), (0, refused));
        assert!(seen.asked.borrow().len() >= 2);
    });
}

#[test]
fn late_responses_to_cancelled_streams_are_ignored() {
    const ROUNDS: usize = 8;
    const CANCELLED: usize = 50;
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| match asked.path() {
            "/slow" | "/held" => Reaction::Hold,
            "/late" => Reaction::RespondAfterReset(Response::ok("late")),
            _ => echo_path(asked),
        });
        let more = "connections_shared_max = 1\neject = false\nretries = { count = 0 }";
        let address = site.serve(&plan(server, more));
        let mut one = Http2Client::connect(&site, &address, 65_535).await;
        let mut other = Http2Client::connect(&site, &address, 65_535).await;
        let held = other.open(("GET", "/held"), &[], End::Stream);
        other.flush().await;
        for round in 1..=ROUNDS {
            let open = |_| one.open(("GET", "/slow"), &[], End::Stream);
            let slow: Vec<_> = (0..CANCELLED).map(open).collect();
            one.flush().await;
            let asked = || {
                seen.asked
                    .borrow()
                    .iter()
                    .filter(|it| it.path() == "/slow")
                    .count()
            };
            let has_all = || asked() == round * CANCELLED;
            site.until("the server has all", has_all).await;
            for stream in slow {
                one.http.reset(stream, Code::CANCEL, &mut one.out);
            }
            one.flush().await;
            let are_reset = || seen.resets.borrow().len() == round * CANCELLED;
            site.until("all are reset", are_reset).await;
            assert_eq!(other.get("/fine").await.body, b"/fine");
        }
        assert_eq!(other.get("/late").await.body, b"late");
        for client in [&mut one, &mut other] {
            assert_eq!(client.get("/fine").await.body, b"/fine");
        }
        let held = other.responses.get(&held.id());
        let is_open = held.is_none_or(|it| it.status == 0 && it.reset.is_none());
        assert!(is_open, "the request of the other is still in progress");
        assert_eq!(seen.connections.get(), 1);
    });
}
