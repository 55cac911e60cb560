//! Writes the head of a request for a server.

use onrush_engine::{BUFFER_BYTES, Buffer};
use onrush_http::forwarded::{ForwardedInfo, write_forwarded, write_x_forwarded};
use onrush_http::hop::{accepts_trailers, via_count};
use onrush_http::request::RequestHead;
use onrush_http::trace_context::is_trace_field;
use onrush_http::write::HeadWriter;
use onrush_http::{Framing, Header, Refusal, Version, header_is};

use super::end_to_end::{fields, is_named};
use super::target;
use crate::exchange::request_context::RequestContext;
use crate::limits::HOPS_MAX;
use crate::proxy::upgrade;
use crate::routing::variables::VariableValues;
use crate::rules::forwarding::{ForwardingRules, is_untrusted_field};
use crate::rules::host::HOST_BYTES_MAX;

/// Pseudonym in Via, common to all instances (RFC 9110 7.6.3).
const PSEUDONYM: &str = "onrush";

/// The Via field, with the version that was received (RFC 9110 7.6.3).
fn via(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"Via: 1.0 onrush\r\n",
        Version::Http11 => b"Via: 1.1 onrush\r\n",
        Version::Http2 => b"Via: 2.0 onrush\r\n",
    }
}

/// Why the request may not be forwarded: it is in a loop, its route gives it an invalid Host, servers would parse its
/// path differently, or its head with the added fields does not fit a buffer.
///
/// # Errors
/// If the core is out of buffers.
#[inline]
pub(crate) fn objection(
    head: &RequestHead<'_, '_>,
    rules: &ForwardingRules,
    context: RequestContext<'_>,
) -> Result<Option<Refusal>, onrush_engine::Error> {
    if via_count(head.headers, PSEUDONYM) > HOPS_MAX {
        return Ok(Some(Refusal::new(
            508,
            "it has passed through this proxy too often",
        )));
    }
    let facts = VariableValues {
        about: &context,
        head,
        server: b"",
    };
    if !rules.host.yields_valid_host(&facts) {
        let reason = "the Host that its route sets is not a host";
        return Ok(Some(Refusal::new(400, reason)));
    }
    if let Some(reason) = target::ambiguity(&rules.path, &facts) {
        return Ok(Some(Refusal::new(400, reason)));
    }
    let fits = request_fits(head, rules, context)?;
    let reason = "its head leaves no room for added fields";
    Ok((!fits).then(|| Refusal::new(431, reason)))
}

#[inline]
fn request_fits(
    head: &RequestHead<'_, '_>,
    rules: &ForwardingRules,
    context: RequestContext<'_>,
) -> Result<bool, onrush_engine::Error> {
    let host_bytes = head.authority.map_or(0, str::len);
    if head.bytes * rules.factor + 2 * host_bytes + rules.bytes_fixed <= BUFFER_BYTES {
        return Ok(true);
    }
    request_fits_exactly(head, rules, context)
}

/// Writes the head with the longest possible Host to find out.
#[cold]
fn request_fits_exactly(
    head: &RequestHead<'_, '_>,
    rules: &ForwardingRules,
    context: RequestContext<'_>,
) -> Result<bool, onrush_engine::Error> {
    let authority = str::from_utf8(&[b'h'; HOST_BYTES_MAX]).expect("letters");
    let mut buffer = context.worker.core.buffer()?;
    Ok(write_request(head, authority, rules, context, buffer.spare()).is_some())
}

/// Writes the head for a server, of a size checked by [`objection`]; `authority` is the Host if the request has none.
pub(crate) fn request(
    head: &RequestHead<'_, '_>,
    authority: &str,
    context: RequestContext<'_>,
    out: &mut Buffer,
) {
    let bytes = write_request(head, authority, rules_of(context), context, out.spare());
    out.fill(bytes.expect("its size was seen before"));
}

fn rules_of(context: RequestContext<'_>) -> &ForwardingRules {
    let treatment = context.matched_route_options();
    &treatment
        .expect("a request is forwarded by its route")
        .rules
}

fn write_request(
    head: &RequestHead<'_, '_>,
    authority: &str,
    rules: &ForwardingRules,
    context: RequestContext<'_>,
    out: &mut [u8],
) -> Option<usize> {
    let facts = VariableValues {
        about: &context,
        head,
        server: b"",
    };
    let mut writer = HeadWriter::new(out);
    writer.raw(head.method_text.as_bytes()).raw(b" ");
    target::write(&rules.path, &facts, &mut writer);
    writer.raw(b" HTTP/1.1\r\nHost: ");
    rules
        .host
        .write(head.authority, authority, &facts, &mut writer);
    writer.raw(b"\r\n");
    let is_trusted = context.is_trusted();
    let trace = context.exchange.trace();
    // HTTP/1.0 has no Expect, so the field was ignored; in HTTP/1.1 it would have a meaning (RFC 9110 10.1.1).
    let is_old = head.version == Version::Http10;
    let is_dropped = |name: &str| {
        header_is(name, "host")
            || (is_old && header_is(name, "expect"))
            || is_untrusted_field(name, rules, is_trusted)
            || rules.is_ambiguous_name(name)
            || (trace.is_some() && is_trace_field(name))
            || rules.edits.drops(name)
    };
    let has_options = fields(head.headers, is_dropped, |header| {
        writer.header(header.name, header.value);
    });
    if has_options || (head.version == Version::Http2 && accepts_trailers(head.headers)) {
        options(head, &mut writer);
    }
    if head.framing == Framing::Chunked {
        writer.chunked();
    }
    if rules.x_forwarded || rules.forwarded {
        tell(head, rules, context, is_trusted, &mut writer);
    }
    writer.raw(via(head.version));
    if let Some(trace) = trace {
        trace.write(head.headers, &mut writer);
    }
    if rules.edits_remove_added {
        let bytes = writer.end().finish()?;
        return rules.edits.rewrite(out, bytes, &facts);
    }
    rules.edits.render(&facts, &mut |bytes| {
        writer.raw(bytes);
    });
    writer.end().finish()
}

/// Writes Connection and TE for requests that are passed on: a tunnel, and trailers (RFC 9110 10.1.4).
fn options(head: &RequestHead<'_, '_>, writer: &mut HeadWriter<'_>) {
    // HTTP/2 has TE without Connection (RFC 9113 8.2.2).
    let is_for_us = head.version == Version::Http2 || is_named("te", head.headers);
    let wants_trailers = is_for_us && accepts_trailers(head.headers);
    match (upgrade::is_tunnel_request(head), wants_trailers) {
        (true, true) => upgrade::write_upgrade(&["TE"], writer),
        (true, false) => upgrade::write_upgrade(&[], writer),
        (false, true) => {
            writer.raw(b"Connection: TE\r\n");
        }
        (false, false) => {}
    }
    if wants_trailers {
        writer.raw(b"TE: trailers\r\n");
    }
}

/// Writes the forwarding fields about the client.
fn tell(
    head: &RequestHead<'_, '_>,
    rules: &ForwardingRules,
    context: RequestContext<'_>,
    is_trusted: bool,
    writer: &mut HeadWriter<'_>,
) {
    let mut told = ForwardedInfo {
        address: context.peer(),
        scheme: context.client.scheme,
        host: head.authority,
    };
    let mut received: &[Header<'_>] = &[];
    if is_trusted && let Some(client) = context.reported_client(head.headers) {
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
