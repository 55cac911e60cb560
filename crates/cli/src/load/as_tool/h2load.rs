//! The command line of h2load.

use std::time::Duration;

use onrush_load::dialect::h2load::{End, SummaryFormatter};
use onrush_measure::amount::count;

use super::super::value::duration_or_seconds;
use super::line::{Line, Printer, Run, is_https};
use super::option::Action::{Flag, IgnoredValue, NotedValue, Refused, Value};
use super::option::{Grammar, ParsedOptions, Row, Syntax, any, table};

const HELP: &str = "\
onrush load --as h2load [option]... URL

  -n, --requests N                total requests (1); not with -D
  -c, --clients N                 clients, each with one connection (1)
  -t, --threads N                 threads (1)
  -m, --max-concurrent-streams N  concurrent streams per connection (1)
  -D, --duration TIME             duration of the run: 10, 10s, 500ms, 1m
      --warm-up-time TIME         unmeasured time before it
      --rps N                     requests per second per client, evenly spaced over all clients
  -d, --data FILE                 POST this file
  -H, --header 'NAME: VALUE'      header field to send
  -N, --connection-inactivity-timeout TIME
                                  timeout without received data while a response is outstanding (1 hour)
      --h1                        HTTP/1.1; -m is then the pipeline depth
  -p, --no-tls-proto h2c|http/1.1
                                  protocol for http:// (h2c)
      --alpn-list, --npn-list LIST
                                  protocols for https://, such as h2,http/1.1; only the first is offered (h2)
  -f, -w, -W N                    have no effect
  -v, --verbose                   print the command line of onrush load to standard error
";

/// h2load has no timeout; this one is too long to matter.
const TIMEOUT: &str = "1h";

const SYNTAX: Syntax = Syntax {
    tool: "h2load that is supported here",
    grammar: Grammar::Getopt,
    help: HELP,
    tables: [OPTIONS, &[]],
};

const OPTIONS: &[Row] = table! {
    "-h|--help --h1 -v|--verbose" => Flag(""),
    "-n|--requests -c|--clients -t|--threads -m|--max-concurrent-streams --rps" => Value(number),
    "-D|--duration --warm-up-time -N|--connection-inactivity-timeout" => Value(time),
    "-d|--data" => Value(|_, file| Ok(format!("--body-file={file}"))),
    "-H|--header" => Value(|_, header| Ok(format!("--header={header}"))),
    "--alpn-list --npn-list" => NotedValue(|name, list| offered(name, list).map(|_| list.to_owned()), left_out),
    "-p|--no-tls-proto" => Value(in_clear),
    "-f|--max-frame-size -w|--window-bits -W|--connection-window-bits" => IgnoredValue(any, " has no effect: windows are 1 GiB, and frames 16 KiB"),
    "-r|--rate" => Refused(": for connections at a rate use onrush load --http2 --connections-per-second"),
    "-i|--input-file" => Refused(": for several URLs use onrush load --http2 --in-turn URL..., or --requests-file"),
};

/// Parses the command line.
pub(super) fn read(words: &[String]) -> Result<Line, String> {
    SYNTAX.line(words, run)
}

fn run(given: ParsedOptions) -> Result<Run, String> {
    let url = given.only_argument("URL", "for several URLs use onrush load --http2 --in-turn")?;
    let url = url.to_owned();
    let has_tls = is_https(&url);
    let lists = given.last("--alpn-list --npn-list");
    let offered = offered("", lists.unwrap_or("h2"))?;
    let is_http1 = given.has("--h1")
        || match has_tls {
            true => offered == "http/1.1",
            false => given.last("-p") == Some("http/1.1"),
        };
    let [requests, clients, threads, streams] =
        ["-n", "-c", "-t", "-m"].map(|name| given.number(name).unwrap_or(1));
    if given.last("-D").is_none() {
        check_order(("-n", requests), ("-c", clients))?;
    }
    check_order(("-c", clients), ("-t", threads))?;
    let (protocol, spoken) = match (is_http1, has_tls) {
        (true, _) => ("http/1.1", format!("--pipeline={streams}")),
        (false, true) => ("h2", format!("--streams={streams}")),
        (false, false) => ("h2c", format!("--streams={streams}")),
    };
    let mut native = vec![
        format!("--connections={clients}"),
        format!("--threads={threads}"),
        spoken,
    ];
    if protocol != "http/1.1" {
        native.push("--http2".to_owned());
    }
    if has_tls {
        native.push("--insecure".to_owned());
    }
    let time_of = |name| given.number(name).map(Duration::from_nanos);
    let end = match time_of("-D") {
        None => {
            native.push(format!("--count={requests}"));
            End::Requests(requests)
        }
        Some(time) => {
            let warm_up = time_of("--warm-up-time").unwrap_or_default();
            native.push(format!("--duration={}ms", (time + warm_up).as_millis()));
            if !warm_up.is_zero() {
                native.push(format!("--warm-up={}ms", warm_up.as_millis()));
            }
            End::Time(time, warm_up)
        }
    };
    if let Some(rate) = given.number("--rps") {
        native.push(format!("--rate={}", rate.saturating_mul(clients)));
    }
    native.push(match time_of("-N") {
        Some(time) => format!("--timeout={}ms", time.as_millis()),
        None => format!("--timeout={TIMEOUT}"),
    });
    native.extend(given.all("-d -H").map(str::to_owned));
    native.push(url);
    let text = SummaryFormatter {
        threads,
        clients,
        end,
        protocol,
    };
    Ok(given.run(native, Printer::H2load(text)))
}

/// Refuses a `total` that does not give each of the `parts` one, as h2load does.
fn check_order(total: (&str, u64), parts: (&str, u64)) -> Result<(), String> {
    let ((name, count), (other_name, others)) = (total, parts);
    match count < others {
        true => Err(format!(
            "{name} {count} is less than {other_name} {others}: expected at least {name} {others}"
        )),
        false => Ok(()),
    }
}

/// A whole number of at least 1, such as 1000 or 10K.
fn number(name: &str, text: &str) -> Result<String, String> {
    let number = count(text).ok();
    let number = number.filter(|number| *number > 0);
    let number = number.map(|number| number.to_string());
    number.ok_or_else(|| format!("{name} {text}: expected a whole number of at least 1"))
}

/// A time in seconds or with a unit, as nanoseconds.
fn time(name: &str, text: &str) -> Result<String, String> {
    let time = duration_or_seconds(text).map_err(|error| format!("{name} {text}: {error}"))?;
    Ok(time.as_nanos().to_string())
}

/// The protocol for http://.
fn in_clear(name: &str, text: &str) -> Result<String, String> {
    match text {
        "h2c" | "http/1.1" => Ok(text.to_owned()),
        _ => Err(format!("{name} {text}: expected h2c or http/1.1")),
    }
}

/// The protocol for https://: the first supported one of a list.
fn offered<'list>(name: &str, list: &'list str) -> Result<&'list str, String> {
    let mut listed = list.split(',').map(str::trim);
    let first = listed.find(|protocol| matches!(*protocol, "h2" | "http/1.1"));
    first.ok_or_else(|| format!("{name} {list}: expected h2 or http/1.1 in the list"))
}

fn left_out(name: &str, list: &str) -> Option<String> {
    let first = offered(name, list).ok().filter(|_| list.contains(','))?;
    Some(format!("{name}: only {first} is offered"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::native;
    use super::*;

    #[test]
    fn h2load_line_is_translated() {
        for (line, expected) in [
            (
                "-n 1000 -c 10 -t 2 -m 32 http://host:1/",
                "--connections=10 --threads=2 --streams=32 --http2 --count=1000 --timeout=1h http://host:1/",
            ),
            (
                "-D 5 --warm-up-time=1s -c4 --rps 100 https://host/",
                "--connections=4 --threads=1 --streams=1 --http2 --insecure --duration=6000ms --warm-up=1000ms --rate=400 --timeout=1h https://host/",
            ),
            (
                "--h1 -n10 -m 4 -N 3 http://host/",
                "--connections=1 --threads=1 --pipeline=4 --count=10 --timeout=3000ms http://host/",
            ),
            (
                "--npn-list http/1.1,h2 https://host/",
                "--connections=1 --threads=1 --pipeline=1 --insecure --count=1 --timeout=1h https://host/",
            ),
            (
                "--alpn-list=h2-16,h2,http/1.1 https://host/",
                "--connections=1 --threads=1 --streams=1 --http2 --insecure --count=1 --timeout=1h https://host/",
            ),
            (
                "-p http/1.1 http://host/",
                "--connections=1 --threads=1 --pipeline=1 --count=1 --timeout=1h http://host/",
            ),
        ] {
            assert_eq!(native(read, line).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn invalid_lines_are_refused_with_reason() {
        for (line, part) in [
            ("-n 1", "no URL given"),
            ("-n 0 http://a/", "-n 0: expected a whole number"),
            ("-n 3 -c 4 http://a/", "-n 3 is less than -c 4"),
            ("-c 4 http://a/", "-n 1 is less than -c 4"),
            ("-n 9 -c 1 -t 2 http://a/", "-c 1 is less than -t 2"),
            ("-r 5 http://a/", "--connections-per-second"),
            ("-i urls", "--requests-file"),
            ("http://a/ http://b/", "--in-turn"),
            ("-p h3 http://a/", "expected h2c or http/1.1"),
            ("--npn-list h3 https://a/", "expected h2 or http/1.1"),
            ("--what http://a/", "--what is not an option of h2load"),
        ] {
            let error = native(read, line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
