//! `[tracing]`, and `tracing` of a route.

use std::time::Duration;

use onrush_config::plan::{
    Collector, ParentTrust, RouteTracing, SamplingRatio, ServerAddress, Tracing,
};

use crate::support::{check_errors, parsed, warnings};

const ROUTE: &str = "[[route]]\nsynthetic = true\n";

fn tracing(keys: &str) -> Tracing {
    let text = format!("{ROUTE}[tracing]\n{keys}\n");
    parsed(&text).plan.tracing.expect("there is one")
}

#[test]
fn tracing_has_defaults() {
    let expected = Tracing {
        collector: Collector {
            address: ServerAddress::Ip("127.0.0.1:4318".parse().expect("an address")),
            tls: None,
            target: "/v1/traces".to_owned(),
            headers: Vec::new(),
            headers_file: None,
        },
        service_name: "onrush".to_owned(),
        resource: Vec::new(),
        sample: SamplingRatio::ALL,
        parents: ParentTrust::Trusted,
        batch: 512,
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(10),
        queue: 8192,
    };
    assert_eq!(tracing("endpoint = \"http://127.0.0.1:4318\""), expected);
    assert_eq!(tracing("endpoint = \"http://127.0.0.1:4318/\""), expected);
    assert_eq!(parsed(ROUTE).plan.tracing, None);
}

#[test]
fn all_tracing_keys_are_parsed() {
    let keys = "endpoint = \"https://otel.example.com/api/otlp?x=1\"\ntls = { verify = false }\nheaders = { X-Key = \"k\" }\nservice_name = \"shop\"\nresource = { \"host.name\" = \"a\" }\nsample = 0.25\nparents = \"all\"\nbatch = 10\ninterval = \"1s\"\ntimeout = \"2s\"\nqueue = \"1k\"";
    let tracing = tracing(keys);
    let collector = &tracing.collector;
    assert_eq!(collector.address.to_string(), "otel.example.com:443");
    assert_eq!(collector.target, "/api/otlp?x=1");
    assert!(collector.tls.is_some());
    assert_eq!(collector.headers, [("X-Key".to_owned(), "k".to_owned())]);
    assert_eq!(tracing.resource, [("host.name".to_owned(), "a".to_owned())]);
    assert_eq!(Some(tracing.sample), SamplingRatio::of(0.25));
    assert_eq!(
        (tracing.parents, tracing.batch, tracing.queue),
        (ParentTrust::All, 10, 1000)
    );
    let routes = "[tracing]\nendpoint = \"http://h:1\"\nsample = \"1%\"\n[[route]]\npath = \"/a\"\ntracing = \"off\"\nsynthetic = true\n[[route]]\npath = \"/b\"\ntracing = 0.5\nsynthetic = true\n[[route]]\nsynthetic = true\n";
    let plan = parsed(routes).plan;
    let sample = |ratio| SamplingRatio::of(ratio).expect("a ratio");
    let of_routes: Vec<_> = plan.routes.iter().map(|route| route.tracing).collect();
    let half = RouteTracing::Sample(sample(0.5));
    assert_eq!(of_routes, [RouteTracing::Off, half, RouteTracing::Inherit]);
    assert_eq!(plan.tracing.map(|it| it.sample), Some(sample(0.01)));
}

#[test]
fn tracing_errors_have_positions() {
    check_errors(&[
        (
            "[[route]]\nsynthetic = true\n[tracing]\nsample = 2",
            &[
                "3:1: [tracing] has no endpoint: expected the URL of a collector such as \"http://127.0.0.1:4318\"",
                "4:10: sample in [tracing] is out of range: expected a ratio from 0 to 1, or a share such as \"1%\"",
            ],
        ),
        (
            "[[route]]\nsynthetic = true\ntracing = true\n[tracing]\nendpoint = \"127.0.0.1:4318\"\nbatch = 5000",
            &[
                "3:11: tracing in [[route]] is true or false: expected a ratio from 0 to 1, or a share such as \"1%\"",
                "5:12: \"127.0.0.1:4318\" is not a URL: expected one such as \"http://127.0.0.1:4318\"",
                "6:9: batch 5000 is out of range: expected 1 to 4096",
            ],
        ),
        (
            "[[route]]\nsynthetic = true\n[tracing]\nendpoint = \"http://h:4318\"\ntls = true\nheaders = { Host = \"x\" }\nresource = { \"service.name\" = \"x\" }",
            &[
                "5:1: tls has no effect for an endpoint without TLS: expected endpoint = \"https://…\"",
                "6:20: Host is set by the server itself",
                "7:31: service.name is set by the key service_name",
            ],
        ),
    ]);
    assert_eq!(
        warnings("[[route]]\nsynthetic = true\ntracing = 0.5"),
        ["3:1: tracing has no effect without [tracing]"]
    );
}
