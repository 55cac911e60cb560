//! Edits of a route's response heads.

use onrush_config::plan::{OfServer, ResponsesEdited, Route};
use onrush_http::Header;
use onrush_http::write::HeadWriter;

use crate::limits::RESPONSE_LINES_BYTES_MAX;
use crate::routing::variables::{Facts, SERVER_TO_COME};
use crate::rules::cache_control::{CacheControl, Said, Saying, is_of_caches};
use crate::rules::compress::is_about_coding;
use crate::rules::edits::{Edits, Names, Spelling};
use crate::rules::location::Location;

#[derive(Debug)]
pub(crate) struct ResponseEdits {
    edits: Edits,
    on: ResponsesEdited,
    /// Fields of servers that are hidden in responses of every status, independently of `on`.
    hidden: Names,
    /// A server's response with one of these fields is refused.
    refused: Names,
    /// Location fields that depend on the request; a client must not be able to choose their host.
    locations: Vec<Location>,
    /// The fields to write, if they do not depend on the request.
    text: Option<Vec<u8>>,
    /// Whether generated fields are removed.
    drops_ours: bool,
    /// Cache-Control rules, which apply independently of `on`.
    cache_control: Option<CacheControl>,
    scope: Scope,
}

/// The edits that apply to a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    /// All of them.
    Fields,
    /// Cache-Control rules only.
    Caches,
}

/// Fields of servers that are removed if the route has CORS settings.
const OF_ORIGINS: [&str; 6] = [
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "access-control-expose-headers",
    "access-control-allow-methods",
    "access-control-allow-headers",
    "access-control-max-age",
];

/// The fields of generated responses that can be edited. Those in a fixed response's configuration are edited when it
/// is prepared.
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
    /// `None` if nothing changes.
    pub(crate) fn new(route: &Route) -> Option<Self> {
        let (plan, cors) = (&route.edits, &route.cors);
        let cache_control = CacheControl::new(&route.cache_control);
        let hidden = Names::of(&plan.upstream.hide, Spelling::Loose);
        let refused = Names::of(&plan.upstream.refuse, Spelling::Loose);
        let scope = match plan.response.is_empty() && cors.is_none() {
            true if cache_control.is_none() && plan.upstream.is_empty() => return None,
            true => Scope::Caches,
            false => Scope::Fields,
        };
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
            hidden,
            refused,
            edits,
            cache_control,
            scope,
        })
    }

    /// Whether fields of responses of this status are edited.
    #[inline]
    pub(crate) fn are_for(&self, status: u16) -> bool {
        match &self.on {
            ResponsesEdited::OfRoute | ResponsesEdited::Always => true,
            ResponsesEdited::Statuses(ranges) => ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&status)),
        }
    }

    #[inline]
    pub(crate) fn drops(&self, name: &str) -> bool {
        self.edits.drops(name)
    }

    /// Whether the fields to write depend on the request.
    pub(crate) fn are_varying(&self) -> bool {
        self.text.is_none()
    }

    /// Appends the fields to write, with [`SERVER_TO_COME`] for the server's name. An invalid Location is omitted.
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

    /// The edits of one response; `rendered` are the lines from [`ResponseEdits::render`] if the edits vary.
    pub(crate) fn of_response<'a>(&'a self, rendered: &'a [u8], server: &'a str) -> Applied<'a> {
        Applied {
            edits: self,
            scope: self.scope,
            lines: self.text.as_deref().unwrap_or(rendered),
            server,
            caches: Caches::Unasked,
        }
    }
}

/// Edits applied to one response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applied<'a> {
    edits: &'a ResponseEdits,
    scope: Scope,
    lines: &'a [u8],
    server: &'a str,
    caches: Caches<'a>,
}

/// State of the Cache-Control of a response.
#[derive(Clone, Copy, Debug)]
enum Caches<'a> {
    /// The status is not known yet.
    Unasked,
    /// Rules, status, and the media type if the head does not have it.
    Asked(&'a CacheControl, u16, Option<&'a str>),
    Known(Saying<'a>),
}

impl<'a> Applied<'a> {
    /// The edits for this status; `media` is the type if the head does not have it. `None` if nothing changes.
    pub(crate) fn for_status(self, status: u16, media: Option<&'a str>) -> Option<Applied<'a>> {
        let rules = self.edits.cache_control.as_ref();
        let rules = rules.filter(|rules| rules.are_for(status));
        let scope = match self.edits.are_for(status) {
            true => self.scope,
            false => Scope::Caches,
        };
        let caches = rules.map_or(Caches::Unasked, |rules| Caches::Asked(rules, status, media));
        let is_idle = scope == Scope::Caches && rules.is_none();
        (!is_idle).then_some(Applied {
            scope,
            caches,
            ..self
        })
    }

    /// The edits of a generated error response.
    pub(crate) fn for_errors(self) -> Option<Applied<'a>> {
        let scope = match &self.edits.on {
            ResponsesEdited::OfRoute => Scope::Caches,
            ResponsesEdited::Always | ResponsesEdited::Statuses(_) => self.scope,
        };
        let is_idle = scope == Scope::Caches && self.edits.cache_control.is_none();
        (!is_idle).then_some(Applied { scope, ..self })
    }

    /// The edits of a server's response with this status and these fields.
    pub(crate) fn for_server(self, status: u16, headers: &[Header<'_>]) -> Option<Applied<'a>> {
        let applied = match self.for_status(status, None) {
            Some(applied) => applied,
            None if self.edits.hidden.is_empty() => return None,
            None => Applied {
                scope: Scope::Caches,
                ..self
            },
        };
        Some(applied.knowing(|| Said::of(headers)))
    }

    pub(crate) fn refuse(&self, headers: &[Header<'_>]) -> bool {
        let refused = &self.edits.refused;
        !refused.is_empty() && headers.iter().any(|header| refused.contain(header.name))
    }

    /// Whether this field of a server is removed from responses of every status.
    pub(crate) fn hide(&self, name: &str) -> bool {
        self.edits.hidden.contain(name)
    }

    /// Whether responses of servers get a `Server` field of this proxy.
    pub(crate) fn name_us(&self) -> bool {
        self.hide("server") && !(self.change_fields() && self.edits.drops("server"))
    }

    /// Determines the Cache-Control from the fields of a head before it is edited.
    pub(crate) fn knowing<'h>(self, said: impl FnOnce() -> Said<'h>) -> Applied<'a>
    where
        'a: 'h,
    {
        let Caches::Asked(rules, status, media) = self.caches else {
            return self;
        };
        let mut said = said();
        if self.change_fields() {
            said.lines(self.lines);
        }
        Applied {
            caches: Caches::Known(rules.saying(status, media, said)),
            ..self
        }
    }

    /// Whether trailers of servers must be checked.
    pub(crate) fn change_trailers(&self) -> bool {
        self.change_fields() || !self.edits.hidden.is_empty()
    }

    /// Whether edits other than Cache-Control apply.
    pub(crate) fn change_fields(&self) -> bool {
        self.scope == Scope::Fields
    }

    /// Whether a server's field with this name is removed.
    #[inline]
    pub(crate) fn drops(&self, name: &str) -> bool {
        let replaced = match &self.caches {
            Caches::Known(saying) if saying.of_server == OfServer::Replaced => is_of_caches(name),
            Caches::Known(_) | Caches::Asked(..) | Caches::Unasked => false,
        };
        replaced || self.hide(name) || self.change_fields() && self.edits.drops(name)
    }

    /// Whether a field with this name is removed from a generated head.
    pub(crate) fn drops_ours(&self, name: &str) -> bool {
        self.edits.drops_ours
            && self.change_fields()
            && !is_about_coding(name.as_bytes())
            && self.edits.drops(name)
    }

    /// Bytes by which a head may grow.
    pub(crate) fn growth(&self) -> usize {
        let servers = memchr::memchr_iter(SERVER_TO_COME[0], self.lines).count();
        self.line_of_caches().len() + self.lines.len() + servers * self.server.len()
    }

    fn line_of_caches(&self) -> &'a [u8] {
        match self.caches {
            Caches::Known(saying) => saying.line,
            Caches::Asked(..) | Caches::Unasked => b"",
        }
    }

    /// Writes the added fields.
    pub(crate) fn write(&self, writer: &mut HeadWriter<'_>) {
        if self.change_fields() {
            let mut rest = self.lines;
            while let Some(at) = memchr::memchr(SERVER_TO_COME[0], rest) {
                writer.raw(&rest[..at]).raw(self.server.as_bytes());
                rest = &rest[at + 1..];
            }
            writer.raw(rest);
        }
        writer.raw(self.line_of_caches());
    }

    /// Edits a generated head, the first `length` bytes of `room`. Returns the new length, or `None` if it does not
    /// fit.
    pub(crate) fn rewrite(&self, room: &mut [u8], length: usize) -> Option<usize> {
        let kept = if self.edits.drops_ours && self.change_fields() {
            self.edits.edits.strip(&mut room[..length], is_about_coding)
        } else {
            length
        };
        let end = kept.checked_sub(b"\r\n".len())?;
        let applied = self.knowing(|| Said::of_head(&room[..end]));
        let mut writer = HeadWriter::new(&mut room[end..]);
        applied.write(&mut writer);
        writer.end().finish().map(|written| end + written)
    }
}
