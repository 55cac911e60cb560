//! Scraping of metrics: protocol buffers with an independent reader, and Debian's Prometheus with the files in
//! examples/, with native histograms and without.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::administering::Administered;
use crate::application::HoldingServer;
use crate::metric_families::families;
use crate::peer::peer;
use crate::program::{Client, Program, Serve, TIMEOUT, drivers, until};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

const PROTOBUF: &str =
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

/// A server with two groups, TLS and an admin interface on TCP, and its upstream servers.
struct Scraped {
    serve: Serve,
    admin: String,
    _servers: Serve,
    directory: TempDir,
}

impl Scraped {
    fn start() -> Scraped {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).expect("it is ours");
            path.display().to_string()
        };
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a name");
        file("token", &format!("{TOKEN}\n"));
        file("certificate.pem", &made.cert.pem());
        file("key.pem", &made.signing_key.serialize_pem());
        let servers = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nsynthetic = true\n";
        let servers = Serve::start(&["--config", &file("servers.toml", servers)]);
        // An address on which nothing listens.
        let nobody = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let nobody = nobody.expect("a free port");
        let text = format!(
            r#"admin = {{ address = "127.0.0.1:0", token_file = "token" }}
[[listen]]
address = "127.0.0.1:0"
name = "plain"
[[listen]]
address = "127.0.0.1:0"
name = "secure"
tls = {{ certificate = "certificate.pem", key = "key.pem" }}
[[route]]
path = "/two"
forward = "two"
[[route]]
forward = "one"
[upstream.one]
servers = [{{ address = "{0}", connections_max = 1 }}]
[upstream.two]
servers = ["{nobody}", "{0}"]
retries = {{ count = 2 }}
"#,
            servers.address
        );
        let serve = Serve::start(&["--config", &file("onrush.toml", &text), "--threads", "2"]);
        let said = serve.program.out.wait_for("  admin interface on ");
        let mut lines = said.lines();
        let admin = lines.find_map(|line| line.strip_prefix("  admin interface on "));
        let admin = admin.expect("it was said").to_owned();
        Scraped {
            serve,
            admin,
            _servers: servers,
            directory,
        }
    }

    /// Produces traffic for every metric.
    fn use_all(&self) {
        let text = || String::from_utf8(self.scrape("text/plain")).expect("text");
        // The choice of the first server is random.
        until("a server that is taken out", || {
            self.ask("/two", 1);
            let text = text();
            let mut lines = text.lines();
            lines
                .find(|line| {
                    line.starts_with("onrush_server_ejections_total") && line.ends_with(" 1")
                })
                .map(|_| ())
        });
        // One of two requests must wait for the other, unless this program loses its CPU in between.
        until("a wait for capacity", || {
            let mut clients = [self.serve.connect(), self.serve.connect()];
            for client in &mut clients {
                client.send(b"GET /?t=30 HTTP/1.1\r\nHost: h\r\n\r\n");
            }
            for client in &mut clients {
                client.receive().expect("a response");
            }
            text()
                .contains("\nonrush_group_queue_seconds_count")
                .then_some(())
        });
        let line = self.serve.start_up_lines.lines();
        let mut line = line.filter_map(|line| line.strip_prefix("  listening on "));
        let line = line.next().expect("a line of addresses");
        let secure = line.split(", ").nth(1).expect("two addresses");
        let secure = secure.trim_end_matches(" with TLS");
        let url = format!("https://{secure}/");
        let got = Program::start(&mut peer("curl", &["-sk", &url])).finish();
        assert_eq!(got.code, Some(0), "{got:?}");
        let mistaken = TcpStream::connect(secure).expect("it listens");
        let mut mistaken = Client(mistaken);
        // Ignore the outcome: it may get a response before the connection ends.
        let _ = mistaken.exchange(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        // The connection may end before its failure is counted.
        until("a failed handshake", || {
            let text = text();
            let is_counted = |line: &str| {
                line.starts_with("onrush_tls_handshakes_failed_total") && line.ends_with(" 1")
            };
            text.lines().any(is_counted).then_some(())
        });
    }

    /// Sends requests from one client, with delays from 0 to 9 ms.
    fn ask(&self, path: &str, count: usize) {
        let mut client = self.serve.connect();
        for number in 0..count {
            let request = format!("GET {path}?t={} HTTP/1.1\r\nHost: h\r\n\r\n", number % 10);
            client.send(request.as_bytes());
            let response = client.receive().expect("a response");
            assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        }
    }

    fn scrape(&self, accept: &str) -> Vec<u8> {
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
        );
        let response = whole(&self.admin, &request);
        let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let (head, body) = response.split_at(end.expect("a head") + 4);
        let head = String::from_utf8_lossy(head);
        let kind = accept.split(';').next().unwrap_or_default();
        assert!(head.contains(&format!("Content-Type: {kind}")), "{head}");
        body.to_vec()
    }
}

/// Everything received for a request, until the connection ends.
fn whole(address: &str, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("a response");
    response
}

#[test]
fn protobuf_metrics_equal_text_metrics() {
    let server = Scraped::start();
    server.use_all();
    server.ask("/", 100);
    // The server notices a moment later that clients have closed their connections.
    let text = until("connections to be gone", || {
        let text = String::from_utf8(server.scrape("text/plain")).expect("text");
        let mut open = text
            .lines()
            .filter(|line| line.starts_with("onrush_connections_open"));
        open.all(|line| line.ends_with(" 0")).then_some(text)
    });
    let families = families(&server.scrape(PROTOBUF));
    let typed = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let typed: Vec<(&str, &str)> = typed.filter_map(|line| line.split_once(' ')).collect();
    assert_eq!(typed.len(), families.len());
    for (name, kind) in typed {
        let (its, series) = &families[name];
        assert_eq!(
            *its,
            ["counter", "gauge", "", "", "histogram"]
                .iter()
                .position(|it| *it == kind)
                .expect("a type") as u64,
            "{name}"
        );
        // Values that change by themselves are not compared.
        let moves = name.contains("core_") || name.contains("buffers");
        for series in series {
            let labels = |more: Option<String>| {
                let pairs = series
                    .labels
                    .iter()
                    .map(|(label, text)| format!("{label}=\"{text}\""));
                let mut pairs: Vec<String> = pairs.chain(more).collect();
                pairs.sort();
                pairs
            };
            let has = |end: &str, more: Option<String>, value: f64| {
                let wanted = labels(more);
                let lines = text.lines().filter_map(|line| {
                    let (series, value) = line
                        .strip_prefix(name)?
                        .strip_prefix(end)?
                        .rsplit_once(' ')?;
                    let inner = match series {
                        "" => "",
                        series => series.strip_prefix('{')?.strip_suffix('}')?,
                    };
                    let mut pairs: Vec<String> = inner
                        .split("\",")
                        .filter(|pair| !pair.is_empty())
                        .map(|pair| format!("{}\"", pair.trim_end_matches('"')))
                        .collect();
                    pairs.sort();
                    (pairs == wanted).then(|| value.parse::<f64>().ok())?
                });
                let found: Vec<f64> = lines.collect();
                assert!(
                    found == [value] || (moves && found.len() == 1),
                    "{name}{end} {wanted:?}: {value}, {found:?}"
                );
            };
            if kind != "histogram" {
                has("", None, series.value);
                continue;
            }
            has("_sum", None, series.value);
            has("_count", None, series.count as f64);
            for (bound, count) in &series.classic {
                has("_bucket", Some(format!("le=\"{bound:?}\"")), *count as f64);
            }
            if series.native.is_empty() {
                assert_eq!(name, "onrush_group_attempts");
                continue;
            }
            // Both kinds of buckets hold the same durations.
            for (bound, count) in &series.classic {
                let below = series.native.iter().filter(|(_, above, _)| above <= bound);
                assert_eq!(
                    below.map(|(_, _, count)| count).sum::<u64>(),
                    *count,
                    "{name} up to {bound}"
                );
            }
            let sum: u64 = series.native.iter().map(|(_, _, count)| count).sum();
            assert_eq!(sum, series.count, "{name}");
        }
    }
    server.serve.stop();
}

#[test]
fn forwarding_metrics_are_counted() {
    let server = Scraped::start();
    server.use_all();
    let families = families(&server.scrape(PROTOBUF));
    let series = |name: &str, labels: &[(&str, &str)]| {
        let (_, series) = &families[name];
        let mut its = series.iter().filter(|series| {
            let has = |(label, text): &(&str, &str)| series.labels[*label] == *text;
            labels.iter().all(has)
        });
        let first = its.next();
        first.unwrap_or_else(|| panic!("no {name} with {labels:?} in {families:?}"))
    };
    let sum = |name: &str, labels: &[(&str, &str)]| -> f64 {
        let (_, series) = &families[name];
        let its = series.iter().filter(|series| {
            let has = |(label, text): &(&str, &str)| series.labels[*label] == *text;
            labels.iter().all(has)
        });
        its.map(|series| series.value).sum()
    };
    let two = ("group", "two");
    // Each attempt at the address without a listener failed, and the request went to the other server.
    let retries = sum("onrush_group_retries_total", &[two]);
    assert!(retries >= 1.0, "{families:?}");
    assert_eq!(
        retries,
        sum("onrush_group_retries_total", &[two, ("reason", "connect")])
    );
    assert_eq!(
        retries,
        sum("onrush_server_responses_total", &[two, ("code", "none")])
    );
    assert_eq!(sum("onrush_server_ejections_total", &[two]), 1.0);
    let attempts = series("onrush_group_attempts", &[two]);
    let requests = sum("onrush_group_requests_total", &[two]);
    assert_eq!(
        (attempts.count as f64, attempts.value),
        (requests, requests + retries)
    );
    let bounds: Vec<f64> = attempts.classic.iter().map(|(bound, _)| *bound).collect();
    assert_eq!(bounds, [1.0, 2.0, 3.0]);
    assert_eq!(
        attempts.classic[0].1 as f64,
        requests - retries,
        "one retry each"
    );
    let is_out = |state: &str| sum("onrush_server_state", &[two, ("state", state)]);
    assert_eq!(
        (is_out("up"), is_out("ejected"), is_out("down")),
        (1.0, 1.0, 0.0)
    );
    let one = ("group", "one");
    let waited = series("onrush_group_queue_seconds", &[one]);
    assert!(waited.count >= 1 && waited.value > 0.0, "{waited:?}");
    let connected = series("onrush_group_connect_seconds", &[one]);
    assert!(connected.count >= 1, "{connected:?}");
    for (name, labels, count) in [
        (
            "onrush_tls_handshakes_total",
            [("version", "1.3"), ("resumed", "false")],
            1.0,
        ),
        (
            "onrush_tls_handshakes_failed_total",
            [("reason", "plain HTTP"); 2],
            1.0,
        ),
    ] {
        assert_eq!(sum(name, &labels), count, "{name}");
        assert_eq!(sum(name, &[]), count, "{name}");
    }
    for (label, text) in [("state", "responding"), ("state", "queued")] {
        assert_eq!(sum("onrush_requests_under_way", &[(label, text)]), 0.0);
    }
    server.serve.stop();
}

#[test]
fn times_to_first_and_last_byte_are_measured() {
    for io in drivers() {
        let application = HoldingServer::start();
        let text = format!(
            "[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [\"{}\"]\n",
            application.address
        );
        let server = Administered::start(io, &text);
        let times = || {
            let text = server.ctl(&["metrics"]).out;
            let value = |name: &str| {
                let name = format!("onrush_server_{name}{{");
                let line = text.lines().find(|line| line.starts_with(&name));
                let (_, value) = line.and_then(|line| line.rsplit_once(' '))?;
                value.parse::<f64>().ok()
            };
            let both = |what: &str| {
                Some((
                    value(&format!("{what}_count"))?,
                    value(&format!("{what}_sum"))?,
                ))
            };
            Some((both("first_byte_seconds")?, both("duration_seconds")?))
        };
        let mut client = server.serve.connect();
        client.send(b"GET /whole HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut held = application.next();
        held.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab")
            .expect("it is taken");
        client.receive().expect("a response");
        let (first, last) = times().expect("there are some");
        // A response received at once was counted once.
        assert_eq!((first.0, first), (1.0, last));
        client.send(b"GET /parts HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut held = application.next();
        held.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\na")
            .expect("it is taken");
        until("the first byte", || {
            times().filter(|(first, _)| first.0 == 2.0)
        });
        held.write_all(b"b").expect("it is taken");
        client.receive().expect("a response");
        let (first, last) = times().expect("there are some");
        assert_eq!((first.0, last.0), (2.0, 2.0));
        assert!(last.1 > first.1, "{first:?} {last:?}");
        server.serve.stop();
    }
}

#[test]
fn servers_with_same_address_share_series() {
    let application = HoldingServer::start();
    let port = application.address.rsplit_once(':').expect("a port").1;
    let text = format!(
        "[[route]]\npath = \"/plain\"\nforward = \"http://{0}\"\n\
         [[route]]\npath = \"/secure\"\nforward = \"https://{0}\"\n\
         [[route]]\nforward = \"app\"\n\
         [upstream.app]\nservers = [{{ address = \"{0}\", weight = 2 }}, {{ address = \"localhost:{port}\", weight = 3 }}]\n",
        application.address
    );
    let server = Administered::start("epoll", &text);
    let metrics = || server.ctl(&["metrics"]).out;
    let weight = format!(
        "onrush_server_weight{{group=\"app\",server=\"{}\"}} 5\n",
        application.address
    );
    // The weights are added once localhost is resolved to the same address.
    until("both servers", || metrics().contains(&weight).then_some(()));
    let mut client = server.serve.connect();
    for _ in 0..10 {
        client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut held = application.next();
        held.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .expect("it is taken");
        client.receive().expect("a response");
    }
    let text = metrics();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let names = lines.filter_map(|line| line.rsplit_once(' '));
    let mut seen = BTreeSet::new();
    for (name, _) in names {
        assert!(seen.insert(name), "{name} twice in {text}");
    }
    let responses = format!(
        "onrush_server_responses_total{{group=\"app\",server=\"{}\",code=\"2xx\"}} 10\n",
        application.address
    );
    assert!(text.contains(&responses), "{text}");
    // `ctl servers` lists both names.
    let groups = server.said("servers");
    let groups = groups["groups"].as_array().expect("a list");
    let address = &application.address;
    let count = |name: &str| {
        let mut its = groups.iter().filter(|group| group["name"] == name);
        let group = its.next().unwrap_or_else(|| panic!("no {name}"));
        let servers = group["servers"].as_array().expect("a list").iter();
        servers
            .filter(|server| server["address"] == **address)
            .count()
    };
    assert_eq!(count("app"), 2);
    assert_eq!(count(address), 1);
    assert_eq!(count(&format!("https://{address}")), 1);
    server.serve.stop();
}

/// Debian's Prometheus, with the rules of examples/.
struct Prometheus {
    program: Program,
    address: String,
}

/// Whether histograms are scraped with native buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scrapes {
    Classic,
    Native,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Prometheus {
    /// Starts it; `None`, with a message, if Prometheus is not installed.
    fn start(of: &Scraped, scrapes: Scrapes) -> Option<Prometheus> {
        if Command::new("prometheus")
            .arg("--version")
            .output()
            .is_err()
        {
            assert!(
                std::env::var_os("ONRUSH_NEEDS_PROMETHEUS").is_none(),
                "there is no prometheus (Debian's package is prometheus)"
            );
            eprintln!(
                "skipped: there is no prometheus (Debian's package is prometheus; make prometheus)"
            );
            return None;
        }
        let directory = of.directory.path();
        let rules = root().join("examples/prometheus/onrush.rules.yml");
        let rules = rules.canonicalize().expect("it is there");
        let text = format!(
            "global: {{ scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms }}\nrule_files: [{}]\nscrape_configs:\n- job_name: onrush\n  authorization: {{ credentials: {TOKEN} }}\n  static_configs: [{{ targets: [\"{}\"] }}]\n",
            rules.display(),
            of.admin
        );
        let path = directory.join("prometheus.yml");
        fs::write(&path, text).expect("it is ours");
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", path.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                directory.join("tsdb").display()
            ))
            .arg("--web.listen-address=127.0.0.1:0");
        if scrapes == Scrapes::Native {
            command.arg("--enable-feature=native-histograms");
        }
        let program = Program::start(&mut command);
        let said = program
            .err
            .wait_for("Server is ready to receive web requests");
        let lines = said
            .lines()
            .filter(|line| line.contains("msg=\"Listening on\""));
        let mut lines = lines.filter_map(|line| line.rsplit_once("address="));
        let address = lines.next();
        let address = address.expect("it was said").1.to_owned();
        Some(Prometheus { program, address })
    }

    fn ask(&self, path: &str, form: &str) -> Value {
        let request = format!(
            "POST {path} HTTP/1.0\r\nHost: h\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        );
        let method = if form.is_empty() {
            request.replacen("POST", "GET", 1)
        } else {
            request
        };
        let response = String::from_utf8(whole(&self.address, &method)).expect("text");
        let body = response.split_once("\r\n\r\n").expect("a head").1;
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{response}"))
    }

    /// Current result of an expression: each series with its value.
    fn query(&self, expression: &str) -> Vec<(Value, String)> {
        let form: String = expression
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect();
        let said = self.ask("/api/v1/query", &format!("query={form}"));
        assert_eq!(said["status"], "success", "{expression}: {said}");
        let results = said["data"]["result"].as_array().expect("a vector");
        let results = results.iter().map(|result| {
            let value = result["value"][1]
                .as_str()
                .or(result["histogram"][1]["count"].as_str());
            (
                result["metric"].clone(),
                value.unwrap_or_default().to_owned(),
            )
        });
        results.collect()
    }

    /// Waits until the first value of an expression is as wanted, and returns it.
    fn wait_for(&self, expression: &str, wanted: impl Fn(f64) -> bool) -> f64 {
        until(expression, || {
            let results = self.query(expression);
            let value = results.first()?.1.parse().ok()?;
            wanted(value).then_some(value)
        })
    }
}

#[test]
fn prometheus_reads_native_histograms() {
    let server = Scraped::start();
    let Some(prometheus) = Prometheus::start(&server, Scrapes::Native) else {
        return;
    };
    let series = "onrush_route_duration_seconds{route=\"/*\"}";
    let native = || {
        let families = families(&server.scrape(PROTOBUF));
        let (_, series) = &families["onrush_route_duration_seconds"];
        let its = series.iter().find(|series| series.labels["route"] == "/*");
        its.expect("it has had requests").native.clone()
    };
    // A rate needs an initial value.
    server.ask("/", 1);
    prometheus.wait_for(&format!("histogram_count({series})"), |count| count == 1.0);
    let before = native();
    server.ask("/", 150);
    prometheus.wait_for(&format!("histogram_count({series})"), |count| {
        count == 151.0
    });
    let sum = prometheus.wait_for(&format!("histogram_sum({series})"), |_| true);
    assert!((0.0..60.0).contains(&sum), "{sum}");
    let after = native();
    for share in [0.5, 0.9, 0.99] {
        let query = format!("histogram_quantile({share}, rate({series}[1h]))");
        let found = prometheus.wait_for(&query, |quantile| quantile.is_finite());
        let mut rank = share * 150.0;
        let of_requests: Vec<(f64, f64, u64)> = after
            .iter()
            .map(|&(below, above, count)| {
                let same = before.iter().find(|(_, bound, _)| *bound == above);
                (below, above, count - same.map_or(0, |(_, _, count)| *count))
            })
            .filter(|(_, _, count)| *count > 0)
            .collect();
        let place = of_requests.iter().position(|(_, _, count)| {
            rank -= *count as f64;
            rank <= 0.0
        });
        let place = place.expect("it is in some");
        let (below, mut above, _) = of_requests[place];
        // If the rank falls exactly on the end of a bucket, rounding of the rate can take Prometheus to the start of
        // the next one.
        if rank == 0.0
            && let Some((next, _, _)) = of_requests.get(place + 1)
        {
            above = *next;
        }
        assert!(
            (below..=above * 1.000_001).contains(&found),
            "{share}: {found}, {below} to {above}"
        );
    }
    // The same messages contain classic buckets; this Prometheus keeps only one kind.
    assert!(
        prometheus
            .query("onrush_route_duration_seconds_bucket")
            .is_empty()
    );
    drop(prometheus.program);
    server.serve.stop();
}

/// Expressions of the dashboard by panel or annotation, with Grafana's variables replaced.
fn dashboard() -> Vec<(String, Vec<String>)> {
    let text =
        fs::read_to_string(root().join("examples/grafana/onrush.json")).expect("it is there");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let put_in = |expression: &Value| {
        let mut expression = expression.as_str().expect("an expression").to_owned();
        for (variable, value) in [
            ("$__rate_interval", "1h"),
            ("$__interval", "1h"),
            ("$instance", ".*"),
            ("$route", ".*"),
            ("$group", ".*"),
        ] {
            expression = expression.replace(variable, value);
        }
        assert!(!expression.contains('$'), "{expression}");
        expression
    };
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let panels = panels.filter(|panel| panel["type"] != "row").map(|panel| {
        let targets = panel["targets"].as_array().expect("targets").iter();
        let targets = targets.map(|target| put_in(&target["expr"]));
        (panel["title"].to_string(), targets.collect())
    });
    let annotations = dashboard["annotations"]["list"].as_array().expect("a list");
    let annotations = annotations.iter().filter(|it| it["builtIn"] != 1);
    let annotations = annotations.map(|it| (it["name"].to_string(), vec![put_in(&it["expr"])]));
    panels.chain(annotations).collect()
}

/// An expression without its final comparison: whether it holds now does not matter.
fn without_comparison(expression: &str) -> &str {
    let ends = [" > ", " < ", " == "].map(|sign| expression.rfind(sign));
    let end = ends.into_iter().flatten().max();
    end.map_or(expression, |end| &expression[..end])
}

#[test]
fn example_queries_return_series() {
    let server = Scraped::start();
    for scrapes in [Scrapes::Classic, Scrapes::Native] {
        let Some(prometheus) = Prometheus::start(&server, scrapes) else {
            return;
        };
        server.use_all();
        for (title, expressions) in dashboard() {
            // A heat map has one query per kind of histogram; in other panels all queries must return something.
            let is_heat_map = title.contains("Durations");
            let mut found = BTreeSet::new();
            until(&format!("{title} with {scrapes:?}"), || {
                for (place, expression) in expressions.iter().enumerate() {
                    if !prometheus.query(without_comparison(expression)).is_empty() {
                        found.insert(place);
                    }
                }
                (found.len() == if is_heat_map { 1 } else { expressions.len() }).then_some(())
            });
        }
        let rules = until("the rules", || {
            let said = prometheus.ask("/api/v1/rules", "");
            let rules = said["data"]["groups"][0]["rules"].as_array()?.clone();
            let is_read = |rule: &Value| rule["health"] != "unknown";
            rules.iter().all(is_read).then_some(rules)
        });
        assert!(rules.len() > 8, "{rules:?}");
        for rule in &rules {
            assert_eq!(rule["health"], "ok", "{rule}");
            let expression = rule["query"].as_str().expect("an expression");
            until(expression, || {
                let series = prometheus.query(without_comparison(expression));
                (!series.is_empty()).then_some(())
            });
        }
        drop(prometheus.program);
        fs::remove_dir_all(server.directory.path().join("tsdb")).expect("it has ended");
    }
    server.serve.stop();
}

#[test]
fn dashboard_is_importable() {
    let text =
        fs::read_to_string(root().join("examples/grafana/onrush.json")).expect("it is there");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    // Schema version of Grafana 10.4; an exported dashboard must not contain an ID, which the server assigns.
    assert_eq!(dashboard["schemaVersion"], 39);
    assert_eq!(dashboard["id"], Value::Null);
    let variables = dashboard["templating"]["list"]
        .as_array()
        .expect("variables");
    let names: Vec<&str> = variables
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert_eq!(names, ["datasource", "instance", "route", "group"]);
    let source = serde_json::json!({ "type": "prometheus", "uid": "${datasource}" });
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids = BTreeSet::new();
    let mut cells = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(
            ids.insert(panel["id"].as_u64().expect("a number")),
            "{title}"
        );
        let place = |name: &str| panel["gridPos"][name].as_u64().expect("a number");
        let (x, y, width, height) = (place("x"), place("y"), place("w"), place("h"));
        assert!(x + width <= 24, "{title}");
        for cell in (x..x + width).flat_map(|x| (y..y + height).map(move |y| (x, y))) {
            assert!(cells.insert(cell), "{title} lies on another");
        }
        let kind = panel["type"].as_str().expect("a type");
        if kind == "row" {
            continue;
        }
        assert!(
            ["timeseries", "stat", "heatmap", "state-timeline"].contains(&kind),
            "{title}"
        );
        assert_eq!(panel["datasource"], source, "{title}");
        let mut letters = BTreeSet::new();
        for target in panel["targets"].as_array().expect("targets") {
            assert_eq!(target["datasource"], source, "{title}");
            assert!(letters.insert(target["refId"].to_string()), "{title}");
        }
    }
}

#[test]
fn promtool_accepts_rules_and_metrics() {
    if Command::new("promtool").arg("--version").output().is_err() {
        eprintln!(
            "skipped: there is no promtool (Debian's package is prometheus; make prometheus)"
        );
        return;
    }
    let rules = root().join("examples/prometheus/onrush.rules.yml");
    let checked = Program::start(
        Command::new("promtool")
            .arg("check")
            .arg("rules")
            .arg(rules),
    )
    .finish();
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let server = Scraped::start();
    server.use_all();
    let path = server.directory.path().join("metrics");
    fs::write(&path, server.scrape("text/plain")).expect("it is ours");
    let mut check = Command::new("sh");
    check
        .arg("-c")
        .arg(format!("promtool check metrics <{}", path.display()));
    let checked = Program::start(&mut check).finish();
    assert_eq!(
        (checked.code, checked.out.as_str(), checked.err.as_str()),
        (Some(0), "", "")
    );
    server.serve.stop();
}
