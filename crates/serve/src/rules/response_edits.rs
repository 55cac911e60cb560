//! Edits of a route's response heads.

use onrush_config::plan::{ResponseFilter, Route, ServerCacheControl};
use onrush_http::Header;
use onrush_http::write::HeadWriter;

use crate::limits::RESPONSE_LINES_BYTES_MAX;
use crate::routing::variables::{SERVER_PLACEHOLDER, VariableValues};
use crate::rules::cache_control::{CacheControl, CacheControlValue, CacheFields, is_cache_field};
use crate::rules::compress::describes_coding;
use crate::rules::edits::{Edits, FieldNames, NameComparison};
use crate::rules::location::Location;

#[derive(Debug)]
pub(crate) struct ResponseEdits {
    edits: Edits,
    on: ResponseFilter,
    /// Fields of servers that are hidden in responses of every status, independently of `on`.
    hidden: FieldNames,
    /// A server's response with one of these fields is refused.
    refused: FieldNames,
    /// Location fields that depend on the request; a client must not be able to choose their host.
    locations: Vec<Location>,
    /// The fields to write, if they do not depend on the request.
    text: Option<Vec<u8>>,
    /// Whether generated fields are removed.
    removes_generated: bool,
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
const CORS_FIELDS: [&str; 6] = [
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "access-control-expose-headers",
    "access-control-allow-methods",
    "access-control-allow-headers",
    "access-control-max-age",
];

/// The fields of generated responses that can be edited. Those in a fixed response's configuration are edited when it
/// is prepared.
const GENERATED_FIELDS: [&str; 17] = [
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
        let hidden = FieldNames::of(&plan.upstream.hide, NameComparison::Loose);
        let refused = FieldNames::of(&plan.upstream.refuse, NameComparison::Loose);
        let scope = match plan.response.is_empty() && cors.is_none() {
            true if cache_control.is_none() && plan.upstream.is_empty() => return None,
            true => Scope::Caches,
            false => Scope::Fields,
        };
        let mut edits = Edits::new(&plan.response, NameComparison::Loose);
        if cors.is_some() {
            CORS_FIELDS.iter().for_each(|name| edits.remove_field(name));
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
            removes_generated: edits.drops_one_of(&GENERATED_FIELDS),
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
    pub(crate) fn applies_to(&self, status: u16) -> bool {
        match &self.on {
            ResponseFilter::RouteOnly | ResponseFilter::Always => true,
            ResponseFilter::Statuses(ranges) => ranges
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

    /// Appends the fields to write, with [`SERVER_PLACEHOLDER`] for the server's name. An invalid Location is omitted.
    pub(crate) fn render(&self, facts: &VariableValues<'_>, lines: &mut Vec<u8>) {
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
    pub(crate) fn of_response<'a>(
        &'a self,
        rendered: &'a [u8],
        server: &'a str,
    ) -> AppliedEdits<'a> {
        AppliedEdits {
            edits: self,
            scope: self.scope,
            lines: self.text.as_deref().unwrap_or(rendered),
            server,
            caches: CacheControlState::Unasked,
        }
    }
}

/// Edits applied to one response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AppliedEdits<'a> {
    edits: &'a ResponseEdits,
    scope: Scope,
    lines: &'a [u8],
    server: &'a str,
    caches: CacheControlState<'a>,
}

/// State of the Cache-Control of a response.
#[derive(Clone, Copy, Debug)]
enum CacheControlState<'a> {
    /// The status is not known yet.
    Unasked,
    /// Rules, status, and the media type if the head does not have it.
    Asked(&'a CacheControl, u16, Option<&'a str>),
    Known(CacheControlValue<'a>),
}

impl<'a> AppliedEdits<'a> {
    /// The edits for this status; `media` is the type if the head does not have it. `None` if nothing changes.
    pub(crate) fn for_status(
        self,
        status: u16,
        media: Option<&'a str>,
    ) -> Option<AppliedEdits<'a>> {
        let rules = self.edits.cache_control.as_ref();
        let rules = rules.filter(|rules| rules.are_for(status));
        let scope = match self.edits.applies_to(status) {
            true => self.scope,
            false => Scope::Caches,
        };
        let caches = rules.map_or(CacheControlState::Unasked, |rules| {
            CacheControlState::Asked(rules, status, media)
        });
        let is_idle = scope == Scope::Caches && rules.is_none();
        (!is_idle).then_some(AppliedEdits {
            scope,
            caches,
            ..self
        })
    }

    /// The edits of a generated error response.
    pub(crate) fn for_errors(self) -> Option<AppliedEdits<'a>> {
        let scope = match &self.edits.on {
            ResponseFilter::RouteOnly => Scope::Caches,
            ResponseFilter::Always | ResponseFilter::Statuses(_) => self.scope,
        };
        let is_idle = scope == Scope::Caches && self.edits.cache_control.is_none();
        (!is_idle).then_some(AppliedEdits { scope, ..self })
    }

    /// The edits of a server's response with this status and these fields.
    pub(crate) fn for_server(
        self,
        status: u16,
        headers: &[Header<'_>],
    ) -> Option<AppliedEdits<'a>> {
        let applied = match self.for_status(status, None) {
            Some(applied) => applied,
            None if self.edits.hidden.is_empty() => return None,
            None => AppliedEdits {
                scope: Scope::Caches,
                ..self
            },
        };
        Some(applied.with_cache_control(|| CacheFields::of(headers)))
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
    pub(crate) fn set_server_field(&self) -> bool {
        self.hide("server") && !(self.change_fields() && self.edits.drops("server"))
    }

    /// Determines the Cache-Control from the fields of a head before it is edited.
    pub(crate) fn with_cache_control<'h>(
        self,
        said: impl FnOnce() -> CacheFields<'h>,
    ) -> AppliedEdits<'a>
    where
        'a: 'h,
    {
        let CacheControlState::Asked(rules, status, media) = self.caches else {
            return self;
        };
        let mut said = said();
        if self.change_fields() {
            said.lines(self.lines);
        }
        AppliedEdits {
            caches: CacheControlState::Known(rules.value_for(status, media, said)),
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
            CacheControlState::Known(saying) if saying.of_server == ServerCacheControl::Replace => {
                is_cache_field(name)
            }
            CacheControlState::Known(_)
            | CacheControlState::Asked(..)
            | CacheControlState::Unasked => false,
        };
        replaced || self.hide(name) || self.change_fields() && self.edits.drops(name)
    }

    /// Whether a field with this name is removed from a generated head.
    pub(crate) fn removes_generated(&self, name: &str) -> bool {
        self.edits.removes_generated
            && self.change_fields()
            && !describes_coding(name.as_bytes())
            && self.edits.drops(name)
    }

    /// Bytes by which a head may grow.
    pub(crate) fn growth(&self) -> usize {
        let servers = memchr::memchr_iter(SERVER_PLACEHOLDER[0], self.lines).count();
        self.cache_control_line().len() + self.lines.len() + servers * self.server.len()
    }

    fn cache_control_line(&self) -> &'a [u8] {
        match self.caches {
            CacheControlState::Known(saying) => saying.line,
            CacheControlState::Asked(..) | CacheControlState::Unasked => b"",
        }
    }

    /// Writes the added fields.
    pub(crate) fn write(&self, writer: &mut HeadWriter<'_>) {
        if self.change_fields() {
            let mut rest = self.lines;
            while let Some(at) = memchr::memchr(SERVER_PLACEHOLDER[0], rest) {
                writer.raw(&rest[..at]).raw(self.server.as_bytes());
                rest = &rest[at + 1..];
            }
            writer.raw(rest);
        }
        writer.raw(self.cache_control_line());
    }

    /// Edits a generated head, the first `length` bytes of `room`. Returns the new length, or `None` if it does not
    /// fit.
    pub(crate) fn rewrite(&self, room: &mut [u8], length: usize) -> Option<usize> {
        let kept = if self.edits.removes_generated && self.change_fields() {
            self.edits
                .edits
                .strip(&mut room[..length], describes_coding)
        } else {
            length
        };
        let end = kept.checked_sub(b"\r\n".len())?;
        let applied = self.with_cache_control(|| CacheFields::of_head(&room[..end]));
        let mut writer = HeadWriter::new(&mut room[end..]);
        applied.write(&mut writer);
        writer.end().finish().map(|written| end + written)
    }
}
