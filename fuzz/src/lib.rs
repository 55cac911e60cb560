//! What the targets call: the checks that the http, tls, convert, bench, load, serve and packet crates' own tests use, on bytes the fuzzer thinks of. Inputs
//! that once failed are kept in `crashes/<target>/` and read again by those tests.

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

/// A request head is the same at every cut, and what the reference reads.
pub fn request(input: &[u8]) {
    support::check::request(input);
}

/// A response head is the same at every cut, and what the reference reads.
pub fn response(input: &[u8]) {
    support::check::response(input);
}

/// A chunked body is the same in any pieces, and what the reference reads.
pub fn chunked(input: &[u8]) {
    support::check::chunked(input);
}

/// A stream of requests with bodies comes to the same events in any pieces.
pub fn pipeline(input: &[u8]) {
    support::check::pipeline(input);
}

/// A PROXY protocol header is the same at every cut, and what `ppp` reads.
pub fn proxy_protocol(input: &[u8]) {
    support::check::proxy_protocol(input);
}

/// What a trusted proxy adds to a forwarding field is found, whatever stands before it.
pub fn forwarded(input: &[u8]) {
    support::check::forwarded(input);
}

/// Values of single fields mean what slower readers say, and what is written is read back.
pub fn fields(input: &[u8]) {
    support::check::fields(input);
}

/// HPACK blocks are what another implementation reads, and their fields survive being written.
pub fn hpack(input: &[u8]) {
    support::check::hpack(input);
}

/// Frames of HTTP/2 come to the same in any pieces, at both ends.
pub fn http2(input: &[u8]) {
    support::check::http2(input);
}

/// A TLS server refuses whatever is no handshake.
pub fn tls_handshake(input: &[u8]) {
    tls_support::garbage(input);
}

/// Whatever is changed on the way of a TLS connection, nothing is received that was not sent.
pub fn tls_tampering(input: &[u8]) {
    tls_support::tampering(input);
}

/// Any text becomes a configuration of Onrush, or a sentence with its place.
pub fn convert_nginx(input: &[u8]) {
    convert_checks::nginx_any(input);
}

/// The same of HAProxy's language.
pub fn convert_haproxy(input: &[u8]) {
    convert_checks::haproxy_any(input);
}

/// What any client may print is a report whose numbers can be measured, or a sentence.
pub fn client_report(input: &[u8]) {
    report_checks::any(input);
}

/// Lines between us and an agent are understood, and said again, or refused.
pub fn agent_lines(input: &[u8]) {
    onrush_bench::run::hear_anything(input);
}

/// Any `raw.csv` has rows that can be compared, or a sentence with its place.
pub fn archive_rows(input: &[u8]) {
    archive_checks::rows(input);
}

/// The same of `environment.json`.
pub fn archive_facts(input: &[u8]) {
    archive_checks::facts(input);
}

/// Whatever a server of memcached says comes to the same in any pieces, and to an end.
pub fn memcached_answers(input: &[u8]) {
    onrush_load::untrusted::memcached_answers(input);
}

/// Datagrams of an answer of memcached make it in any order, and hold no room for good.
pub fn memcached_datagrams(input: &[u8]) {
    onrush_load::untrusted::memcached_datagrams(input);
}

/// Whatever a server of gRPC says to a call comes to the same in any pieces, and to what a slower reader says.
pub fn grpc_responses(input: &[u8]) {
    onrush_load::untrusted::grpc_responses(input);
}

/// Any descriptor set is one by which messages are written that can be read, or a sentence.
pub fn grpc_descriptors(input: &[u8]) {
    onrush_load::untrusted::grpc_descriptors(input);
}

/// Any datagram is read as what it says it is, or not at all.
pub fn datagram(input: &[u8]) {
    onrush_packet::untrusted::datagram(input);
}

/// Test datagrams of any numbers are counted once each.
pub fn arrivals(input: &[u8]) {
    onrush_packet::untrusted::arrivals(input);
}

/// Commands of memcached's text protocol are answered the same in any pieces.
pub fn memcached_commands(input: &[u8]) {
    onrush_load_targets::memcached::check_any_input(input);
}
