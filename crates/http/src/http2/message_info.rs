//! The properties of a message that the connection needs: content length, status, priority. `message` parses the rest.

use super::code::StreamError;
use super::fields::FieldSection;
use super::priority::Priority;
use super::stream::{Content, End, UNKNOWN};
use crate::framing::{decimal, same_decimal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Request,
    Response,
    Trailers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageInfo {
    /// `UNKNOWN` without Content-Length.
    pub(crate) content_length: u64,
    status: u16,
    pub(crate) priority: Priority,
    /// Content that may follow a request with this head.
    pub(crate) content: Content,
}

impl MessageInfo {
    /// Scans the fields of a section.
    ///
    /// # Errors
    /// If a field is malformed or not allowed in a section of this kind (RFC 9113 8.1, 8.2).
    #[inline]
    pub(crate) fn of(fields: &FieldSection, section: Section) -> Result<MessageInfo, StreamError> {
        if let Some(flaw) = fields.flaw() {
            return Err(StreamError::protocol(flaw.reason()));
        }
        let mut facts = MessageInfo {
            content_length: UNKNOWN,
            status: 0,
            priority: Priority::DEFAULT,
            content: Content::Any,
        };
        for (name, value) in fields.iter() {
            match (name.len(), section) {
                (14, Section::Request | Section::Response) if name == "content-length" => {
                    facts.note_length(value, section)?;
                }
                (8, Section::Request) if name == "priority" => {
                    facts.priority = Priority::parse(value);
                }
                (9, Section::Request) if name == ":protocol" => facts.content = Content::Tunnel,
                (7, Section::Response) if name == ":status" => facts.status = status(value)?,
                (_, Section::Trailers) if name.starts_with(':') => {
                    return Err(StreamError::protocol("a pseudo-field in trailers"));
                }
                _ => {}
            }
        }
        match section == Section::Response && facts.status == 0 {
            true => Err(StreamError::protocol("response without a status")),
            false => Ok(facts),
        }
    }

    /// Records Content-Length. Repeated values must be equal (RFC 9110 8.6); a server may repeat them in one field.
    fn note_length(&mut self, value: &[u8], section: Section) -> Result<(), StreamError> {
        let length = match section {
            Section::Response => decimal(value).or_else(|| same_decimal(value).ok()),
            Section::Request | Section::Trailers => decimal(value),
        };
        let length = length.ok_or(StreamError::protocol("malformed Content-Length"))?;
        if self.content_length != UNKNOWN && self.content_length != length {
            return Err(StreamError::protocol("different Content-Length values"));
        }
        self.content_length = length;
        Ok(())
    }

    /// Checks that the stream may end after this head, if it does.
    #[inline]
    pub(crate) fn check_end(self, end: End, content: Content) -> Result<MessageInfo, StreamError> {
        let misses = self.content_length != UNKNOWN && self.content_length != 0;
        match (end, content) {
            (End::Stream, Content::Any | Content::Tunnel) if misses => {
                Err(StreamError::protocol("less data than Content-Length"))
            }
            (End::Stream | End::Open, Content::Any | Content::None | Content::Tunnel) => Ok(self),
        }
    }

    /// Whether it is an interim response, which another head follows (RFC 9110 15.2).
    pub(crate) fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// Whether the response opens the tunnel that its request asked for (RFC 9110 9.3.6).
    pub(crate) fn grants_tunnel(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether the status excludes content (RFC 9110 6.4.1).
    pub(crate) fn has_no_content(&self) -> bool {
        matches!(self.status, 204 | 304)
    }
}

/// Parses three digits. 101 is invalid, since HTTP/2 has no Upgrade (RFC 9113 8.6).
fn status(value: &[u8]) -> Result<u16, StreamError> {
    let status = match value {
        [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] => decimal(value),
        _ => None,
    };
    match status {
        Some(101) => Err(StreamError::protocol(
            "status 101, which HTTP/2 does not have",
        )),
        Some(status) => Ok(status as u16),
        None => Err(StreamError::protocol("malformed status")),
    }
}
