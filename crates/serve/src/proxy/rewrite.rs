//! Heads on their way through: what belongs to one connection stays there (RFC 9110 7.6.1), what the route says is
//! changed, servers are told of the client, and the rest passes unchanged and in its order.

use onrush_config::plan::{self, PathEdit, PathMatch};
use onrush_engine::{BUFFER_BYTES, Buffer};
use onrush_http::forwarded::{
    Scheme, Told, is_forwarding_field, write_forwarded, write_x_forwarded,
};
use onrush_http::hop::{
    accepts_trailers, connection_fields, is_disguised, is_hop_by_hop, via_count,
};
use onrush_http::request::RequestHead;
use onrush_http::response::ResponseHead;
use onrush_http::write::HeadWriter;
use onrush_http::{Framing, Header, Refusal, Version, header_is};

use super::group::Group;
use super::host::{HOST_BYTES_MAX, HostRule};
use super::tunnel;
use crate::asker::Asker;
use crate::compress::Change;
use crate::edits::{Applied, Edits, Spelling};
use crate::limits::HOPS_MAX;
use crate::path;
use crate::variables::Facts;
use crate::worker::Worker;

/// Bytes by which an answer's head may grow on its way without a route's edits: by fields of our own, and by two in each
/// line of a server that writes neither the space behind the colon nor the CR.
pub(crate) const GROWTH_MAX: usize = 640;

/// What changes in the requests of a route that are forwarded.
#[derive(Debug)]
pub(crate) struct Rules {
    x_forwarded: bool,
    forwarded: bool,
    host: HostRule,
    path: PathRule,
    /// Whether names pass that could be taken for others: see [`is_disguised`].
    spelling: Spelling,
    edits: Edits,
    /// Whether the edits take a field that is added here.
    edits_drop_ours: bool,
    /// A head grows to at most so many times its length, twice its host and `bytes_fixed`.
    factor: usize,
    bytes_fixed: usize,
}

/// What the server gets to see as path.
#[derive(Debug)]
enum PathRule {
    /// What the client asked for.
    Client,
    /// That with this in the place of the route's prefix.
    Prefix(String),
    /// This, in the place of the only path that the route matches.
    Whole(String),
}

/// How Via names us, whichever of us it is (RFC 9110 7.6.3).
const PSEUDONYM: &str = "onrush";

/// The fields that are added to a request here.
const OURS: [&str; 5] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];

impl Rules {
    pub(crate) fn new(route: &plan::Route, forwarded: &plan::Forwarded) -> Self {
        let spelling = match route.edits.keeps_underscores {
            true => Spelling::Exact,
            false => Spelling::Loose,
        };
        let mut edits = Edits::new(&route.edits.request, spelling);
        let host = HostRule::take(&mut edits);
        let path = match &route.path_edit {
            PathEdit::Keep => PathRule::Client,
            PathEdit::ReplacePrefix(by) => PathRule::replacing(&route.when.path, by),
        };
        let (variables, bytes) = edits.extent();
        let (host_variables, host_bytes) = host.extent();
        Self {
            x_forwarded: forwarded.x_forwarded,
            forwarded: forwarded.forwarded,
            host,
            spelling,
            edits_drop_ours: edits.drops_one_of(&OURS),
            // The head itself, and once more the whole of it for each place where any part of it may stand again: the
            // variables, and in Forwarded the host that a proxy told of.
            factor: 1 + variables + host_variables + usize::from(forwarded.forwarded),
            bytes_fixed: GROWTH_MAX
                + bytes
                + host_bytes
                + path.bytes()
                + (variables + host_variables) * VARIABLE_BYTES_MAX,
            path,
            edits,
        }
    }

    /// Whether a trailer of this name passes to a server. Not one whose field would not pass: servers do put trailers and
    /// fields into one place.
    pub(crate) fn pass_trailer(&self, name: &[u8]) -> bool {
        str::from_utf8(name).is_ok_and(|name| {
            !is_hop_by_hop(name)
                && !is_untrue(name, self, false)
                && !self.is_mistakable(name)
                && !self.edits.drops(name)
        })
    }

    /// Whether a name could be taken for another one, and that matters.
    #[inline]
    fn is_mistakable(&self, name: &str) -> bool {
        self.spelling == Spelling::Loose && is_disguised(name)
    }

    /// Whether the request's number is written.
    pub(crate) fn needs_request_id(&self) -> bool {
        self.edits.needs_request_id() || self.host.needs_request_id()
    }
}

/// The longest text of a variable that is not part of the head: a group's name, what TLS says.
pub(crate) const VARIABLE_BYTES_MAX: usize = 512;

impl PathRule {
    /// `by` comes in the place of what `path` matches, where that is a part of it.
    fn replacing(path: &PathMatch, by: &str) -> Self {
        match path {
            // Where the prefix ends at a slash, what comes in its place does so too: `/api/` by `/v2` makes `/v2/x` of
            // `/api/x`.
            PathMatch::Prefix(prefix) if prefix.ends_with('/') && !by.ends_with('/') => {
                PathRule::Prefix(format!("{by}/"))
            }
            PathMatch::Prefix(_) | PathMatch::Any => PathRule::Prefix(by.to_owned()),
            PathMatch::Exact(_) => PathRule::Whole(by.to_owned()),
            PathMatch::Regex(_) => PathRule::Client,
        }
    }

    /// By how much a path grows at most.
    fn bytes(&self) -> usize {
        match self {
            PathRule::Client => 0,
            PathRule::Prefix(by) | PathRule::Whole(by) => by.len(),
        }
    }
}

/// The field by which each hop names itself, with the version it received (RFC 9110 7.6.3).
fn via(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"Via: 1.0 onrush\r\n",
        Version::Http11 => b"Via: 1.1 onrush\r\n",
    }
}

/// Why the request may not be forwarded, if it may not: it goes round, its route gives it no host, or its head and what
/// is added to it do not fit a buffer.
///
/// # Errors
/// When the core is out of buffers.
#[inline]
pub(crate) fn objection(
    head: &RequestHead<'_, '_>,
    rules: &Rules,
    asker: Asker<'_>,
) -> Result<Option<Refusal>, onrush_engine::Error> {
    if via_count(head.headers, PSEUDONYM) > HOPS_MAX {
        return Ok(Some(Refusal::new(508, "it has come by too often")));
    }
    let facts = Facts {
        asker,
        head,
        server: b"",
    };
    if !rules.host.is_host(&facts) {
        let reason = "what its route makes of it as Host is no host";
        return Ok(Some(Refusal::new(400, reason)));
    }
    let fits = request_fits(head, rules, asker)?;
    let reason = "no room is left for what is added to its head";
    Ok((!fits).then(|| Refusal::new(431, reason)))
}

#[inline]
fn request_fits(
    head: &RequestHead<'_, '_>,
    rules: &Rules,
    asker: Asker<'_>,
) -> Result<bool, onrush_engine::Error> {
    let host_bytes = head.authority.map_or(0, str::len);
    if head.bytes * rules.factor + 2 * host_bytes + rules.bytes_fixed <= BUFFER_BYTES {
        return Ok(true);
    }
    request_fits_exactly(head, rules, asker)
}

/// Tries it, with the longest Host that can come of it.
#[cold]
fn request_fits_exactly(
    head: &RequestHead<'_, '_>,
    rules: &Rules,
    asker: Asker<'_>,
) -> Result<bool, onrush_engine::Error> {
    let authority = str::from_utf8(&[b'h'; HOST_BYTES_MAX]).expect("letters");
    let mut buffer = asker.worker.core.buffer()?;
    Ok(write_request(head, authority, rules, asker, buffer.spare()).is_some())
}

/// Writes the request's head for a server; `authority` is its Host when the request has none. That it fits has been
/// seen by [`objection`].
pub(crate) fn request(
    head: &RequestHead<'_, '_>,
    authority: &str,
    asker: Asker<'_>,
    out: &mut Buffer,
) {
    let target = asker.target().expect("a request is forwarded by its route");
    let bytes = write_request(head, authority, &target.rules, asker, out.spare());
    out.fill(bytes.expect("its size was seen before"));
}

/// [`request`] behind what stands in `out`, if there is room for it.
pub(crate) fn request_if_it_fits(
    head: &RequestHead<'_, '_>,
    authority: &str,
    asker: Asker<'_>,
    out: &mut Buffer,
) -> bool {
    let target = asker.target().expect("a request is forwarded by its route");
    let written = write_request(head, authority, &target.rules, asker, out.spare());
    if let Some(bytes) = written {
        out.fill(bytes);
    }
    written.is_some()
}

fn write_request(
    head: &RequestHead<'_, '_>,
    authority: &str,
    rules: &Rules,
    asker: Asker<'_>,
    out: &mut [u8],
) -> Option<usize> {
    let mut writer = HeadWriter::new(out);
    writer.raw(head.method_text.as_bytes()).raw(b" ");
    write_path(head, rules, asker, &mut writer);
    if let Some(query) = head.query {
        writer.raw(b"?").raw(query.as_bytes());
    }
    writer.raw(b" HTTP/1.1\r\nHost: ");
    let facts = Facts {
        asker,
        head,
        server: b"",
    };
    rules
        .host
        .write(head.authority, authority, &facts, &mut writer);
    writer.raw(b"\r\n");
    let is_trusted = asker.is_trusted();
    // HTTP/1.0 has no expectations, so what stands there was ignored; in HTTP/1.1 it would mean something (RFC 9110 10.1.1).
    let is_old = head.version == Version::Http10;
    let has_options = fields(head.headers, &mut writer, |name| {
        header_is(name, "host")
            || (is_old && header_is(name, "expect"))
            || is_untrue(name, rules, is_trusted)
            || rules.is_mistakable(name)
            || rules.edits.drops(name)
    });
    if has_options {
        options(head, &mut writer);
    }
    if head.framing == Framing::Chunked {
        writer.chunked();
    }
    if rules.x_forwarded || rules.forwarded {
        tell(head, rules, asker, is_trusted, &mut writer);
    }
    writer.raw(via(head.version));
    if rules.edits_drop_ours {
        let bytes = writer.end().finish()?;
        return rules.edits.rewrite(out, bytes, &facts);
    }
    rules.edits.render(&facts, &mut |bytes| {
        writer.raw(bytes);
    });
    writer.end().finish()
}

/// Asks the server for what its client asks of us and we pass on: a tunnel, and trailers (RFC 9110 10.1.4).
#[cold]
fn options(head: &RequestHead<'_, '_>, writer: &mut HeadWriter<'_>) {
    let wants_trailers = accepts_trailers(head.headers) && is_named("te", head.headers);
    match (tunnel::is_asked(head), wants_trailers) {
        (true, true) => tunnel::ask(&["TE"], writer),
        (true, false) => tunnel::ask(&[], writer),
        (false, true) => {
            writer.raw(b"Connection: TE\r\n");
        }
        (false, false) => {}
    }
    if wants_trailers {
        writer.raw(b"TE: trailers\r\n");
    }
}

fn write_path(
    head: &RequestHead<'_, '_>,
    rules: &Rules,
    asker: Asker<'_>,
    writer: &mut HeadWriter<'_>,
) {
    let replacement = match &rules.path {
        PathRule::Prefix(replacement) if head.path != "*" => replacement,
        PathRule::Whole(path) => {
            writer.raw(path.as_bytes());
            return;
        }
        PathRule::Client | PathRule::Prefix(_) => {
            writer.raw(head.path.as_bytes());
            return;
        }
    };
    let rest = path::rest(head.path, asker.prefix());
    let mut rest = &*rest;
    if replacement.ends_with('/') {
        rest = rest.strip_prefix('/').unwrap_or(rest);
    }
    writer.raw(replacement.as_bytes()).raw(rest.as_bytes());
}

/// Whether a field of the request is about clients and does not pass: because the peer is not believed, or because it
/// is written anew.
#[inline]
fn is_untrue(name: &str, rules: &Rules, is_trusted: bool) -> bool {
    match name.len() {
        9 => header_is(name, "forwarded") && (rules.forwarded || !is_trusted),
        13.. if name.as_bytes()[0] | 0x20 == b'x' => {
            is_x_forwarded(name)
                && (!is_trusted || (rules.x_forwarded && is_forwarding_field(name)))
        }
        _ => false,
    }
}

/// Any of the family, known or not.
fn is_x_forwarded(name: &str) -> bool {
    const FAMILY: &str = "x-forwarded-";
    name.get(..FAMILY.len())
        .is_some_and(|name| name.eq_ignore_ascii_case(FAMILY))
}

/// Tells the server about the client.
fn tell(
    head: &RequestHead<'_, '_>,
    rules: &Rules,
    asker: Asker<'_>,
    is_trusted: bool,
    writer: &mut HeadWriter<'_>,
) {
    let mut told = Told {
        address: asker.peer(),
        scheme: asker.client.scheme,
        host: head.authority,
    };
    let mut received: &[Header<'_>] = &[];
    if is_trusted && let Some(client) = asker.told(head.headers) {
        received = head.headers;
        told.scheme = client.scheme.unwrap_or(told.scheme);
        told.host = client.host.or(told.host);
    }
    if rules.x_forwarded {
        write_x_forwarded(&told, received, writer);
    }
    if rules.forwarded {
        write_forwarded(&told, received, writer);
    }
}

/// How the connection to the client goes on behind an answer, and how its body is framed there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Onward<'g> {
    pub(crate) version: Version,
    pub(crate) afterwards: Afterwards,
    pub(crate) chunked: bool,
    /// The server, with its group, that the client is to come back to, by the scheme it came by.
    pub(crate) cookie: Option<(&'g Group, u32, Scheme)>,
    /// What encoding, or leaving it, changes.
    pub(crate) change: Change,
}

/// What becomes of the client's connection behind an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Afterwards {
    NextRequest,
    End,
    Tunnel,
}

/// The room that an answer's head of `bytes` needs, as far as a buffer has it.
pub(crate) fn response_room(bytes: usize, edits: Option<&Applied<'_>>) -> usize {
    let growth = edits.map_or(0, Applied::growth);
    (bytes + GROWTH_MAX + growth).min(BUFFER_BYTES)
}

/// An answer's head and what is added to it do not fit a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLarge;

/// Writes the answer's head for the client. `out` has the room that [`response_room`] says. Returns whether its
/// Connection names fields, which trailers may be among.
///
/// # Errors
/// When that is not enough; then nothing is written.
pub(crate) fn response(
    head: &ResponseHead<'_, '_>,
    onward: Onward<'_>,
    worker: &Worker,
    edits: Option<&Applied<'_>>,
    out: &mut Buffer,
) -> Result<bool, TooLarge> {
    let mut writer = HeadWriter::new(out.spare());
    status_line(head, &mut writer);
    let mut is_dated = false;
    let change = onward.change;
    let is_edited = |name: &str| edits.is_some_and(|edits| edits.drops(name));
    let names_fields = fields(head.headers, &mut writer, |name| {
        is_dated |= header_is(name, "date");
        matches!(head.status, 101 | 204) && is_length(name) || change.drops(name) || is_edited(name)
    });
    change.write(head.headers, &mut writer, is_edited);
    if !is_dated {
        writer.date(&worker.date());
    }
    if onward.chunked {
        writer.chunked();
    }
    if let Some((group, server, scheme)) = onward.cookie {
        group.write_cookie(server, scheme, &mut writer);
    }
    match onward.afterwards {
        Afterwards::Tunnel => tunnel::ask(&[], &mut writer),
        Afterwards::End => {
            writer.connection_close();
        }
        Afterwards::NextRequest if onward.version == Version::Http10 => {
            writer.keep_alive();
        }
        Afterwards::NextRequest => {}
    }
    if let Some(edits) = edits {
        edits.write(&mut writer);
    }
    let bytes = writer.end().finish().ok_or(TooLarge)?;
    out.fill(bytes);
    Ok(names_fields)
}

/// Writes an interim answer's head (1xx) for the client, without what `edits` remove or set: that comes, or does not, with
/// the final one, whose status is not known yet.
pub(crate) fn interim(head: &ResponseHead<'_, '_>, edits: Option<&Applied<'_>>, out: &mut Buffer) {
    let mut writer = HeadWriter::new(out.spare());
    status_line(head, &mut writer);
    fields(head.headers, &mut writer, |name| {
        is_length(name) || edits.is_some_and(|edits| edits.drops(name))
    });
    let bytes = writer.end().finish().expect("the caller made room");
    out.fill(bytes);
}

/// Servers do say that an answer without a body has 0 bytes, which none but that of a HEAD or 304 may say (RFC 9110 8.6).
fn is_length(name: &str) -> bool {
    header_is(name, "content-length")
}

fn status_line(head: &ResponseHead<'_, '_>, writer: &mut HeadWriter<'_>) {
    let digit = |place: u16| b'0' + (head.status / place % 10) as u8;
    let mut line = *b"HTTP/1.1 000 ";
    line[9..12].copy_from_slice(&[digit(100), digit(10), digit(1)]);
    writer.raw(&line).raw(head.reason.as_bytes()).raw(b"\r\n");
}

/// Writes the fields that travel on, less those that `dropped` says. Returns whether Connection says more than how to go
/// on.
fn fields(
    headers: &[Header<'_>],
    writer: &mut HeadWriter<'_>,
    mut dropped: impl FnMut(&str) -> bool,
) -> bool {
    let mut names_more = false;
    for header in headers {
        names_more |= header_is(header.name, "connection")
            && connection_fields(std::slice::from_ref(header))
                .next()
                .is_some();
    }
    for header in headers {
        if is_hop_by_hop(header.name) || dropped(header.name) {
            continue;
        }
        if names_more && is_named(header.name, headers) {
            continue;
        }
        writer.header(header.name, header.value);
    }
    names_more
}

/// Whether Connection says that the field is for this connection only. Framing is never given away by that.
fn is_named(name: &str, headers: &[Header<'_>]) -> bool {
    !header_is(name, "content-length")
        && connection_fields(headers).any(|named| named.eq_ignore_ascii_case(name.as_bytes()))
}
