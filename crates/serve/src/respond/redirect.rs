//! The redirect: another place, made of the request.

use onrush_config::plan::{Piece, Template};
use onrush_engine::Error;
use onrush_http::request::RequestHead;

use super::refuse::refuse;
use super::{Context, Writer};
use crate::limits::LOCATION_BYTES_MAX;
use crate::passage::Asker;
use crate::variables::Facts;

/// A configured redirect.
#[derive(Debug)]
pub(crate) struct Redirect {
    status: u16,
    location: Template,
    /// Whether the location begins with what the client wrote.
    begins_with_variable: bool,
}

impl Redirect {
    pub(crate) fn new(status: u16, location: Template) -> Self {
        Self {
            status,
            begins_with_variable: matches!(location.0.first(), Some(Piece::Variable(_))),
            location,
        }
    }

    /// Writes the answer.
    pub(crate) fn answer(
        &self,
        head: &RequestHead<'_, '_>,
        asker: Asker<'_>,
        context: Context,
        writer: &mut Writer<'_>,
    ) -> Result<(), Error> {
        let facts = Facts {
            asker,
            head,
            server: b"",
        };
        match self.location(&facts) {
            Some(location) => {
                let fields = [("Location", location.as_str())];
                refuse(self.status, "", &fields, context, writer)
            }
            None => {
                let reason = "the place that it leads to has too long a name";
                refuse(414, reason, &[], context, writer)
            }
        }
    }

    /// Where a request with these facts is sent; `None` when that is too long to be said.
    fn location(&self, facts: &Facts<'_>) -> Option<String> {
        let mut location = String::new();
        facts.render(&self.location, &mut |bytes| {
            // Counted before it is added: one field may stand in a template several times.
            if location.len() <= LOCATION_BYTES_MAX {
                bytes.iter().for_each(|&byte| push(byte, &mut location));
            }
        });
        if self.begins_with_variable {
            keep_on_this_host(&mut location);
        }
        (location.len() <= LOCATION_BYTES_MAX).then_some(location)
    }
}

/// A byte as it may stand in a URI (RFC 3986 2). What is encoded already stays so.
fn push(byte: u8, location: &mut String) {
    if byte.is_ascii_graphic() {
        return location.push(char::from(byte));
    }
    let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value)]);
    location.extend(['%', digit(byte >> 4), digit(byte & 0xf)]);
}

/// Two slashes would begin with another host (RFC 3986 4.2), which would be the client's choice and not ours; browsers
/// take a backslash for a slash.
fn keep_on_this_host(location: &mut String) {
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    let slashes = location.bytes().take_while(|byte| is_slash(byte)).count();
    if slashes > 1 {
        location.replace_range(..slashes, "/");
    }
}
