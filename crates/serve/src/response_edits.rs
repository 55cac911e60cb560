//! What a route changes in the heads of its responses, of our own and of servers.

use onrush_config::plan::{self, Edits as EditsPlan, ResponsesEdited};
use onrush_http::write::HeadWriter;

use crate::compress::head::is_about_coding;
use crate::edits::{Edits, Spelling};
use crate::limits::RESPONSE_LINES_BYTES_MAX;
use crate::location::Location;
use crate::variables::{Facts, SERVER_TO_COME};

/// The edits of a route's responses.
#[derive(Debug)]
pub(crate) struct ResponseEdits {
    edits: Edits,
    on: ResponsesEdited,
    /// Places that come: a client must not choose their host.
    locations: Vec<Location>,
    /// The fields that come, if they are always the same.
    text: Option<Vec<u8>>,
    /// Whether fields go that we write ourselves.
    drops_ours: bool,
}

/// Fields of servers that go: what is said of other origins is said here.
const OF_ORIGINS: [&str; 6] = [
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "access-control-expose-headers",
    "access-control-allow-methods",
    "access-control-allow-headers",
    "access-control-max-age",
];

/// The fields that responses of our own may have, but for those that cannot be edited and those that a fixed response is
/// configured with, which are left out when it is prepared.
const OURS: [&str; 17] = [
    "server",
    "date",
    "content-type",
    "cache-control",
    "etag",
    "last-modified",
    "accept-ranges",
    "content-range",
    "content-encoding",
    "vary",
    "location",
    "allow",
    "retry-after",
    "www-authenticate",
    "set-cookie",
    "x-req",
    "x-rsp",
];

impl ResponseEdits {
    /// `None` when nothing changes.
    pub(crate) fn new(plan: &EditsPlan, cors: Option<&plan::Cors>) -> Option<Self> {
        if plan.response.is_empty() && cors.is_none() {
            return None;
        }
        let mut edits = Edits::new(&plan.response, Spelling::Loose);
        if cors.is_some() {
            OF_ORIGINS.iter().for_each(|name| edits.also_drop(name));
        }
        let locations = edits.take_locations();
        let is_constant = locations.is_empty() && cors.is_none();
        let text = edits.text().filter(|_| is_constant);
        let length = text.as_ref().map_or(0, Vec::len);
        assert!(
            length <= RESPONSE_LINES_BYTES_MAX,
            "a plan bounds its texts"
        );
        Some(Self {
            locations,
            text,
            drops_ours: edits.drops_one_of(&OURS),
            on: plan.response_on.clone(),
            edits,
        })
    }

    /// Whether responses of this status are edited.
    #[inline]
    pub(crate) fn are_for(&self, status: u16) -> bool {
        match &self.on {
            ResponsesEdited::OfRoute | ResponsesEdited::Always => true,
            ResponsesEdited::Statuses(ranges) => ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&status)),
        }
    }

    /// Whether a field of this name goes.
    #[inline]
    pub(crate) fn drops(&self, name: &str) -> bool {
        self.edits.drops(name)
    }

    /// Whether the fields that come depend on the request.
    pub(crate) fn are_varying(&self) -> bool {
        self.text.is_none()
    }

    /// Appends the fields that come to `lines`, with [`SERVER_TO_COME`] for the server. A place that cannot be said is
    /// left out.
    pub(crate) fn render(&self, facts: &Facts<'_>, lines: &mut Vec<u8>) {
        self.edits
            .render(facts, &mut |bytes| lines.extend_from_slice(bytes));
        for place in self
            .locations
            .iter()
            .filter_map(|place| place.render(facts).ok())
        {
            lines.extend_from_slice(format!("Location: {place}\r\n").as_bytes());
        }
    }

    /// For one response: `rendered` are the lines from [`ResponseEdits::render`] when the edits vary.
    pub(crate) fn of_response<'a>(&'a self, rendered: &'a [u8], server: &'a str) -> Applied<'a> {
        Applied {
            edits: self,
            lines: self.text.as_deref().unwrap_or(rendered),
            server,
        }
    }
}

/// Edits as they are applied to one response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applied<'a> {
    edits: &'a ResponseEdits,
    lines: &'a [u8],
    server: &'a str,
}

impl Applied<'_> {
    /// Whether responses of this status are edited.
    #[inline]
    pub(crate) fn are_for(&self, status: u16) -> bool {
        self.edits.are_for(status)
    }

    /// Whether errors of our own are edited, too.
    pub(crate) fn are_for_errors(&self) -> bool {
        match &self.edits.on {
            ResponsesEdited::OfRoute => false,
            ResponsesEdited::Always | ResponsesEdited::Statuses(_) => true,
        }
    }

    /// Whether a field of this name goes.
    #[inline]
    pub(crate) fn drops(&self, name: &str) -> bool {
        self.edits.drops(name)
    }

    /// Bytes by which a head may grow.
    pub(crate) fn growth(&self) -> usize {
        let servers = memchr::memchr_iter(SERVER_TO_COME[0], self.lines).count();
        self.lines.len() + servers * self.server.len()
    }

    /// Writes the fields that come.
    pub(crate) fn write(&self, writer: &mut HeadWriter<'_>) {
        let mut rest = self.lines;
        while let Some(at) = memchr::memchr(SERVER_TO_COME[0], rest) {
            writer.raw(&rest[..at]).raw(self.server.as_bytes());
            rest = &rest[at + 1..];
        }
        writer.raw(rest);
    }

    /// Edits a whole head of our own, the first `length` bytes of `room`. Its new length, if it fits.
    pub(crate) fn rewrite(&self, room: &mut [u8], length: usize) -> Option<usize> {
        let kept = if self.edits.drops_ours {
            self.edits.edits.strip(&mut room[..length], is_about_coding)
        } else {
            length
        };
        let end = kept.checked_sub(b"\r\n".len())?;
        let mut writer = HeadWriter::new(&mut room[end..]);
        self.write(&mut writer);
        writer.end().finish().map(|written| end + written)
    }
}
