//! Timeouts of clients and servers, each with its own reaction. In virtual time except where a kernel is needed.

use std::rc::Rc;
use std::time::Duration;

use crate::testing::harness::{Step, on_simulated_cores, send, send_bytes};
use onrush_config::Plan;
use onrush_config::plan::OneLiner;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LONG: Duration = Duration::from_secs(100);

fn fixed() -> Plan {
    let what = OneLiner::Respond {
        status: 200,
        body: b"ok".to_vec(),
    };
    Plan::one_liner(what, Vec::new())
}

#[test]
fn stalled_head_gets_408() {
    on_simulated_cores(|site| async move {
        let address = site.serve(&fixed());
        let mut client = site.connect(&address).await;
        client.send(b"GET / HTTP/1.1\r\nHo").await;
        let response = String::from_utf8(client.receive_all().await).unwrap();
        assert!(
            response.starts_with("HTTP/1.1 408 Request Timeout\r\n"),
            "{response}"
        );
        assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
    });
}

#[test]
fn head_timeout_covers_slowly_sent_head() {
    on_simulated_cores(|site| async move {
        let address = site.serve(&fixed());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        client.receive_text().await;
        let (core, stream) = (site.core.clone(), Rc::clone(&client.stream));
        site.core.spawn(async move {
            for byte in GET.as_bytes() {
                if send_bytes(&stream, &[*byte]).await.is_err() {
                    return;
                }
                core.sleep(Duration::from_secs(3)).await;
            }
        });
        let response = client.receive_text().await;
        assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    });
}

#[test]
fn silent_client_is_closed() {
    on_simulated_cores(|site| async move {
        let address = site.serve(&fixed());
        let mut silent = site.connect(&address).await;
        assert_eq!(silent.receive_all_or_reset().await, (Vec::new(), false));
        let mut idle = site.connect(&address).await;
        idle.send(GET.as_bytes()).await;
        idle.receive_text().await;
        assert_eq!(idle.receive_all_or_reset().await, (Vec::new(), false));
    });
}

#[test]
fn empty_line_leaves_connection_idle() {
    on_simulated_cores(|site| async move {
        let address = site.serve(&fixed());
        let mut client = site.connect(&address).await;
        client.send(&[GET.as_bytes(), b"\r\n"].concat()).await;
        client.receive_text().await;
        // Longer than the timeout of a head, shorter than the idle timeout.
        site.core.sleep(Duration::from_secs(30)).await;
        client.send(GET.as_bytes()).await;
        let response = client.receive_text().await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    });
}

#[test]
fn stalled_unwanted_body_closes_after_response() {
    on_simulated_cores(|site| async move {
        let address = site.serve(&fixed());
        let mut client = site.connect(&address).await;
        client
            .send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc")
            .await;
        assert!(client.receive_text().await.starts_with("HTTP/1.1 200 "));
        assert_eq!(client.receive_all().await, b"");
    });
}

#[test]
fn stalled_upload_frees_server() {
    on_simulated_cores(|site| async move {
        let upstream = site.upstream(&[&[Step::Read], &[Step::Read, send(OK)]]);
        let address = site.serve(&upstream.plan());
        let mut stalling = site.connect(&address).await;
        stalling
            .send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc")
            .await;
        site.until("the first is at the server", || upstream.connections() == 1)
            .await;
        let mut other = site.connect(&address).await;
        other.send(GET.as_bytes()).await;
        assert!(other.receive_text().await.starts_with("HTTP/1.1 200 "));
        stalling.receive_all().await;
        site.until("the server is free", || upstream.open() == 0)
            .await;
    });
}

#[test]
fn silent_server_gets_504() {
    for script in [
        vec![Step::WaitForEnd],
        vec![Step::Read, Step::WaitForEnd],
        vec![Step::Read, send("HTTP/1.1 200"), Step::WaitForEnd],
        vec![
            Step::Read,
            send("HTTP/1.1 102 Processing\r\n\r\n"),
            Step::WaitForEnd,
        ],
    ] {
        on_simulated_cores(move |site| {
            let upstream = site.upstream(&[&script, &[Step::Read, send(OK)]]);
            async move {
                let (address, service) = site.serve_worker(&upstream.plan());
                let mut client = site.connect(&address).await;
                client.send(GET.repeat(2).as_bytes()).await;
                let mut response = client.receive_text().await;
                if response.starts_with("HTTP/1.1 102 ") {
                    response = client.receive_text().await;
                }
                assert!(
                    response.ends_with("504 Gateway Timeout: the server did not respond in time\n"),
                    "{response}"
                );
                assert!(client.receive_text().await.starts_with("HTTP/1.1 200 "));
                assert_eq!(service.worker.meter.totals().failed(), 1);
                assert_eq!(service.worker.meter.totals().retried, 0);
            }
        });
    }
}

#[test]
fn timeout_on_reused_connection_is_not_retried() {
    on_simulated_cores(|site| async move {
        let upstream = site.upstream(&[&[Step::Read, send(OK), Step::WaitForEnd]]);
        let (address, service) = site.serve_worker(&upstream.plan());
        let mut client = site.connect(&address).await;
        client.send(GET.repeat(2).as_bytes()).await;
        assert!(client.receive_text().await.starts_with("HTTP/1.1 200 "));
        assert!(client.receive_text().await.starts_with("HTTP/1.1 504 "));
        assert_eq!(service.worker.meter.totals().retried, 0);
    });
}

#[test]
fn stalled_response_closes_client_connection() {
    on_simulated_cores(|site| async move {
        let half = send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
        let upstream = site.upstream(&[&[Step::Read, half, Step::WaitForEnd]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        let response = String::from_utf8(client.receive_all().await).unwrap();
        assert!(response.ends_with("\r\n\r\nabc"), "{response}");
        site.until("the server is left", || upstream.open() == 0)
            .await;
    });
}

#[test]
fn slow_response_is_not_cut_off() {
    on_simulated_cores(|site| async move {
        let mut script = vec![
            Step::Read,
            send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"),
        ];
        for _ in 0..10 {
            script.extend([Step::Wait(Duration::from_secs(8)), send("x")]);
        }
        let upstream = site.upstream(&[&script]);
        let mut plan = upstream.plan();
        plan.timeouts.upstream_body = Duration::from_secs(10);
        let address = site.serve(&plan);
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        assert!(client.receive_text().await.ends_with("xxxxxxxxxx"));
    });
}

#[test]
fn stalled_upload_to_server_gets_504() {
    on_simulated_cores(|site| async move {
        let upstream = site.upstream(&[&[Step::ReadHead, Step::Wait(LONG)]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        let stream = Rc::clone(&client.stream);
        site.core.spawn(async move {
            let head = b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\n".to_vec();
            let _ = send_bytes(&stream, &[head, vec![b'x'; 10_000_000]].concat()).await;
        });
        let response = client.receive_text().await;
        assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
        assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
    });
}

#[test]
fn stalled_client_frees_server() {
    on_simulated_cores(|site| async move {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n";
        let script = [Step::Read, send(head), Step::Send(vec![b'x'; 10_000_000])];
        let upstream = site.upstream(&[&script]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        client.send(GET.as_bytes()).await;
        client.receive_until(b"\r\n\r\n").await;
        site.core.sleep(LONG).await;
        site.until("the server is left", || upstream.open() == 0)
            .await;
        assert!(client.receive_all().await.len() < 10_000_000);
    });
}

#[test]
fn send_timeout_does_not_limit_upload() {
    on_simulated_cores(|site| async move {
        let script = [
            Step::ReadHead,
            send("HTTP/1.1 100 Continue\r\n\r\n"),
            Step::ReadBytes(5),
            send(OK),
        ];
        let upstream = site.upstream(&[&script]);
        let mut plan = upstream.plan();
        plan.timeouts.client_send = Duration::from_secs(1);
        let address = site.serve(&plan);
        let mut client = site.connect(&address).await;
        client
            .send(
                b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
            )
            .await;
        client.receive_text().await;
        site.core.sleep(Duration::from_secs(10)).await;
        client.send(b"hello").await;
        assert!(client.receive_text().await.starts_with("HTTP/1.1 200 "));
    });
}

#[test]
fn first_byte_timeout_excludes_slow_upload() {
    on_simulated_cores(|site| async move {
        let upstream = site.upstream(&[&[Step::Read, send(OK)]]);
        let address = site.serve(&upstream.plan());
        let mut client = site.connect(&address).await;
        client
            .send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n")
            .await;
        for _ in 0..10 {
            site.core.sleep(Duration::from_secs(12)).await;
            client.send(b"x").await;
        }
        assert!(client.receive_text().await.starts_with("HTTP/1.1 200 "));
    });
}

fn forwarding(upstream: &crate::testing::harness::Upstream, keys: &str) -> Plan {
    crate::testing::harness::configured(&format!(
        "[timeouts]\nupstream_first_byte = \"1h\"\nclient_send = \"1h\"\ntunnel_idle = \"1h\"\n[upstream.app]\nservers = [\"{}\"]\nconnections_max = 1\n[[route]]\nforward = \"app\"\n{keys}",
        upstream.address
    ))
}

#[test]
fn route_first_byte_timeout_applies() {
    for (script, timeouts) in [
        (
            vec![Step::Read, Step::WaitForEnd],
            "upstream_first_byte = \"2s\"",
        ),
        (vec![Step::Read, Step::WaitForEnd], "request = \"2s\""),
    ] {
        on_simulated_cores(|site| {
            let upstream = site.upstream(&[&script]);
            async move {
                let keys = format!("timeouts = {{ {timeouts} }}");
                let address = site.serve(&forwarding(&upstream, &keys));
                let since = site.core.now_exact();
                let mut client = site.connect(&address).await;
                client.send(GET.as_bytes()).await;
                let response = client.receive_text().await;
                assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
                assert!(site.core.now_exact().since(since) < LONG);
            }
        });
    }
}

#[test]
fn route_queue_timeout_applies() {
    on_simulated_cores(|site| {
        let upstream = site.upstream(&[&[Step::Read, Step::WaitForEnd]]);
        async move {
            let plan = forwarding(&upstream, "timeouts = { queue = \"20s\" }");
            let address = site.serve(&plan);
            let first = site.connect(&address).await;
            first.send(GET.as_bytes()).await;
            site.until("the server is busy", || upstream.connections() == 1)
                .await;
            let since = site.core.now_exact();
            let mut second = site.connect(&address).await;
            second.send(GET.as_bytes()).await;
            let response = second.receive_text().await;
            assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
            let waited = site.core.now_exact().since(since);
            let own = Duration::from_secs(20);
            assert!(waited >= own && waited < own + LONG, "{waited:?}");
        }
    });
}

#[test]
fn route_client_timeouts_apply() {
    on_simulated_cores(|site| {
        let upstream = site.upstream(&[&[Step::ReadHead, Step::WaitForEnd]]);
        async move {
            let plan = forwarding(&upstream, "timeouts = { client_body = \"3s\" }");
            let address = site.serve(&plan);
            let since = site.core.now_exact();
            let mut client = site.connect(&address).await;
            client
                .send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nb")
                .await;
            assert_eq!(client.receive_all().await, b"");
            let waited = site.core.now_exact().since(since);
            assert!(waited < Duration::from_secs(20), "{waited:?}");
        }
    });
}
