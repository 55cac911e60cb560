//! The response to a request for administration.

pub(crate) mod page;

use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Error, Stream};
use onrush_http::Method;
use onrush_http::write::HeadWriter;
use serde_json::{Value, json};

/// Room for a head: its fields are few and short.
const HEAD_MAX: usize = 1024;

/// The field of every response by which a client knows that it has found an admin interface.
pub(crate) const IDENTITY: (&str, &str) = ("Onrush-Admin", "1");

/// How long a client may take no byte.
const SEND_PATIENCE: Duration = Duration::from_secs(10);

/// A whole response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    content_type: &'static str,
    /// Methods that there are, with 405; a challenge, with 401; what a browser may do with a page.
    fields: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
}

/// How the connection goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    Keep,
    Close,
}

/// How much of a response is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    Whole,
    /// All but the body.
    Head,
}

impl Extent {
    /// The extent of the response to a request with this method.
    pub(crate) fn of(method: Method) -> Self {
        match method {
            Method::Head => Extent::Head,
            _ => Extent::Whole,
        }
    }
}

impl Response {
    pub(crate) fn json(status: u16, value: &Value) -> Self {
        let mut body = format!("{value:#}").into_bytes();
        body.push(b'\n');
        Self::of(status, "application/json", body)
    }

    pub(crate) fn of(status: u16, content_type: &'static str, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type,
            fields: Vec::new(),
            body,
        }
    }

    /// What was wrong, and what to do.
    pub(crate) fn error(status: u16, why: &str) -> Self {
        Self::json(status, &json!({ "error": why }))
    }

    pub(crate) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.fields.push((name, value));
        self
    }

    /// The head of a response that ends with its connection.
    pub(crate) fn endless_head(content_type: &str) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_MAX];
        let mut writer = HeadWriter::new(&mut bytes);
        writer
            .status_line(200)
            .header(IDENTITY.0, IDENTITY.1.as_bytes())
            .header("Content-Type", content_type.as_bytes())
            .header("Cache-Control", b"no-store")
            .header("X-Content-Type-Options", b"nosniff")
            .connection_close();
        let head = writer.end().finish();
        bytes.truncate(head.expect("its fields are few and short"));
        bytes
    }

    /// As it goes over the wire.
    pub(crate) fn bytes(&self, extent: Extent, then: Then) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_MAX];
        let mut writer = HeadWriter::new(&mut bytes);
        writer
            .status_line(self.status)
            .header(IDENTITY.0, IDENTITY.1.as_bytes())
            .header("Content-Type", self.content_type.as_bytes())
            .header("Cache-Control", b"no-store")
            .header("X-Content-Type-Options", b"nosniff")
            .content_length(self.body.len() as u64);
        for (name, value) in &self.fields {
            writer.header(name, value.as_bytes());
        }
        if then == Then::Close {
            writer.connection_close();
        }
        let head = writer.end().finish();
        bytes.truncate(head.expect("its fields are few and short"));
        if extent == Extent::Whole {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

/// Sends bytes of a response, as fast as its client takes them.
///
/// # Errors
/// When it is gone, or takes none for a while.
pub(crate) async fn send(stream: &Stream, bytes: &[u8]) -> Result<(), Error> {
    stream.set_send_patience(SEND_PATIENCE);
    stream.queue(Rc::<[u8]>::from(bytes));
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_says_how_long_it_is() {
        let response = Response::error(401, "no").with("WWW-Authenticate", "Bearer");
        let text = String::from_utf8(response.bytes(Extent::Whole, Then::Close)).expect("ASCII");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert_eq!(body, "{\n  \"error\": \"no\"\n}\n");
        assert!(head.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{head}");
        for field in [
            "Onrush-Admin: 1",
            "Content-Length: 20",
            "WWW-Authenticate: Bearer",
            "Connection: close",
        ] {
            assert!(head.contains(field), "{head}");
        }
        let text = String::from_utf8(response.bytes(Extent::Head, Then::Keep)).expect("ASCII");
        assert!(
            text.ends_with("\r\n\r\n") && !text.contains("Connection"),
            "{text}"
        );
    }
}
