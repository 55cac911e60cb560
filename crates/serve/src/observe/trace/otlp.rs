//! OTLP encoding of spans (opentelemetry-proto 1.x, `trace.proto`) with the HTTP attributes of OpenTelemetry's semantic
//! conventions. Binary protobuf, because not all collectors accept JSON.

use std::net::IpAddr;
use std::time::Duration;

use onrush_config::plan;
use onrush_engine::{Address, Instant};
use onrush_http::{Method, Version};

use super::span::{Attempt, Finished};
use crate::observe::protobuf::{Value, Writer, fields};
use crate::observe::record::{FailureClass, RequestEnd};
use crate::observe::trace::limits::USER_AGENT_TRACED_MAX;

/// `SpanKind`.
const SERVER: u64 = 2;
const CLIENT: u64 = 3;

/// `StatusCode`.
const ERROR: u64 = 2;

/// `SpanFlags`: it is known whether the parent is in another process; the parent is.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// An `ExportTraceServiceRequest` with the spans of these requests.
pub(super) fn request(tracing: &plan::Tracing, all: &[Finished]) -> Vec<u8> {
    let mut message = Writer::default();
    message.message(1, |resource_spans| {
        resource_spans.message(1, |resource| {
            let name = ("service.name", &*tracing.service_name);
            let others = tracing.resource.iter();
            let others = others.map(|(name, value)| (&**name, &**value));
            for (name, value) in std::iter::once(name).chain(others) {
                text(resource, 1, name, value.as_bytes());
            }
        });
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.text(1, b"onrush");
                scope.text(2, env!("CARGO_PKG_VERSION").as_bytes());
            });
            for request in all {
                scope_spans.message(2, |span| server_span(span, request));
                let attempts = request.span.attempts.borrow();
                for (number, attempt) in attempts.iter().enumerate() {
                    scope_spans.message(2, |span| client_span(span, request, (number, attempt)));
                }
            }
        });
    });
    message.into_bytes()
}

/// Number of spans refused by the collector, and the reason (`ExportTraceServiceResponse`).
pub(super) fn refused(response: &[u8]) -> (u64, String) {
    let mut refused = (0, String::new());
    for (field, value) in fields(response) {
        if let (1, Value::Bytes(partial)) = (field, value) {
            for (field, value) in fields(partial) {
                match (field, value) {
                    // An int64: ignore negative values.
                    (1, Value::Varint(count)) => {
                        refused.0 = i64::try_from(count).map_or(0, i64::unsigned_abs);
                    }
                    (2, Value::Bytes(why)) => refused.1 = String::from_utf8_lossy(why).into_owned(),
                    _ => {}
                }
            }
        }
    }
    refused
}

/// The message of an error response (`google.rpc.Status`), or an empty string.
pub(super) fn error_message(response: &[u8]) -> String {
    let mut all = fields(response);
    let message = all.find_map(|field| match field {
        (2, Value::Bytes(message)) => str::from_utf8(message).ok(),
        _ => None,
    });
    message.unwrap_or("").to_owned()
}

/// Converts `at` to nanoseconds since 1970.
fn moment(request: &Finished, at: Instant) -> u64 {
    let at = Duration::from_nanos(at.nanoseconds()) + request.clock;
    u64::try_from(at.as_nanos()).unwrap_or(u64::MAX)
}

fn server_span(span: &mut Writer, request: &Finished) {
    let own = request.own;
    span.bytes(1, &own.trace.get().to_be_bytes());
    span.bytes(2, &own.span.get().to_be_bytes());
    if !request.span.state.is_empty() {
        span.text(3, &request.span.state);
    }
    let mut flags = u32::from(own.flags) | HAS_IS_REMOTE;
    if let Some(parent) = request.parent {
        span.bytes(4, &parent.get().to_be_bytes());
        flags |= IS_REMOTE;
    }
    let method = method(request);
    match &request.route {
        Some(route) => span.text(5, format!("{method} {route}").as_bytes()),
        None => span.text(5, method.as_bytes()),
    }
    span.varint(6, SERVER);
    span.fixed64(7, moment(request, request.began));
    span.fixed64(8, moment(request, request.began + request.duration));
    head_attributes(span, request, method);
    way_attributes(span, request);
    span.fixed32(16, flags);
}

fn head_attributes(span: &mut Writer, request: &Finished, method: &str) {
    let entry = &request.span.entry;
    text(span, 9, "http.request.method", method.as_bytes());
    if method == OTHER {
        text(span, 9, "http.request.method_original", entry.method());
    }
    let target = entry.target();
    let path = target.split(|&byte| byte == b'?').next().unwrap_or(target);
    text(span, 9, "url.path", path);
    let scheme = request.span.scheme.text();
    text(span, 9, "url.scheme", scheme.as_bytes());
    authority_attributes(span, entry.host());
    if let Some(client) = entry.client {
        text(span, 9, "client.address", client.to_string().as_bytes());
    }
    let version: &[u8] = match entry.version {
        Version::Http10 => b"1.0",
        Version::Http11 => b"1.1",
        Version::Http2 => b"2",
    };
    text(span, 9, "network.protocol.version", version);
    let agent = entry.header(0);
    if !agent.is_empty() {
        let agent = &agent[..agent.len().min(USER_AGENT_TRACED_MAX)];
        text(span, 9, "user_agent.original", agent);
    }
}

fn way_attributes(span: &mut Writer, request: &Finished) {
    if let Some(route) = &request.route {
        text(span, 9, "http.route", route.as_bytes());
    }
    if let Some(group) = &request.group {
        text(span, 9, "onrush.upstream", group.as_bytes());
    }
    if let Some(status) = request.status {
        number(span, 9, "http.response.status_code", status.into());
    }
    if let Some(queued) = request.span.entry.queued() {
        seconds(span, "onrush.queue_time", queued);
    }
    let end = match request.end {
        RequestEnd::Complete => None,
        RequestEnd::Partial => Some("cut off"),
        RequestEnd::GivenUp => Some("client left"),
        RequestEnd::Broken => Some("connection broke"),
        RequestEnd::CutOff => Some("server stopped"),
    };
    if let Some(end) = end {
        text(span, 9, "onrush.end", end.as_bytes());
    }
    if request.is_tunnel {
        truth(span, "onrush.tunnel");
    }
    let failed_here = matches!(
        request.end,
        RequestEnd::Partial | RequestEnd::Broken | RequestEnd::CutOff
    );
    let status = request.status.filter(|&status| status >= 500);
    error(span, request.failure, status, end.filter(|_| failed_here));
}

fn client_span(span: &mut Writer, request: &Finished, (number_of, attempt): (usize, &Attempt)) {
    span.bytes(1, &request.own.trace.get().to_be_bytes());
    span.bytes(2, &attempt.id.get().to_be_bytes());
    if !request.span.state.is_empty() {
        span.text(3, &request.span.state);
    }
    span.bytes(4, &request.own.span.get().to_be_bytes());
    let method = method(request);
    span.text(5, method.as_bytes());
    span.varint(6, CLIENT);
    let whole = request.began + request.duration;
    span.fixed64(7, moment(request, attempt.began));
    span.fixed64(8, moment(request, attempt.ended.unwrap_or(whole)));
    text(span, 9, "http.request.method", method.as_bytes());
    if method == OTHER {
        let original = request.span.entry.method();
        text(span, 9, "http.request.method_original", original);
    }
    authority_attributes(span, attempt.server.as_bytes());
    match &attempt.address {
        Some(Address::Tcp(address)) => {
            let peer = address.ip().to_string();
            text(span, 9, "network.peer.address", peer.as_bytes());
            number(span, 9, "network.peer.port", address.port().into());
        }
        Some(Address::Unix(path)) => {
            let path = path.display().to_string();
            text(span, 9, "network.peer.address", path.as_bytes());
            text(span, 9, "network.transport", b"unix");
        }
        None => {}
    }
    if number_of > 0 {
        number(span, 9, "http.request.resend_count", number_of as u64);
    }
    if let Some(connected) = attempt.connected {
        seconds(span, "onrush.connect_time", connected);
    }
    let mut status = None;
    if let Some((at, code)) = attempt.responded {
        status = Some(code);
        number(span, 9, "http.response.status_code", code.into());
        span.message(11, |event| {
            event.fixed64(1, moment(request, at));
            event.text(2, b"first_byte");
        });
    }
    // The last attempt fails for the same reason as the request.
    let failure = match attempt.ended {
        Some(_) => attempt.failure,
        None => request.failure,
    };
    error(span, failure, status.filter(|&status| status >= 400), None);
    span.fixed32(16, u32::from(request.own.flags) | HAS_IS_REMOTE);
}

/// The method, or [`OTHER`] if it is not a well-known one.
fn method(request: &Finished) -> &'static str {
    let text = str::from_utf8(request.span.entry.method());
    match Method::of(text.unwrap_or("")) {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Connect => "CONNECT",
        Method::Options => "OPTIONS",
        Method::Trace => "TRACE",
        Method::Patch => "PATCH",
        Method::Other => OTHER,
    }
}

/// Value that the conventions define for unknown methods.
const OTHER: &str = "_OTHER";

/// Writes host and port, if present.
fn authority_attributes(span: &mut Writer, authority: &[u8]) {
    let Ok(authority) = str::from_utf8(authority) else {
        return;
    };
    let is_address = authority.parse::<IpAddr>().is_ok();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !is_address && port.parse::<u16>().is_ok() => {
            (host, port.parse().ok())
        }
        _ => (authority, None::<u16>),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if !host.is_empty() {
        text(span, 9, "server.address", host.as_bytes());
    }
    if let Some(port) = port {
        number(span, 9, "server.port", port.into());
    }
}

/// Writes `error.type` and the span status if the request failed.
fn error(span: &mut Writer, failure: Option<FailureClass>, status: Option<u16>, end: Option<&str>) {
    let status = status.map(|status| status.to_string());
    let why = failure
        .map(FailureClass::name)
        .or(status.as_deref())
        .or(end);
    let Some(why) = why else {
        return;
    };
    text(span, 9, "error.type", why.as_bytes());
    // A client that disconnects is not an error of this server.
    if failure != Some(FailureClass::Client) {
        span.message(15, |status| status.varint(3, ERROR));
    }
}

/// An attribute (`KeyValue` with an `AnyValue`).
fn text(writer: &mut Writer, field: u32, name: &str, value: &[u8]) {
    attribute(writer, field, name, |any| any.text(1, value));
}

fn number(writer: &mut Writer, field: u32, name: &str, value: u64) {
    attribute(writer, field, name, |any| any.varint(3, value));
}

fn truth(writer: &mut Writer, name: &str) {
    attribute(writer, 9, name, |any| any.varint(2, 1));
}

fn seconds(writer: &mut Writer, name: &str, value: Duration) {
    let bits = value.as_secs_f64().to_bits();
    attribute(writer, 9, name, |any| any.fixed64(4, bits));
}

fn attribute(writer: &mut Writer, field: u32, name: &str, value: impl FnOnce(&mut Writer)) {
    writer.message(field, |pair| {
        pair.text(1, name.as_bytes());
        pair.message(2, value);
    });
}
