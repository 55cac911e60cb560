//! The command line of h2load.

use std::time::Duration;

use lexopt::Arg;
use onrush_load::dialect::h2load::{End, Text};
use onrush_measure::amount::count;

use super::super::value::duration_or_seconds;
use super::line::{Line, Printer, Run, is_https, only_url, parser, value};

const HELP: &str = "\
onrush load --as h2load [option]... URL

  -n, --requests N                requests of all clients (1); not with -D
  -c, --clients N                 clients: connections (1)
  -t, --threads N                 threads (1)
  -m, --max-concurrent-streams N  streams at once of each connection (1)
  -D, --duration TIME             how long the run takes: 10, 10s, 500ms, 1m
      --warm-up-time TIME         time before it in which nothing is measured
      --rps N                     requests per second of each client, evenly spaced over all of them
  -d, --data FILE                 POST this file
  -H, --header 'NAME: VALUE'      a header to send
  -N, --connection-inactivity-timeout TIME
                                  how long nothing may arrive while a response is due (an hour)
      --h1                        HTTP/1.1; -m is then the pipeline
  -p, --no-tls-proto h2c|http/1.1
                                  what is spoken over http:// (h2c)
      --alpn-list, --npn-list LIST
                                  protocols for https://, such as h2,http/1.1; the first is offered (h2)
  -f, -w, -W N                    have no effect here
  -v, --verbose                   say on standard error which command line of onrush load this is
";

/// h2load waits for ever; here it is an hour.
const TIMEOUT: &str = "1h";

/// The protocol that is offered over TLS.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Offered {
    Http2,
    Http1,
}

/// What the options come to.
struct Wanted {
    requests: u64,
    clients: u64,
    threads: u64,
    streams: u64,
    duration: Option<Duration>,
    warm_up: Duration,
    rate: Option<u64>,
    is_http1: bool,
    is_http1_in_clear: bool,
    offered: Offered,
    timeout: Option<Duration>,
    verbose: bool,
    notes: Vec<String>,
    native: Vec<String>,
    urls: Vec<String>,
}

/// Reads it, or says what is wrong with it.
pub(super) fn read(words: &[String]) -> Result<Line, String> {
    let mut parser = parser(words);
    let mut wanted = Wanted {
        requests: 1,
        clients: 1,
        threads: 1,
        streams: 1,
        duration: None,
        warm_up: Duration::ZERO,
        rate: None,
        is_http1: false,
        is_http1_in_clear: false,
        offered: Offered::Http2,
        timeout: None,
        verbose: false,
        notes: Vec::new(),
        native: Vec::new(),
        urls: Vec::new(),
    };
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        let name = match arg {
            Arg::Value(url) => {
                wanted.urls.push(url.to_string_lossy().into_owned());
                continue;
            }
            Arg::Short('h') | Arg::Long("help") => return Ok(Line::Help(HELP)),
            Arg::Short(letter) => format!("-{letter}"),
            Arg::Long(name) => format!("--{name}"),
        };
        wanted.take(&name, &mut parser)?;
    }
    wanted.line()
}

impl Wanted {
    /// Takes the option of this name, and its value.
    fn take(&mut self, name: &str, parser: &mut lexopt::Parser) -> Result<(), String> {
        match name {
            "-n" | "--requests" => self.requests = number(name, parser)?,
            "-c" | "--clients" => self.clients = number(name, parser)?,
            "-t" | "--threads" => self.threads = number(name, parser)?,
            "-m" | "--max-concurrent-streams" => self.streams = number(name, parser)?,
            "-D" | "--duration" => self.duration = Some(time(name, parser)?),
            "--warm-up-time" => self.warm_up = time(name, parser)?,
            "--rps" => self.rate = Some(number(name, parser)?),
            "-N" | "--connection-inactivity-timeout" => self.timeout = Some(time(name, parser)?),
            "-d" | "--data" => self.native.push(format!("--body-file={}", value(parser)?)),
            "-H" | "--header" => self.native.push(format!("--header={}", value(parser)?)),
            "--h1" => self.is_http1 = true,
            "--alpn-list" | "--npn-list" => self.offer(name, &value(parser)?)?,
            "-v" | "--verbose" => self.verbose = true,
            "-p" | "--no-tls-proto" => match &*value(parser)? {
                "h2c" => self.is_http1_in_clear = false,
                "http/1.1" => self.is_http1_in_clear = true,
                other => {
                    return Err(format!("{name} {other}: expected h2c or http/1.1"));
                }
            },
            "-f"
            | "--max-frame-size"
            | "-w"
            | "--window-bits"
            | "-W"
            | "--connection-window-bits" => {
                value(parser)?;
                self.notes.push(format!(
                    "{name} has no effect: windows are 1 GiB, and frames 16 KiB"
                ));
            }
            "-r" | "--rate" => {
                return Err(format!(
                    "{name}: connections at a rate are onrush load --http2 --connections-per-second"
                ));
            }
            "-i" | "--input-file" => {
                return Err(format!(
                    "{name}: several URLs are the words of onrush load --http2 --in-turn URL..., or its --requests-file"
                ));
            }
            _ => {
                return Err(format!(
                    "{name} is no option of h2load, or none that is taken"
                ));
            }
        }
        Ok(())
    }

    /// Offers the first supported protocol of a list.
    fn offer(&mut self, name: &str, list: &str) -> Result<(), String> {
        let listed: Vec<&str> = list.split(',').map(str::trim).collect();
        let known = |protocol: &&&str| matches!(**protocol, "h2" | "http/1.1");
        let Some(first) = listed.iter().find(known) else {
            return Err(format!("{name} {list}: expected h2 or http/1.1 in it"));
        };
        self.offered = match *first {
            "h2" => Offered::Http2,
            _ => Offered::Http1,
        };
        if listed.len() > 1 {
            self.notes
                .push(format!("{name}: {first} is offered and no other"));
        }
        Ok(())
    }

    fn line(self) -> Result<Line, String> {
        let url = only_url(
            self.urls,
            "several are the words of onrush load --http2 --in-turn",
        )?;
        let has_tls = is_https(&url);
        let is_http1 = self.is_http1
            || match has_tls {
                true => self.offered == Offered::Http1,
                false => self.is_http1_in_clear,
            };
        let (protocol, spoken) = match (is_http1, has_tls) {
            (true, _) => ("http/1.1", format!("--pipeline={}", self.streams)),
            (false, true) => ("h2", format!("--streams={}", self.streams)),
            (false, false) => ("h2c", format!("--streams={}", self.streams)),
        };
        let mut native = vec![
            format!("--connections={}", self.clients),
            format!("--threads={}", self.threads),
            spoken,
        ];
        if protocol != "http/1.1" {
            native.push("--http2".to_owned());
        }
        if has_tls {
            native.push("--insecure".to_owned());
        }
        let end = match self.duration {
            None => {
                native.push(format!("--count={}", self.requests));
                End::Requests(self.requests)
            }
            Some(time) => {
                let all = time + self.warm_up;
                native.push(format!("--duration={}ms", all.as_millis()));
                if !self.warm_up.is_zero() {
                    native.push(format!("--warm-up={}ms", self.warm_up.as_millis()));
                }
                End::Time(time, self.warm_up)
            }
        };
        if let Some(rate) = self.rate {
            native.push(format!("--rate={}", rate.saturating_mul(self.clients)));
        }
        native.push(match self.timeout {
            Some(time) => format!("--timeout={}ms", time.as_millis()),
            None => format!("--timeout={TIMEOUT}"),
        });
        native.extend(self.native);
        native.push(url);
        Ok(Line::Run(Run {
            native,
            printer: Printer::H2load(Text {
                threads: self.threads,
                clients: self.clients,
                end,
                protocol,
            }),
            verbose: self.verbose,
            is_capped: false,
            stop_on_connect_failure: false,
            notes: self.notes,
        }))
    }
}

/// A whole number from 1 on, such as 1000 or 10K.
fn number(name: &str, parser: &mut lexopt::Parser) -> Result<u64, String> {
    let text = value(parser)?;
    let number = count(&text).ok();
    let number = number.filter(|number| *number > 0);
    number.ok_or_else(|| format!("{name} {text}: expected a whole number from 1 on"))
}

/// A time in seconds, or with a unit.
fn time(name: &str, parser: &mut lexopt::Parser) -> Result<Duration, String> {
    let text = value(parser)?;
    duration_or_seconds(&text).map_err(|error| format!("{name} {text}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::native;
    use super::*;

    #[test]
    fn its_command_lines_become_ours() {
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
    fn what_cannot_be_is_refused_with_its_reason() {
        for (line, part) in [
            ("-n 1", "there is no URL"),
            ("-n 0 http://a/", "-n 0: expected a whole number"),
            ("-r 5 http://a/", "--connections-per-second"),
            ("-i urls", "--requests-file"),
            ("http://a/ http://b/", "--in-turn"),
            ("-p h3 http://a/", "expected h2c or http/1.1"),
            ("--npn-list h3 https://a/", "expected h2 or http/1.1"),
            ("--what http://a/", "--what is no option of h2load"),
        ] {
            let error = native(read, line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
