//! Templates: text in which variables stand for what is known of a request.

use std::net::IpAddr;

use onrush_config::plan::{Piece, Template, Variable};
use onrush_http::request::RequestHead;
use onrush_http::write::HeadWriter;

use crate::passage::Asker;
use crate::path;
use crate::route::{host_of, values};

/// What is known of a request.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) asker: Asker<'a>,
    pub(crate) head: &'a RequestHead<'a, 'a>,
    /// Stands for the server that answers.
    pub(crate) server: &'a [u8],
}

/// Stands for `{server}` where the others are known before it is. No field's value contains a NUL.
pub(crate) const SERVER_TO_COME: &[u8] = &[0];

impl Facts<'_> {
    /// Hands `put` the text of `template`, piece by piece. Nothing in it can end a line.
    pub(crate) fn render(&self, template: &Template, put: &mut impl FnMut(&[u8])) {
        for piece in &template.0 {
            match piece {
                Piece::Text(text) => put(text.as_bytes()),
                Piece::Variable(variable) => self.variable(variable, put),
            }
        }
    }

    fn variable(&self, variable: &Variable, put: &mut impl FnMut(&[u8])) {
        let (asker, head) = (&self.asker, self.head);
        match variable {
            Variable::ClientAddress => {
                if let Some(address) = asker.address(head.headers) {
                    put_address(address, put);
                }
            }
            Variable::ClientPort => {
                if let Some(port) = asker.port(head.headers) {
                    put(itoa::Buffer::new().format(port).as_bytes());
                }
            }
            Variable::Scheme => put(asker.scheme(head.headers).text().as_bytes()),
            Variable::Method => put(head.method_text.as_bytes()),
            Variable::Host => put(head.authority.unwrap_or("").as_bytes()),
            Variable::HostName => put(host_of(head.authority.unwrap_or("")).as_bytes()),
            Variable::Path => put(head.path.as_bytes()),
            Variable::PathRest => put(path::rest(head.path, asker.prefix()).as_bytes()),
            Variable::Query => put(head.query.unwrap_or("").as_bytes()),
            Variable::Uri => {
                put(head.path.as_bytes());
                if let Some(query) = head.query {
                    put(b"?");
                    put(query.as_bytes());
                }
            }
            Variable::Header(name) => put(values(head.headers, name).next().unwrap_or(b"")),
            // A connection without TLS has none of them.
            Variable::TlsVersion
            | Variable::TlsCipher
            | Variable::TlsServerName
            | Variable::TlsClientSubject => {}
            Variable::Upstream => put(asker.group_name().as_bytes()),
            Variable::Server => put(self.server),
            Variable::RequestId => put(asker.request_id()),
        }
    }
}

/// The longest address in text, `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`.
const ADDRESS_BYTES_MAX: usize = 45;

fn put_address(address: IpAddr, put: &mut impl FnMut(&[u8])) {
    let mut text = [0; ADDRESS_BYTES_MAX];
    let mut writer = HeadWriter::new(&mut text);
    let length = writer.display(address).finish();
    put(&text[..length.expect("the longest address fits")]);
}
