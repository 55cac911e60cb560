//! The command line of h1load.

use std::time::Duration;

use lexopt::Arg;
use onrush_load::dialect::h1load::{Form, Lines, Overhead, Shown};
use onrush_load::{Cipher, Version};

use super::line::{Line, Printer, Run, is_https, only_url, parser, value};

const HELP: &str = "\
onrush load --as h1load [option]... URL

  -c COUNT, -t COUNT  connections, threads (1 each)
  -d SECONDS          how long the run takes (no bound)
  -n COUNT            requests in all (no bound)
  -r COUNT            requests per connection (no bound)
  -s SECONDS          come to full load within this time, in ten stairs; -P measures from then on
  -R RATE             at most so many requests per second: evenly spaced, and what is 10 ms late is left out
  -T MS               pause between a response and the next request, 3 % more or less
  -w MS               how long nothing may arrive while a response is due (10000)
  -H 'Name: value'    a header to send; repeatable
  -I                  HEAD instead of GET
  -A                  leave the first response of each connection out of -P; the means of lines have it
  -e                  end with the first second in which a connection cannot be made
  -l, -ll             the long form of lines, the raw one
  -S                  responses by class of status
  -O EXTRA/PAYLOAD    add EXTRA bytes to the rates of bytes for each PAYLOAD
  -P                  percentiles at the end
  --tls-reuse         resume TLS sessions; certificates are believed unseen, as h1load does
  --tls-ver VERSION   speak TLS1.2 or TLS1.3 only
  --cipher-list LIST, --cipher-suites LIST
                      ciphers of TLS 1.2 by OpenSSL's names, and of TLS 1.3, with colons between
  -F                  has no effect here
  -v                  say on standard error which command line of onrush load this is
";

/// The run of h1load goes on until something ends it: the longest there is.
const NO_END: &str = "8760h";

/// A cap does not make up for lost time; h1load sees what is due once a millisecond, and a busy machine later.
const CATCH_UP: &str = "--catch-up=10ms";

/// What the options come to.
#[derive(Default)]
struct Wanted {
    connections: u64,
    threads: u64,
    duration_s: Option<u64>,
    count: Option<u64>,
    per_connection: Option<u64>,
    rate: Option<u64>,
    think_ms: Option<u64>,
    timeout_ms: Option<u64>,
    headers: Vec<String>,
    is_head: bool,
    tls: Tls,
    stop_on_connect_failure: bool,
    skip_first: bool,
    shown: Shown,
    percentiles: bool,
    verbose: bool,
    notes: Vec<String>,
    urls: Vec<String>,
}

/// Reads it, or says what is wrong with it.
pub(super) fn read(words: &[String]) -> Result<Line, String> {
    let mut parser = parser(words);
    let mut wanted = Wanted {
        connections: 1,
        threads: 1,
        ..Wanted::default()
    };
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Arg::Short('h') => return Ok(Line::Help(HELP)),
            Arg::Short(letter) => wanted.take(letter, &mut parser)?,
            Arg::Long(name) => {
                let name = name.to_owned();
                wanted.tls.take(&name, &mut parser)?;
            }
            Arg::Value(url) => wanted.urls.push(url.to_string_lossy().into_owned()),
        }
    }
    wanted.line()
}

impl Wanted {
    /// Takes the option `letter` and its value.
    fn take(&mut self, letter: char, parser: &mut lexopt::Parser) -> Result<(), String> {
        let mut number = |what| bound(letter, what, &value(parser)?);
        match letter {
            'c' => self.connections = number("connections")?.unwrap_or(0),
            't' => self.threads = number("threads")?.unwrap_or(0),
            'd' => self.duration_s = number("seconds")?,
            'n' => self.count = number("requests")?,
            'r' => self.per_connection = number("requests")?,
            'R' => self.rate = number("requests per second")?,
            'T' => self.think_ms = number("milliseconds")?,
            'w' => self.timeout_ms = number("milliseconds")?,
            's' => self.shown.soft_start = soft_start(&value(parser)?)?,
            'O' => self.shown.overhead = Some(overhead(&value(parser)?)?),
            'H' => self.headers.push(value(parser)?),
            'l' => {
                self.shown.form = match self.shown.form {
                    Form::Brief => Form::Long,
                    Form::Long | Form::Raw => Form::Raw,
                }
            }
            'S' => self.shown.statuses = true,
            'P' => self.percentiles = true,
            'I' => self.is_head = true,
            'e' => self.stop_on_connect_failure = true,
            'v' => self.verbose = true,
            'F' => self.notes.push(
                "-F has no effect: the kernel decides whether a request rides on the handshake's ACK"
                    .to_owned(),
            ),
            'A' => self.skip_first = true,
            _ => return Err(format!("-{letter} is no option of h1load")),
        }
        Ok(())
    }

    fn line(self) -> Result<Line, String> {
        if self.rate.is_some() && self.think_ms.is_some() {
            return Err("-R and -T together have no equal: with -T a connection makes 1000/MS requests per second at most, so give -R or -T".to_owned());
        }
        let mut native: Vec<String> = Vec::new();
        let mut say = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                native.extend([flag.to_owned(), value]);
            }
        };
        say("-c", Some(self.connections.to_string()));
        say("-t", Some(self.threads.to_string()));
        let duration = match (self.duration_s, self.count) {
            (Some(seconds), _) => Some(format!("{seconds}s")),
            (None, Some(_)) => None,
            (None, None) => Some(NO_END.to_owned()),
        };
        say("-d", duration);
        say("-n", self.count.map(|count| count.to_string()));
        say("-r", self.per_connection.map(|count| count.to_string()));
        say("-R", self.rate.map(|rate| rate.to_string()));
        say("-T", self.think_ms.map(|ms| format!("{ms}ms")));
        let soft_start = self.shown.soft_start;
        let stairs = (!soft_start.is_zero()).then(|| format!("{}ms", soft_start.as_millis()));
        say("-s", stairs);
        say("--timeout", self.timeout_ms.map(|ms| format!("{ms}ms")));
        say("-X", self.is_head.then(|| "HEAD".to_owned()));
        if self.rate.is_some() {
            native.push("--connect-first=off".to_owned());
            // All of a number that was asked for are made.
            native.extend(self.count.is_none().then(|| CATCH_UP.to_owned()));
        }
        if self.skip_first {
            native.push("--skip-first".to_owned());
        }
        let headers = self.headers.iter();
        native.extend(headers.map(|header| format!("--header={header}")));
        let url = url(&only_url(self.urls, "h1load takes one URL")?);
        if is_https(&url) {
            native.extend(self.tls.flags());
        }
        native.push(url);
        Ok(Line::Run(Run {
            native,
            printer: Printer::H1load {
                lines: Lines::new(self.shown),
                percentiles: self.percentiles,
            },
            verbose: self.verbose,
            is_capped: self.rate.is_some(),
            stop_on_connect_failure: self.stop_on_connect_failure,
            notes: self.notes,
        }))
    }
}

/// How TLS is spoken.
#[derive(Default)]
struct Tls {
    resumes: bool,
    version: Option<Version>,
    /// Of each version, the favourite first; none for all that there are.
    ciphers_12: Vec<Cipher>,
    ciphers_13: Vec<Cipher>,
}

impl Tls {
    /// Takes the option `name` and its value.
    fn take(&mut self, name: &str, parser: &mut lexopt::Parser) -> Result<(), String> {
        match name {
            "tls-reuse" => self.resumes = true,
            "tls-ver" => {
                self.version = Some(match value(parser)?.as_str() {
                    "TLS1.2" => Version::Tls12,
                    "TLS1.3" => Version::Tls13,
                    other => {
                        return Err(format!(
                            "--tls-ver {other} is not spoken: expected TLS1.2 or TLS1.3"
                        ));
                    }
                });
            }
            "cipher-list" => self.ciphers_12 = ciphers(name, Version::Tls12, &value(parser)?)?,
            "cipher-suites" => self.ciphers_13 = ciphers(name, Version::Tls13, &value(parser)?)?,
            _ => return Err(format!("--{name} is no option of h1load")),
        }
        Ok(())
    }

    /// Ours; h1load believes any certificate.
    fn flags(&self) -> Vec<String> {
        let resume = if self.resumes { "on" } else { "off" };
        let mut flags = vec!["--insecure".to_owned(), format!("--tls-resume={resume}")];
        match self.version {
            Some(Version::Tls12) => flags.push("--tls-versions=1.2".to_owned()),
            Some(Version::Tls13) => flags.push("--tls-versions=1.3".to_owned()),
            None => {}
        }
        let lists = [
            (Version::Tls13, &self.ciphers_13),
            (Version::Tls12, &self.ciphers_12),
        ];
        if lists.iter().any(|(_, list)| !list.is_empty()) {
            // Ours is one list for both versions, and each of the tool's is about its own.
            let offered = lists
                .into_iter()
                .filter(|(version, _)| self.version.is_none_or(|only| only == *version));
            let names = offered.flat_map(|(version, list)| match list.is_empty() {
                true => all(version),
                false => list.clone(),
            });
            let names: Vec<&str> = names.map(Cipher::name).collect();
            flags.push(format!("--tls-ciphers={}", names.join(",")));
        }
        flags
    }
}

/// The ciphers of a version.
fn all(version: Version) -> Vec<Cipher> {
    let of_version = |cipher: &Cipher| cipher.version() == version;
    Cipher::ALL.into_iter().filter(of_version).collect()
}

/// Reads names with colons between.
fn ciphers(option: &str, version: Version, text: &str) -> Result<Vec<Cipher>, String> {
    let known = all(version);
    let named = |name: &str| {
        known
            .iter()
            .copied()
            .find(|cipher| openssl_name(*cipher) == name)
    };
    let read: Option<Vec<Cipher>> = text.split(':').map(named).collect();
    read.ok_or_else(|| {
        let names: Vec<String> = known.iter().copied().map(openssl_name).collect();
        format!(
            "--{option} {text:?} is more than is spoken: expected some of {}",
            names.join(":")
        )
    })
}

/// OpenSSL's name: that of IANA for TLS 1.3, and one of its own for TLS 1.2, such as ECDHE-RSA-AES128-GCM-SHA256.
fn openssl_name(cipher: Cipher) -> String {
    match cipher.version() {
        Version::Tls13 => cipher.name().to_owned(),
        Version::Tls12 => cipher
            .name()
            .trim_start_matches("TLS_")
            .replace("_WITH", "")
            .replace("AES_", "AES")
            .replace("POLY1305_SHA256", "POLY1305")
            .replace('_', "-"),
    }
}

/// A number; what is 0 or below it is no bound, as h1load has it.
fn bound(letter: char, what: &str, text: &str) -> Result<Option<u64>, String> {
    let text_of_number = match what {
        "seconds" => text.trim_end_matches('s'),
        _ => text,
    };
    let number: i64 = text_of_number
        .parse()
        .map_err(|_| format!("-{letter} wants a whole number of {what}, not {text:?}"))?;
    Ok(u64::try_from(number).ok().filter(|number| *number > 0))
}

fn soft_start(text: &str) -> Result<Duration, String> {
    let seconds = text.trim_end_matches('s').parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("-s wants a number of seconds such as 2.5, not {text:?}"))
}

fn overhead(text: &str) -> Result<Overhead, String> {
    let parsed = text.split_once('/').and_then(|(extra, payload)| {
        let payload = payload.parse().ok().filter(|payload| *payload > 0)?;
        Some(Overhead {
            extra: extra.parse().ok()?,
            payload,
        })
    });
    parsed.ok_or_else(|| format!("-O wants EXTRA/PAYLOAD in bytes such as 78/1448, not {text:?}"))
}

/// Ours for one of h1load, which needs no scheme and has the port behind the last colon, also of an IPv6 address.
fn url(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None => ("http", text),
    };
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    match authority.rsplit_once(':') {
        Some((host, port)) if host.contains(':') && !host.starts_with('[') => {
            format!("{scheme}://[{host}]:{port}{path}")
        }
        _ => format!("{scheme}://{authority}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::as_tool::tests::native;

    #[test]
    fn a_line_of_h1load_becomes_one_of_ours() {
        for (line, expected) in [
            (
                "127.0.0.1:8000/?s=100",
                "-c 1 -t 1 -d 8760h 'http://127.0.0.1:8000/?s=100'",
            ),
            (
                "-e -ll -P -t 4 -c 16 -s 2.5 -d 120 http://192.0.2.1:80",
                "-c 16 -t 4 -d 120s -s 2500ms http://192.0.2.1:80/",
            ),
            (
                "-n 1000 -r 5 -H A:b -H C:d -I -w 500 http://a:1/",
                "-c 1 -t 1 -n 1000 -r 5 --timeout 500ms -X HEAD --header=A:b --header=C:d http://a:1/",
            ),
            (
                "-d 5 -R 1000 -c10 https://::1:443/x --tls-reuse",
                "-c 10 -t 1 -d 5s -R 1000 --connect-first=off --catch-up=10ms --insecure --tls-resume=on 'https://[::1]:443/x'",
            ),
            (
                "-n 50 -R 1000 127.0.0.1:80",
                "-c 1 -t 1 -n 50 -R 1000 --connect-first=off http://127.0.0.1:80/",
            ),
            (
                "-n -1 -r -1 -R 0 -T 50 -w -1 -d 30s [::1]:80/",
                "-c 1 -t 1 -d 30s -T 50ms 'http://[::1]:80/'",
            ),
            (
                "-d 5 --tls-ver TLS1.2 --cipher-list ECDHE-RSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256 https://a:1/",
                "-c 1 -t 1 -d 5s --insecure --tls-resume=off --tls-versions=1.2 --tls-ciphers=TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 https://a:1/",
            ),
            (
                "-d 5 --tls-ver TLS1.3 --cipher-suites TLS_AES_128_GCM_SHA256 https://a:1/",
                "-c 1 -t 1 -d 5s --insecure --tls-resume=off --tls-versions=1.3 --tls-ciphers=TLS_AES_128_GCM_SHA256 https://a:1/",
            ),
            ("-c 5 -h", "help"),
        ] {
            assert_eq!(native(read, line).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn a_list_for_one_version_leaves_the_other_version_its_own() {
        let mut tls = Tls {
            ciphers_13: vec![Cipher::Aes128],
            ..Tls::default()
        };
        let flags = tls.flags();
        let ciphers = flags.last().expect("there are some");
        assert!(
            ciphers.starts_with("--tls-ciphers=TLS_AES_128_GCM_SHA256,TLS_ECDHE_"),
            "{ciphers}"
        );
        assert_eq!(ciphers.split(',').count(), 1 + all(Version::Tls12).len());
        // Ciphers of a version that is not spoken do not matter.
        tls.version = Some(Version::Tls12);
        let flags = tls.flags();
        let ciphers = flags.last().expect("there are some");
        assert_eq!(ciphers.split(',').count(), all(Version::Tls12).len());
    }

    #[test]
    fn what_is_shown_is_read_too() {
        let shown = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            match read(&words) {
                Ok(Line::Run(run)) => run,
                other => panic!("{line}: {other:?}"),
            }
        };
        for (line, form) in [
            ("-d 1 a:1", Form::Brief),
            ("-l a:1", Form::Long),
            ("-ll a:1", Form::Raw),
            ("-l a:1 -l", Form::Raw),
        ] {
            let expected = Lines::new(Shown {
                form,
                ..Shown::default()
            });
            let Printer::H1load { lines, percentiles } = shown(line).printer else {
                panic!("h1load's printer");
            };
            assert_eq!(lines.header(), expected.header(), "{line}");
            assert!(!percentiles);
        }
        let run = shown("-e -v -F a:1");
        assert!(run.stop_on_connect_failure && run.verbose && run.notes[0].starts_with("-F "));
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_option_and_a_way() {
        for (line, part) in [
            ("", "there is no URL"),
            ("a:1 b:2", "\"b:2\" behind the URL \"a:1\""),
            (
                "-c x a:1",
                "-c wants a whole number of connections, not \"x\"",
            ),
            ("-d 2m a:1", "-d wants a whole number of seconds"),
            ("-c", "missing argument for option '-c'"),
            ("-s x a:1", "-s wants a number of seconds"),
            ("-O 78 a:1", "-O wants EXTRA/PAYLOAD"),
            ("-O 78/0 a:1", "-O wants EXTRA/PAYLOAD"),
            ("-c 1 -t 2 a:1", "use -c 2 or more"),
            ("-c 0 a:1", "0 connections are out of range"),
            ("-R 5 -T 5 a:1", "give -R or -T"),
            ("--tls-ver TLS1.1 a:1", "expected TLS1.2 or TLS1.3"),
            (
                "--cipher-list HIGH:!aNULL a:1",
                "expected some of ECDHE-ECDSA-AES256-GCM-SHA384:",
            ),
            ("--latency a:1", "--latency is no option of h1load"),
            ("-x a:1", "-x is no option of h1load"),
            ("-H x a:1", "is not a header"),
            ("-d 5 -s 5 a:1", "use a longer -d"),
        ] {
            let error = native(read, line).expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
