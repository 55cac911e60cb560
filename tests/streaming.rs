//! Foreign HTTP/2 clients, curl and h2load, over TLS and cleartext, with a server and a proxy.

use std::fs;

use crate::peer::{curl, peer};
use crate::program::{Serve, drivers};

fn served(directory: &tempfile::TempDir, name: &str, lines: &str) -> Serve {
    let file = directory.path().join(name);
    fs::write(&file, lines).expect("it is written");
    Serve::start(&["--config", file.to_str().expect("a path of text")])
}

/// HTTP version and status that curl got.
fn got(words: &[&str]) -> String {
    let said = curl(
        &[
            &[
                "-k",
                "-o",
                "/dev/null",
                "-w",
                "%{http_version} %{response_code}",
            ],
            words,
        ]
        .concat(),
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    said.out
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn curl_and_h2load_receive_http2_responses() {
    for io in drivers() {
        let directory = tempfile::tempdir().expect("a directory");
        let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at * 7 % 251) as u8).collect();
        fs::write(directory.path().join("large"), &large).expect("it is written");
        let root = directory.path().display();
        let own = format!(
            "[[route]]\npath = \"/upload\"\nsynthetic = true\n[[route]]\npath = \"/fixed\"\nrespond = {{ status = 200, body = \"hello\" }}\n\
             [[route]]\nfiles = {{ root = \"{root}\" }}\n"
        );
        let begin = |name: &str, tls: &str, routes: &str| {
            let log = directory.path().join(format!("{name}.log"));
            let lines = format!(
                "io = \"{io}\"\n[log]\naccess = \"{}\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n{tls}\n{routes}",
                log.display()
            );
            (served(&directory, name, &lines), log)
        };
        const TLS: &str = "tls = \"self-signed\"";
        let clear = begin("clear", "", &own);
        let tls = begin("tls", TLS, &own);
        let forward = format!("[[route]]\nforward = \"http://{}\"\n", clear.0.address);
        let proxy = begin("proxy", TLS, &forward);
        let all = [
            (proxy, "--http2", "https"),
            (tls, "--http2", "https"),
            (clear, "--http2-prior-knowledge", "http"),
        ];
        // The proxy's requests count at the last server, too.
        let mut forwarded = 3005;
        for ((serve, log), http2, scheme) in all {
            let url = |path: &str| format!("{scheme}://{}{path}", serve.address);
            let fixed = url("/fixed");
            assert_eq!(got(&[http2, &fixed]), "2 200");
            assert_eq!(got(&["--http1.1", &fixed]), "1.1 200");
            assert_eq!(got(&[http2, "-I", &fixed]), "2 200");
            let copy = directory.path().join("copy");
            let copy_path = copy.to_str().expect("a path of text");
            let said = curl(&["-k", http2, "-o", copy_path, &url("/large")]);
            assert_eq!(said.code, Some(0), "{said:?}");
            assert!(fs::read(&copy).expect("it is there") == large);
            let upload = format!("@{}", directory.path().join("large").display());
            assert_eq!(
                got(&[http2, "--data-binary", &upload, &url("/upload")]),
                "2 200"
            );
            let output = peer("h2load", &["-n", "3000", "-c", "5", "-m", "32", &fixed]).output();
            let output = output.expect("h2load runs");
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(
                said.contains("3000 succeeded, 0 failed, 0 errored"),
                "{said}"
            );
            assert!(said.contains("3000 2xx"), "{said}");
            let totals = serve.stop();
            let forwarded = match scheme {
                "http" => std::mem::take(&mut forwarded),
                _ => 0,
            };
            assert_eq!(totals.requests(), 3005 + forwarded);
            let log = fs::read_to_string(&log).expect("it is there");
            let by = |version: &str| log.lines().filter(|line| line.contains(version)).count();
            let expected = (3004, 1 + forwarded as usize);
            assert_eq!((by("HTTP/2.0\""), by("HTTP/1.1\"")), expected);
        }
    }
}
