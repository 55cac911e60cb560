//! Forwarded requests: onrush in front of nginx, behind HAProxy, and in front of itself, over TCP and Unix sockets.

use std::fs;

use crate::peer::{Peer, ab, curl, wrk};
use crate::program::{Serve, Totals, drivers, until};

#[test]
#[ignore = "foreign programs: make test-all"]
fn proxy_forwards_curl_to_nginx() {
    let nginx = Peer::nginx();
    let content: Vec<u8> = (0..3_000_000).map(|at| (at * 31 % 251) as u8).collect();
    let original = nginx.write("large.bin", &content);
    let copy = original.with_extension("copy").display().to_string();
    let serve = Serve::start(&["--forward", &nginx.server()]);
    assert_eq!(
        curl(&[&serve.url("/a?b")]).out,
        "nginx was asked for GET /a?b\n"
    );
    assert_eq!(
        curl(&["-X", "DELETE", &serve.url("/a")]).out,
        "nginx was asked for DELETE /a\n"
    );
    curl(&["-o", &copy, &serve.url("/files/large.bin")]);
    assert!(fs::read(&copy).unwrap() == content, "changed on its way");
    assert_eq!(
        curl(&["-r", "0-9", "-o", &copy, &serve.url("/files/large.bin")]).out,
        ""
    );
    assert!(fs::read(&copy).unwrap() == content[..10], "a range");
    let head = curl(&["-I", &serve.url("/files/large.bin")]).out;
    assert!(head.contains("\r\nContent-Length: 3000000\r\n"), "{head}");
    let upload = [
        "--data-binary",
        &format!("@{}", original.display()),
        &serve.url("/up"),
    ];
    assert_eq!(curl(&upload).out, "nginx was asked for POST /up\n");
    let missing = [
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        &serve.url("/files/none"),
    ];
    assert_eq!(curl(&missing).out, "404");
    assert_eq!(serve.stop().requests(), 7);
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn proxy_forwards_ab_and_wrk_to_nginx() {
    let nginx = Peer::nginx();
    nginx.write("small", b"small");
    for io in drivers() {
        let serve = Serve::start(&["--forward", &nginx.server(), "--io", io]);
        ab(&serve.url("/"));
        wrk(&serve.url("/files/small"));
        let totals = serve.stop();
        assert_eq!(totals.number_before(" failed upstream"), 0, "{totals:?}");
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn chained_proxies_forward_over_unix_sockets() {
    let directory = tempfile::tempdir().expect("a directory");
    let unix = |name: &str| format!("unix:{}", directory.path().join(name).display());
    let last = Serve::start(&["--respond", "200:hello", "--listen", &unix("last")]);
    let middle = Serve::start(&["--forward", &unix("last"), "--listen", &unix("middle")]);
    let first = Serve::start(&["--forward", &unix("middle")]);
    assert_eq!(curl(&[&first.url("/")]).out, "hello");
    assert_eq!(curl(&["--http1.0", &first.url("/")]).out, "hello");
    wrk(&first.url("/"));
    // All three count the same requests, except for requests that a client gave up: a later server may still have
    // responded to them.
    let all = [first.stop(), middle.stop(), last.stop()];
    assert!(all.is_sorted_by_key(Totals::requests), "{all:?}");
    let given_up = all.iter().map(|each| each.number_before(" given up"));
    let without_response = all[2].requests() - all[0].requests();
    assert!(without_response <= given_up.sum(), "{all:?}");
}

#[test]
fn refused_connection_is_502_and_logged() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = nobody.local_addr().expect("bound").to_string();
    drop(nobody);
    let serve = Serve::start(&["--forward", &address]);
    let response = curl(&["-i", &serve.url("/")]).out;
    assert!(
        response.starts_with("HTTP/1.1 502 Bad Gateway\r\n"),
        "{response}"
    );
    let log = serve.program.err.wait_for("the client got 502");
    assert!(log.contains(&address) && log.contains("refused"), "{log}");
    let totals = serve.stop();
    assert_eq!(totals.number_before(" failed upstream"), 1, "{totals:?}");
}

#[test]
fn requests_are_distributed_by_weight() {
    let servers = ["one", "two"].map(|name| Serve::start(&["--respond", &format!("200:{name}")]));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    let text = format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nforward = \"group\"\n[upstream.group]\nservers = [\"{}\", {{ address = \"{}\", weight = 3 }}]\n",
        servers[0].address, servers[1].address
    );
    fs::write(&path, text).expect("it is ours");
    let serve = Serve::start(&["--config", &path.display().to_string()]);
    let url = serve.url("/");
    let responses = curl(&[url.as_str(); 8]).out;
    assert_eq!(
        (
            responses.matches("one").count(),
            responses.matches("two").count()
        ),
        (2, 6)
    );
}

#[test]
fn aborted_clients_leak_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let content = vec![b'x'; 20_000_000];
    fs::write(directory.path().join("large.bin"), content).expect("it is ours");
    for io in drivers() {
        let root = directory.path().display().to_string();
        let server = Serve::start(&[&root, "--io", io, "--threads", "1"]);
        let proxy = Serve::start(&["--forward", &server.address, "--io", io]);
        // A successful request: the file stays open in the server's cache, and a connection in the pool.
        assert_eq!(curl(&["-r", "0-4", &proxy.url("/large.bin")]).out, "xxxxx");
        let before = [server.descriptors(), proxy.descriptors()];
        for _ in 0..3 {
            let mut clients: Vec<_> = (0..50).map(|_| proxy.connect()).collect();
            for (number, client) in clients.iter_mut().enumerate() {
                // Within a head, within a body, and before and within a response that exceeds the socket buffers.
                client.send(match number % 4 {
                    0 => b"GET /large.bin HTTP/1.1\r\nHo",
                    1 => b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc",
                    _ => b"GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n",
                });
                if number % 4 == 3 {
                    std::io::Read::read_exact(&mut client.0, &mut [0; 100_000]).expect("it comes");
                }
            }
        }
        until("all descriptors closed", || {
            (server.descriptors() <= before[0] && proxy.descriptors() <= before[1]).then_some(())
        });
        assert_eq!(curl(&["-r", "0-4", &proxy.url("/large.bin")]).out, "xxxxx");
    }
}
