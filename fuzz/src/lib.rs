//! Entry points of the fuzz targets: the checks of the http, tls, convert, bench, load, serve and packet crates' own
//! tests, on arbitrary bytes. Inputs that once failed are kept in `crashes/<target>/` and are also run by those tests.

#[path = "../../crates/http/tests/all/support/mod.rs"]
mod support;
#[path = "../../crates/convert/tests/support/checks.rs"]
mod convert_checks;
#[path = "../../crates/bench/tests/support/archive_checks.rs"]
mod archive_checks;
#[path = "../../crates/bench/tests/support/report_checks.rs"]
mod report_checks;
#[path = "../../crates/tls/tests/support/mod.rs"]
mod tls_support;

/// A request head is parsed the same at every split, and as by the reference parser.
pub fn request(input: &[u8]) {
    support::check::request(input);
}

/// A response head is parsed the same at every split, and as by the reference parser.
pub fn response(input: &[u8]) {
    support::check::response(input);
}

/// A chunked body is decoded the same in any pieces, and as by the reference decoder.
pub fn chunked(input: &[u8]) {
    support::check::chunked(input);
}

/// A stream of requests with bodies gives the same events in any pieces.
pub fn pipeline(input: &[u8]) {
    support::check::pipeline(input);
}

/// A PROXY protocol header is parsed the same at every split, and as by `ppp`.
pub fn proxy_protocol(input: &[u8]) {
    support::check::proxy_protocol(input);
}

/// The element that a trusted proxy adds to a forwarding field is found after any other content.
pub fn forwarded(input: &[u8]) {
    support::check::forwarded(input);
}

/// Field values are parsed as by slower reference parsers, and written values are read back.
pub fn fields(input: &[u8]) {
    support::check::fields(input);
}

/// HPACK blocks are decoded as by another implementation, and their fields survive encoding.
pub fn hpack(input: &[u8]) {
    support::check::hpack(input);
}

/// HTTP/2 frames have the same effect in any pieces, on a client and a server.
pub fn http2(input: &[u8]) {
    support::check::http2(input);
}

/// A TLS server refuses everything except a handshake.
pub fn tls_handshake(input: &[u8]) {
    tls_support::garbage(input);
}

/// A tampered TLS connection delivers only bytes that were sent.
pub fn tls_tampering(input: &[u8]) {
    tls_support::tampering(input);
}

/// Any nginx text gives a configuration of Onrush, or an error with its position.
pub fn convert_nginx(input: &[u8]) {
    convert_checks::nginx_any(input);
}

/// Any HAProxy text gives a configuration of Onrush, or an error with its position.
pub fn convert_haproxy(input: &[u8]) {
    convert_checks::haproxy_any(input);
}

/// Any output of an HTTP client gives a report with measurable numbers, or an error.
pub fn client_report(input: &[u8]) {
    report_checks::any(input);
}

/// Lines between the controller and an agent are parsed and written back unchanged, or refused.
pub fn agent_lines(input: &[u8]) {
    onrush_bench::run::hear_anything(input);
}

/// Any `raw.csv` gives comparable rows, or an error with its position.
pub fn archive_rows(input: &[u8]) {
    archive_checks::rows(input);
}

/// Any `environment.json` gives facts, or an error with its position.
pub fn archive_facts(input: &[u8]) {
    archive_checks::facts(input);
}

/// A memcached server's responses are parsed the same in any pieces, and parsing ends.
pub fn memcached_answers(input: &[u8]) {
    onrush_load::untrusted::memcached_answers(input);
}

/// Datagrams of a memcached response are joined in any order, and their memory is bounded.
pub fn memcached_datagrams(input: &[u8]) {
    onrush_load::untrusted::memcached_datagrams(input);
}

/// A gRPC server's responses are parsed the same in any pieces, and as by a slower parser.
pub fn grpc_responses(input: &[u8]) {
    onrush_load::untrusted::grpc_responses(input);
}

/// Any descriptor set gives messages that can be read back, or an error.
pub fn grpc_descriptors(input: &[u8]) {
    onrush_load::untrusted::grpc_descriptors(input);
}

/// Any datagram is parsed as the protocol that it declares, or rejected.
pub fn datagram(input: &[u8]) {
    onrush_packet::untrusted::datagram(input);
}

/// Test datagrams with any numbers are counted once each.
pub fn arrivals(input: &[u8]) {
    onrush_packet::untrusted::arrivals(input);
}

/// Commands of memcached's text protocol have the same responses in any pieces.
pub fn memcached_commands(input: &[u8]) {
    onrush_load_targets::memcached::check_any_input(input);
}
