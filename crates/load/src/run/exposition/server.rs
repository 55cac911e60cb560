//! Serves the metrics of the last second at `/metrics`, in a thread of its own that does not disturb the cores.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use onrush_http::{HeaderSlots, Limits, Method, Parsed, request};

use crate::limits::scrape::{SCRAPE_PIECES_MAX, SCRAPE_TIMEOUT};

/// Current text of the metrics, shared with the collecting thread.
#[derive(Clone, Debug, Default)]
pub struct MetricsPage(Arc<Mutex<String>>);

impl MetricsPage {
    /// Replaces the text.
    pub fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn text(&self) -> String {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Listens at `address` and serves `page` until the program ends, one scrape at a time. Returns the bound address.
///
/// # Errors
/// When the address cannot be bound or the thread cannot be started.
pub fn start(address: SocketAddr, page: MetricsPage) -> Result<SocketAddr, String> {
    let cannot = |error| format!("--metrics {address}: cannot listen: {error}");
    let listener = TcpListener::bind(address).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let serve = move || {
        for stream in listener.incoming().flatten() {
            // A failed scrape does not affect later ones.
            let _ = serve(stream, &page);
        }
    };
    let thread = thread::Builder::new().name("metrics".to_owned());
    let started = thread.spawn(serve);
    started.map_err(|error| format!("--metrics: cannot start a thread: {error}"))?;
    Ok(address)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ScrapeRequest {
    Metrics,
    SomethingElse,
    /// Another method than GET.
    Otherwise,
    NotHttp,
}

fn serve(mut stream: TcpStream, page: &MetricsPage) -> std::io::Result<()> {
    stream.set_read_timeout(Some(SCRAPE_TIMEOUT))?;
    stream.set_write_timeout(Some(SCRAPE_TIMEOUT))?;
    let Some(asked) = asked(&mut stream)? else {
        return Ok(());
    };
    let (status, text) = match asked {
        ScrapeRequest::Metrics => ("200 OK", page.text()),
        ScrapeRequest::SomethingElse => ("404 Not Found", "the only path is /metrics\n".to_owned()),
        ScrapeRequest::Otherwise => (
            "405 Method Not Allowed",
            "GET is the only method\n".to_owned(),
        ),
        ScrapeRequest::NotHttp => ("400 Bad Request", "not an HTTP/1 request\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all((head + &text).as_bytes())
}

/// Reads one head; `None` if the client closes the connection before its end.
fn asked(stream: &mut TcpStream) -> std::io::Result<Option<ScrapeRequest>> {
    let mut input = Vec::new();
    let mut piece = [0; 4096];
    for _ in 0..SCRAPE_PIECES_MAX {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Ok(None);
        }
        input.extend_from_slice(&piece[..count]);
        let mut slots = HeaderSlots::new();
        match request::parse(&input, &mut slots, &Limits::DEFAULT) {
            Parsed::Partial => {}
            Parsed::Refused(_) => return Ok(Some(ScrapeRequest::NotHttp)),
            Parsed::Complete(head) => {
                return Ok(Some(match (head.method, head.path) {
                    (Method::Get, "/metrics") => ScrapeRequest::Metrics,
                    (Method::Get, _) => ScrapeRequest::SomethingElse,
                    _ => ScrapeRequest::Otherwise,
                }));
            }
        }
    }
    Ok(Some(ScrapeRequest::NotHttp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_served_and_other_paths_refused() {
        let page = MetricsPage::default();
        let address = start("127.0.0.1:0".parse().unwrap(), page.clone()).unwrap();
        let ask = |request: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).unwrap();
            response
        };
        page.set("a 1\n".to_owned());
        page.set("a 2\n".to_owned());
        let got = ask("GET /metrics?x HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
        assert!(got.ends_with("\r\n\r\na 2\n"), "{got}");
        for (request, status) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "405"),
            ("nonsense\r\n\r\n", "400"),
        ] {
            let got = ask(request);
            assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{got}");
        }
        drop(TcpStream::connect(address).unwrap());
        assert!(ask("GET /metrics HTTP/1.0\r\n\r\n").ends_with("a 2\n"));
        let taken = start(address, MetricsPage::default()).unwrap_err();
        assert!(taken.contains("cannot listen"), "{taken}");
    }
}
