//! Trace context sent to servers: which traces are continued, and the span of each attempt.

use onrush_config::plan::{Network, Networks, Plan};
use onrush_http::trace_context::TraceParent;

use crate::testing::harness::{Step, configured, forward_undisturbed_with, forward_with, send};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn tracing(keys: &str) -> impl Fn(&mut Plan) {
    let text = format!(
        "[tracing]\nendpoint = \"http://127.0.0.1:4318\"\n{keys}\n[[route]]\nsynthetic = true\n"
    );
    let tracing = configured(&text).tracing;
    move |plan| plan.tracing = tracing.clone()
}

fn trusting(plan: &mut Plan) {
    let loopback = Network::new([127, 0, 0, 0].into(), 8).expect("a prefix");
    plan.forwarded.trust = Networks(vec![loopback]);
}

/// The values of a field in a request as received by a server.
fn values<'r>(request: &'r str, name: &str) -> Vec<&'r str> {
    let fields = request.lines().filter_map(|line| line.split_once(": "));
    let fields = fields.filter(|field| field.0 == name);
    fields.map(|field| field.1).collect()
}

/// The traceparent and tracestate that a server gets if a client sends these fields.
fn told(said: &str, change: &dyn Fn(&mut Plan)) -> (Vec<String>, Vec<String>) {
    let request = format!("GET / HTTP/1.1\nHost: h\n{said}\n").replace('\n', "\r\n");
    let outcome = forward_with(change, &[&[Step::Read, send(OK)]], &request);
    let request = outcome.requests.concat().concat();
    let owned = |name| values(&request, name).into_iter().map(str::to_owned);
    (
        owned("traceparent").collect(),
        owned("tracestate").collect(),
    )
}

fn parent(values: &[String]) -> TraceParent {
    let [value] = values else {
        panic!("one traceparent: {values:?}")
    };
    TraceParent::parse(value.as_bytes()).unwrap_or_else(|| panic!("{value}"))
}

fn said(flags: &str) -> String {
    format!(
        "traceparent: 00-{TRACE}-00f067aa0ba902b7-{flags}\ntracestate: a=1\nTraceState: b=2,, c=3\n"
    )
}

fn number(digits: &str) -> u128 {
    u128::from_str_radix(digits, 16).expect("digits")
}

#[test]
fn trace_fields_are_forwarded_without_tracing() {
    let off = |plan: &mut Plan| {
        tracing("parents = \"all\"")(plan);
        plan.routes[0].tracing = onrush_config::plan::RouteTracing::Off;
    };
    for change in [&(|_: &mut Plan| {}) as &dyn Fn(&mut Plan), &off] {
        let (parents, states) = told("traceparent: junk\ntracestate: A=1\n", change);
        assert_eq!(parents, ["junk"]);
        assert_eq!(states, ["A=1"]);
        assert_eq!(told("", change), (Vec::new(), Vec::new()));
    }
}

#[test]
fn untrusted_traceparent_starts_new_trace() {
    for keys in ["", "parents = \"trusted\"", "parents = \"none\""] {
        for (sample, is_sampled) in [("sample = 1", true), ("sample = 0", false)] {
            let keys = format!("{keys}\n{sample}");
            for flags in ["00", "01"] {
                let (parents, states) = told(&said(flags), &tracing(&keys));
                let own = parent(&parents);
                assert_ne!(own.trace.get(), number(TRACE), "{keys}");
                assert_eq!(own.is_sampled(), is_sampled, "{keys}");
                assert!(states.is_empty(), "{states:?}");
            }
        }
    }
}

#[test]
fn trusted_traceparent_is_continued() {
    let trusted = |plan: &mut Plan| {
        tracing("sample = 0.5")(plan);
        trusting(plan);
    };
    let all = tracing("parents = \"all\"\nsample = 0");
    for change in [&trusted as &dyn Fn(&mut Plan), &all] {
        for (flags, is_sampled) in [("00", false), ("01", true), ("03", true), ("02", false)] {
            let (parents, states) = told(&said(flags), change);
            let own = parent(&parents);
            assert_eq!(own.trace.get(), number(TRACE));
            assert_ne!(u128::from(own.span.get()), number("00f067aa0ba902b7"));
            assert_eq!(own.is_sampled(), is_sampled, "{flags}");
            assert_eq!(format!("{:02x}", own.flags), flags);
            assert_eq!(states, ["a=1,b=2,c=3"]);
        }
        // An invalid traceparent is not continued, and its tracestate is dropped.
        for wrong in [
            "traceparent: 00-junk\ntracestate: a=1\n".to_owned(),
            "tracestate: a=1\n".to_owned(),
            format!("{0}{0}", said("01")),
        ] {
            let (parents, states) = told(&wrong, change);
            assert_ne!(parent(&parents).trace.get(), number(TRACE), "{wrong}");
            assert!(states.is_empty(), "{wrong}: {states:?}");
        }
    }
}

#[test]
fn attempts_are_child_spans() {
    let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    // The second request finds the first connection closed, and is retried on a new one.
    let died = [Step::Read, send(OK), Step::Read];
    for (sample, is_sampled) in [("sample = 1", true), ("sample = 0", false)] {
        let outcome = forward_undisturbed_with(
            &tracing(sample),
            &[&died, &[Step::Read, send(OK)]],
            &[get, get].concat(),
        );
        assert_eq!(outcome.totals.retried, 1, "{outcome:?}");
        let attempts = [
            &outcome.requests[0][0],
            &outcome.requests[0][1],
            &outcome.requests[1][0],
        ];
        let parents = attempts.map(|request| {
            let values = values(request, "traceparent");
            parent(
                &values
                    .iter()
                    .map(|&value| value.to_owned())
                    .collect::<Vec<_>>(),
            )
        });
        assert_ne!(parents[0].trace, parents[1].trace);
        assert_eq!(parents[1].trace, parents[2].trace);
        // Unsampled attempts have no spans of their own: they use the span ID of the request.
        assert_eq!(parents[1].span != parents[2].span, is_sampled);
    }
}

#[test]
fn route_edit_overrides_traceparent() {
    let edited = |plan: &mut Plan| {
        tracing("")(plan);
        let text = "[[route]]\nforward = \"http://127.0.0.1:1\"\nrequest_headers = { set = { traceparent = \"mine\" } }\n";
        plan.routes[0].edits = configured(text).routes[0].edits.clone();
    };
    assert_eq!(told(&said("01"), &edited).0, ["mine"]);
}

#[test]
fn largest_head_is_forwarded_or_refused() {
    for filler in (15_000..15_400).step_by(7) {
        let state = format!("a={}", "x".repeat(200));
        let request = format!(
            "GET / HTTP/1.1\r\nHost: h\r\nX-A: {}\r\ntraceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\ntracestate: {state}\r\n\r\n",
            "y".repeat(filler - 400)
        );
        let outcome = forward_with(
            &tracing("parents = \"all\""),
            &[&[Step::Read, send(OK)]],
            &request,
        );
        match outcome.requests.concat().first() {
            Some(request) => assert_eq!(values(request, "tracestate"), [&*state]),
            None => assert!(outcome.response.starts_with("HTTP/1.1 431 "), "{outcome:?}"),
        }
    }
}
