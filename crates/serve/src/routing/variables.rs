//! Templates: text with variables that are replaced by properties of a request.

use std::net::IpAddr;

use onrush_config::plan::{Piece, Template, Variable};
use onrush_http::Header;
use onrush_http::forwarded::Scheme;
use onrush_http::request::RequestHead;
use onrush_http::write::HeadWriter;
use onrush_tls::Info;

use crate::routing::path;
use crate::routing::route::{host_of, values};

/// Properties of a request that are not in its head.
pub(crate) trait RequestFacts {
    /// The client's address, if it has one, from its connection or from trusted proxies.
    fn address(&self, headers: &[Header<'_>]) -> Option<IpAddr>;

    /// The client's port, if known.
    fn port(&self, headers: &[Header<'_>]) -> Option<u16>;

    fn scheme(&self, headers: &[Header<'_>]) -> Scheme;

    /// The path prefix of its route.
    fn prefix(&self) -> &str;

    fn group_name(&self) -> &str;

    fn request_id(&self) -> &[u8];

    /// Calls `take` with the result of the TLS handshake, if the connection uses TLS.
    fn with_tls(&self, take: &mut dyn FnMut(&Info));
}

/// Properties of a request.
#[derive(Clone, Copy)]
pub(crate) struct VariableValues<'a> {
    pub(crate) about: &'a dyn RequestFacts,
    pub(crate) head: &'a RequestHead<'a, 'a>,
    /// Name of the server that responds.
    pub(crate) server: &'a [u8],
}

/// Longest value of a variable that is not part of the head: a group's name, or a value from TLS.
pub(crate) const VARIABLE_BYTES_MAX: usize = 512;

/// Placeholder for `{server}` if the template is rendered before the server is known. No field value contains a NUL.
pub(crate) const SERVER_PLACEHOLDER: &[u8] = &[0];

impl VariableValues<'_> {
    /// Calls `put` with each piece of the expanded `template`. No piece contains a line end.
    pub(crate) fn render(&self, template: &Template, put: &mut impl FnMut(&[u8])) {
        for piece in &template.0 {
            match piece {
                Piece::Text(text) => put(text.as_bytes()),
                Piece::Variable(variable) => self.variable(variable, put),
            }
        }
    }

    fn variable(&self, variable: &Variable, put: &mut impl FnMut(&[u8])) {
        let (about, head) = (self.about, self.head);
        match variable {
            Variable::ClientAddress => {
                if let Some(address) = about.address(head.headers) {
                    put_address(address, put);
                }
            }
            Variable::ClientPort => {
                if let Some(port) = about.port(head.headers) {
                    put(itoa::Buffer::new().format(port).as_bytes());
                }
            }
            Variable::Scheme => put(about.scheme(head.headers).text().as_bytes()),
            Variable::Method => put(head.method_text.as_bytes()),
            Variable::Host => put(head.authority.unwrap_or("").as_bytes()),
            Variable::HostName => put(host_of(head.authority.unwrap_or("")).as_bytes()),
            Variable::Path => put(head.path.as_bytes()),
            Variable::PathRest => put(path::rest(head.path, about.prefix()).as_bytes()),
            Variable::Query => put(head.query.unwrap_or("").as_bytes()),
            Variable::Uri => {
                put(head.path.as_bytes());
                if let Some(query) = head.query {
                    put(b"?");
                    put(query.as_bytes());
                }
            }
            Variable::Header(name) => put(values(head, name).next().unwrap_or(b"")),
            Variable::TlsVersion => put_of_tls(about, |info| info.version.name(), put),
            Variable::TlsCipher => put_of_tls(about, |info| info.cipher, put),
            Variable::TlsServerName => {
                put_of_tls(about, |info| info.name.as_deref().unwrap_or(""), put);
            }
            Variable::TlsClientSubject => {
                put_of_tls(about, |info| info.client.as_deref().unwrap_or(""), put);
            }
            Variable::Upstream => put(about.group_name().as_bytes()),
            Variable::Server => put(self.server),
            Variable::RequestId => put(about.request_id()),
        }
    }
}

/// Puts a value of the TLS handshake; nothing without TLS.
fn put_of_tls(
    about: &dyn RequestFacts,
    part: impl for<'i> Fn(&'i Info) -> &'i str,
    put: &mut impl FnMut(&[u8]),
) {
    about.with_tls(&mut |info| put_line(part(info), put));
}

/// The subject of a certificate may have any length and characters; control characters could end the field.
fn put_line(text: &str, put: &mut impl FnMut(&[u8])) {
    let text = &text.as_bytes()[..text.len().min(VARIABLE_BYTES_MAX)];
    text.split(u8::is_ascii_control).for_each(put);
}

/// The longest textual address, `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`.
const ADDRESS_BYTES_MAX: usize = 45;

fn put_address(address: IpAddr, put: &mut impl FnMut(&[u8])) {
    let mut text = [0; ADDRESS_BYTES_MAX];
    let mut writer = HeadWriter::new(&mut text);
    let length = writer.display(address).finish();
    put(&text[..length.expect("the longest address fits")]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_subject_is_sanitized_and_truncated() {
        let line = |text: &str| {
            let mut line = Vec::new();
            put_line(text, &mut |part| line.extend_from_slice(part));
            String::from_utf8(line).expect("it was text")
        };
        assert_eq!(line("CN=a\r\nX-Admin: yes\0"), "CN=aX-Admin: yes");
        assert_eq!(line(&"x".repeat(10_000)).len(), VARIABLE_BYTES_MAX);
    }
}
