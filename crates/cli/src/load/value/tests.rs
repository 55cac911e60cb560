//! One list of amounts, read by every flag, key and condition of that kind.

use std::fmt::Debug;
use std::path::Path;

use clap::Parser;
use onrush_load::target::Target;
use onrush_load::threshold::Threshold;
use onrush_load::{journey, memcached, packets};

use crate::load::arguments::Args;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// A parser with its name: returns the parsed value, or the message of the refusal.
type Reader = (&'static str, fn(&str) -> Result<String, String>);

fn shown<T: Debug, E: ToString>(read: Result<T, E>) -> Result<String, String> {
    read.map(|value| format!("{value:?}"))
        .map_err(|error| error.to_string())
}

fn flags(line: &[&str]) -> Result<onrush_load::plan::Options, String> {
    let words = ["load"].iter().chain(line);
    let mut line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
    let urls = std::mem::take(&mut line.args.urls);
    let options = line.args.options(&urls).map_err(|error| error.to_string());
    options.map(|(options, _)| options)
}

fn condition(metric: &str, text: &str) -> Result<String, String> {
    let written = format!("{metric} {text}");
    shown(Threshold::parse(&written)).map(|read| read.replace(&format!("{written:?}"), "_"))
}

fn configured(text: &str) -> Result<onrush_config::Parsed, String> {
    let text = format!(
        "{text}\n[[listen]]\naddress = \"127.0.0.1:1\"\n[[route]]\nrespond = {{ status = 200 }}\n"
    );
    let parsed = onrush_config::parse(&text, Path::new("onrush.toml"));
    parsed.map_err(|errors| errors.to_string())
}

fn experiment(keys: &str, of_work: &str) -> Result<onrush_bench::scenario::Experiment, String> {
    let text = format!(
        r#"name = "amounts"
{keys}
[program.a]
command = ["a", "{{port}}"]
[program.b]
command = ["b", "{{target}}"]
results = "wrk"
[[work]]
name = "w"
{of_work}
[[work.variant]]
name = "v"
server = "a"
client = "b"
"#
    );
    let path = Path::new("amounts.toml");
    let read = onrush_bench::scenario::read_text(path, &text, Path::new("."), None);
    read.map_err(|error| error.to_string())
}

const DURATIONS: [Reader; 5] = [
    ("a flag", |text| {
        shown(flags(&["http://a/", "--timeout", text]).map(|options| options.timeout))
    }),
    ("a key of a configuration", |text| {
        let file = format!("[timeouts]\nconnect = {text:?}");
        shown(configured(&file).map(|parsed| parsed.plan.timeouts.connect))
    }),
    ("a key of an experiment", |text| {
        let keys = format!("budget = {text:?}");
        shown(experiment(&keys, "").map(|read| read.budget))
    }),
    ("a key of a journey", |text| {
        let step = "[[journey.step]]\nurl = \"/\"\nname";
        let file =
            format!("[[journey]]\nname = \"j\"\n{step} = \"a\"\n{step} = \"b\"\nthink = {text:?}");
        let target = Target::parse("http://a/")?;
        shown(journey::parse(&file, Path::new("j.toml"), &target).map(|found| found.journeys))
    }),
    ("a condition", |text| condition("p99 >", text)),
];

const COUNTS: [Reader; 4] = [
    ("a flag", |text| {
        shown(flags(&["http://a/", "-n", text]).map(|options| options.stop))
    }),
    ("a key of a configuration", |text| {
        let file = format!("[clients]\nconnections_max = {text:?}");
        shown(configured(&file).map(|parsed| parsed.plan.clients.connections_max))
    }),
    ("a key of an experiment", |text| {
        let connections = format!("connections = {text:?}");
        shown(experiment("", &connections).map(|read| read.works[0].connections))
    }),
    ("a condition", |text| condition("errors >", text)),
];

const SIZES: [Reader; 4] = [
    ("a flag for values of memcached", |text| {
        shown(memcached::sizes::LengthDistribution::of_values(text))
    }),
    ("a flag for datagrams", |text| {
        shown(packets::size::Sizes::parse(text).map(|sizes| sizes.constant()))
    }),
    ("a key of a configuration", |text| {
        let file = format!("request_body_max = {text:?}");
        shown(configured(&file).map(|parsed| parsed.plan.request_body_max))
    }),
    ("a key of an experiment", |text| {
        let program = "[program.c]\ncommand = [\"c\"]";
        let keys = format!("{program}\nsized_files = {{ \"f\" = {text:?} }}");
        shown(experiment(&keys, "").map(|read| read.programs["c"].sized_files.clone()))
    }),
];

const RATES: [Reader; 3] = [
    ("a flag", |text| {
        shown(flags(&["http://a/", "-R", text]).map(|options| options.pace))
    }),
    ("a key of an experiment", |text| {
        let rate = format!("rate = {text:?}");
        shown(experiment("", &rate).map(|read| read.works[0].rate.clone()))
    }),
    ("a condition", |text| condition("rps >", text)),
];

const SHARES: [Reader; 4] = [
    ("a flag", |text| {
        let line = ["memcached://a", "--hit-ratio", text];
        shown(flags(&line).map(|options| options.memcached.hit_ratio))
    }),
    ("a key of a configuration", |text| {
        let file = format!("[log]\naccess = \"-\"\nsample = {text:?}");
        shown(configured(&file).map(|parsed| parsed.plan.access_log))
    }),
    ("a key of an experiment", |text| {
        let keys = format!("precision = {text:?}");
        shown(experiment(&keys, "").map(|read| read.precision))
    }),
    ("a condition", |text| condition("errors >", text)),
];

/// Checks that each text parses like its plain form, and that refused texts fail with `expected`.
fn check(readers: &[Reader], same: &[(&str, &str)], refused: &[&str], expected: &str) {
    for (whose, read) in readers {
        for (text, plain) in same {
            let value = read(plain);
            assert!(value.is_ok(), "{whose}: {plain}: {value:?}");
            assert_eq!(read(text), value, "{whose}: {text}");
        }
        for text in refused {
            let error = read(text).expect_err(&format!("{whose}: {text}"));
            assert!(error.contains(expected), "{whose}: {text}: {error}");
        }
    }
}

#[test]
fn durations_are_parsed_alike_everywhere() {
    let same = [
        ("1.5s", "1500ms"),
        (" 1 s", "1000ms"),
        (".5m", "30s"),
        ("0.01h", "36s"),
        ("500000us", "500ms"),
        ("0.0001d", "8640ms"),
    ];
    let refused = ["", "5", "1S", "1min", "1e3s", "-1s", "1h 30m"];
    check(&DURATIONS, &same, &refused, "expected a");
}

#[test]
fn counts_are_parsed_alike_everywhere() {
    let same = [("1k", "1000"), ("1.5 K", "1500"), ("0.01M", "10000")];
    check(&COUNTS, &same, &["", "k", "1kb", "-1", "1_000"], "expected");
}

#[test]
fn sizes_are_parsed_alike_everywhere() {
    let same = [("1k", "1024"), ("1.5 KiB", "1536"), (".03125M", "32768")];
    check(&SIZES, &same, &["", "k", "1kb", "1_000"], "expected");
}

#[test]
fn rates_are_parsed_alike_everywhere() {
    let same = [("1k", "1000"), ("6k/m", "100/s"), ("100 / s", "100")];
    check(&RATES, &same, &["", "/s", "5/d", "5s", "-5"], "expected");
}

#[test]
fn percentages_are_parsed_alike_everywhere() {
    let same = [("0.50 %", "0.5%"), (".5%", "0.5%"), ("10.%", "10%")];
    check(&SHARES, &same, &["", "%", "-1%", "x%", "1e-1"], "expected");
}

#[test]
fn fractional_rates_are_exact_or_refused() {
    let [(_, flag), (_, experiment), (_, condition)] = RATES;
    assert_eq!(flag("1.5/s"), flag("90/m"));
    assert_eq!(
        condition("1.5/s"),
        condition("90/m").map(|read| read.replace("90/m", "1.5/s"))
    );
    for text in ["1.5/s", "90/m", "1.4", "90/h", "0.5", "nan", "inf"] {
        let error = experiment(text).unwrap_err();
        let expected = "expected a whole number of requests per second";
        assert!(error.contains(expected), "{text}: {error}");
    }
    for key in ["error_share", "share_max", "latency"] {
        let text = format!("[upstream.a]\nservers = [\"a:1\"]\neject = {{ {key} = \"33.3%\" }}");
        let error = configured(&text).unwrap_err();
        assert!(error.contains("expected whole per cent"), "{error}");
    }
}
