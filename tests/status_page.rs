//! The status page: its files need no token, its data does.

use std::fs;
use std::net::{TcpListener, TcpStream};

use crate::administering::responding;
use crate::program::{Client, Serve, TIMEOUT};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn response(address: &str, path: &str, fields: &str) -> String {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    let mut client = Client(stream);
    client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n").as_bytes());
    client.receive().expect("a response")
}

#[test]
fn status_page_is_public_but_data_requires_token() {
    let directory = tempfile::tempdir().expect("a directory");
    let token = directory.path().join("token");
    fs::write(&token, TOKEN).expect("it is ours");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let path = directory.path().join("onrush.toml");
    let text = format!(
        "admin = {{ address = \"{address}\", token_file = \"{}\" }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n{}",
        token.display(),
        responding("one")
    );
    fs::write(&path, text).expect("it is ours");
    let server = Serve::start(&["--config", &path.display().to_string()]);
    for (file, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/status.js", "text/javascript; charset=utf-8"),
        ("/status.css", "text/css; charset=utf-8"),
    ] {
        let page = response(&address, file, "");
        assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
        for field in [
            &*format!("Content-Type: {kind}\r\n"),
            "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; ",
            "frame-ancestors 'none'\r\n",
            "X-Content-Type-Options: nosniff\r\n",
            "X-Frame-Options: DENY\r\n",
        ] {
            assert!(page.contains(field), "{field}: {page}");
        }
        let foreign = response(&address, file, "Sec-Fetch-Site: cross-site\r\n");
        assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
    }
    let link =
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    assert!(response(&address, "/", link).starts_with("HTTP/1.1 200 "));
    for data in ["/v1/live", "/v1/events"] {
        for wrong in ["", "Authorization: Bearer 0123456789abcdefX\r\n"] {
            let refused = response(&address, data, wrong);
            assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
        }
        let right = response(
            &address,
            data,
            &format!("Authorization: Bearer {TOKEN}\r\n"),
        );
        assert!(right.starts_with("HTTP/1.1 200 "), "{right}");
    }
    server.stop();
}
