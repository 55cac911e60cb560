//! Responses of the interface.

pub(crate) mod page;

use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Error, Stream};
use onrush_http::Method;
use onrush_http::write::HeadWriter;
use serde_json::{Value, json};

/// Buffer size for a response head, in bytes: heads have few and short fields.
const HEAD_MAX: usize = 1024;

/// Field of every response by which clients recognize an admin interface.
pub(crate) const IDENTITY_FIELD: (&str, &str) = ("Onrush-Admin", "1");

/// Time limit for a client that accepts no bytes.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    content_type: &'static str,
    /// Additional fields: `Allow` of a 405, the challenge of a 401, the policy of a page.
    fields: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
}

/// State of the connection after a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectionState {
    Keep,
    Close,
}

/// Part of a response that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ResponsePart {
    Whole,
    /// The head without the body.
    Head,
}

impl ResponsePart {
    pub(crate) fn of(method: Method) -> Self {
        match method {
            Method::Head => ResponsePart::Head,
            _ => ResponsePart::Whole,
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

    /// An error response as JSON: what was wrong, and what to do.
    pub(crate) fn error(status: u16, why: &str) -> Self {
        Self::json(status, &json!({ "error": why }))
    }

    pub(crate) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.fields.push((name, value));
        self
    }

    /// Head of a response whose body ends with the connection.
    pub(crate) fn streaming_head(content_type: &str) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_MAX];
        let mut writer = HeadWriter::new(&mut bytes);
        writer
            .status_line(200)
            .header(IDENTITY_FIELD.0, IDENTITY_FIELD.1.as_bytes())
            .header("Content-Type", content_type.as_bytes())
            .header("Cache-Control", b"no-store")
            .header("X-Content-Type-Options", b"nosniff")
            .connection_close();
        let head = writer.end().finish();
        bytes.truncate(head.expect("the response head does not fit in its buffer"));
        bytes
    }

    pub(crate) fn bytes(&self, extent: ResponsePart, then: ConnectionState) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_MAX];
        let mut writer = HeadWriter::new(&mut bytes);
        writer
            .status_line(self.status)
            .header(IDENTITY_FIELD.0, IDENTITY_FIELD.1.as_bytes())
            .header("Content-Type", self.content_type.as_bytes())
            .header("Cache-Control", b"no-store")
            .header("X-Content-Type-Options", b"nosniff")
            .content_length(self.body.len() as u64);
        for (name, value) in &self.fields {
            writer.header(name, value.as_bytes());
        }
        if then == ConnectionState::Close {
            writer.connection_close();
        }
        let head = writer.end().finish();
        bytes.truncate(head.expect("the response head does not fit in its buffer"));
        if extent == ResponsePart::Whole {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

/// Sends bytes at the client's speed; fails if the client has disconnected, or accepts no bytes for [`SEND_TIMEOUT`].
pub(crate) async fn send(stream: &Stream, bytes: &[u8]) -> Result<(), Error> {
    stream.set_send_patience(SEND_TIMEOUT);
    stream.queue(Rc::<[u8]>::from(bytes));
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_has_content_length() {
        let response = Response::error(401, "no").with("WWW-Authenticate", "Bearer");
        let text = String::from_utf8(response.bytes(ResponsePart::Whole, ConnectionState::Close))
            .expect("ASCII");
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
        let text = String::from_utf8(response.bytes(ResponsePart::Head, ConnectionState::Keep))
            .expect("ASCII");
        assert!(
            text.ends_with("\r\n\r\n") && !text.contains("Connection"),
            "{text}"
        );
    }
}
