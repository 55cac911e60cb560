//! The command line of h1load.

use std::time::Duration;

use onrush_load::dialect::h1load::{LineFormat, LineFormatter, OutputOptions, Overhead};
use onrush_load::{Cipher, Version};

use super::line::{Line, Printer, Run, is_https};
use super::option::Action::{Flag, Ignored, Value};
use super::option::{Grammar, ParsedOptions, Row, Syntax, any, table};

const HELP: &str = "\
onrush load --as h1load [option]... URL

  -c COUNT, -t COUNT  connections, threads (1 each)
  -d SECONDS          duration of the run (unlimited)
  -n COUNT            total requests (unlimited)
  -r COUNT            requests per connection (unlimited)
  -s SECONDS          increase the load to its full level over this time, in ten steps; -P measures after it
  -R RATE             maximum requests per second, evenly spaced; requests that are 10 ms late are skipped
  -T MS               pause between a response and the next request, varied by 3 %
  -w MS               timeout without received data while a response is outstanding (10000)
  -H 'Name: value'    header field to send; repeatable
  -I                  send HEAD instead of GET
  -A                  exclude the first response of each connection from -P, but not from the lines' means
  -e                  stop after the first second with a failed connection
  -l, -ll             print long lines, raw lines
  -S                  print responses by status class
  -O EXTRA/PAYLOAD    add EXTRA bytes per PAYLOAD bytes to the byte rates
  -P                  print percentiles at the end
  --tls-reuse         resume TLS sessions; certificates are not verified, as with h1load
  --tls-ver VERSION   use only TLS1.2 or TLS1.3
  --cipher-list LIST, --cipher-suites LIST
                      OpenSSL names of ciphers for TLS 1.2, for TLS 1.3, separated by colons
  -F                  has no effect
  -v                  print the command line of onrush load to standard error
";

/// h1load runs until it is stopped: the longest duration that `onrush load` accepts.
const NO_END: &str = "8760h";

/// h1load's rate is a cap and does not make up for lost time. It checks once per millisecond, later on a busy machine.
const CATCH_UP: &str = "--catch-up=10ms";

const SYNTAX: Syntax = Syntax {
    tool: "h1load",
    grammar: Grammar::Getopt,
    help: HELP,
    tables: [OPTIONS, &[]],
};

const OPTIONS: &[Row] = table! {
    "-h -l -S -P -I -A -e -v --tls-reuse" => Flag(""),
    "-c" => Value(|name, text| bound(name, "connections", text)),
    "-t" => Value(|name, text| bound(name, "threads", text)),
    "-d" => Value(|name, text| bound(name, "seconds", text)),
    "-n -r" => Value(|name, text| bound(name, "requests", text)),
    "-R" => Value(|name, text| bound(name, "requests per second", text)),
    "-T -w" => Value(|name, text| bound(name, "milliseconds", text)),
    "-s" => Value(|_, text| soft_start(text).map(|_| text.to_owned())),
    "-O" => Value(|_, text| overhead(text).map(|_| text.to_owned())),
    "-H" => Value(any),
    "-F" => Ignored(" has no effect: the kernel decides whether a request is sent with the handshake's ACK"),
    "--tls-ver" => Value(|_, text| version(text).map(|_| text.to_owned())),
    "--cipher-list" => Value(|name, text| ciphers(name, Version::Tls12, text).map(|_| text.to_owned())),
    "--cipher-suites" => Value(|name, text| ciphers(name, Version::Tls13, text).map(|_| text.to_owned())),
};

/// Parses the command line.
pub(super) fn read(words: &[String]) -> Result<Line, String> {
    SYNTAX.line(words, run)
}

fn run(given: ParsedOptions) -> Result<Run, String> {
    // 0 means unlimited.
    let bound = |name| given.last(name).filter(|number| *number != "0");
    let rate = bound("-R");
    if rate.is_some() && bound("-T").is_some() {
        return Err("-R and -T cannot be combined: with -T a connection sends at most 1000/MS requests per second; pass -R or -T".to_owned());
    }
    let shown = OutputOptions {
        form: match given.all("-l").count() {
            0 => LineFormat::Brief,
            1 => LineFormat::Long,
            _ => LineFormat::Raw,
        },
        statuses: given.has("-S"),
        overhead: given.last("-O").map(overhead).transpose()?,
        soft_start: given.last("-s").map_or(Ok(Duration::ZERO), soft_start)?,
    };
    let duration = match (bound("-d"), bound("-n")) {
        (Some(seconds), _) => Some(format!("{seconds}s")),
        (None, Some(_)) => None,
        (None, None) => Some(NO_END.to_owned()),
    };
    let ms = |ms| format!("{ms}ms");
    let soft_start = (!shown.soft_start.is_zero()).then_some(shown.soft_start.as_millis());
    let flags = [
        ("-c", Some(given.last("-c").unwrap_or("1").to_owned())),
        ("-t", Some(given.last("-t").unwrap_or("1").to_owned())),
        ("-d", duration),
        ("-n", bound("-n").map(str::to_owned)),
        ("-r", bound("-r").map(str::to_owned)),
        ("-R", rate.map(str::to_owned)),
        ("-T", bound("-T").map(ms)),
        ("-s", soft_start.map(|ms| format!("{ms}ms"))),
        ("--timeout", bound("-w").map(ms)),
        ("-X", given.has("-I").then(|| "HEAD".to_owned())),
    ];
    let flags = flags.into_iter();
    let flags = flags.filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
    let mut native: Vec<String> = flags.flatten().collect();
    if rate.is_some() {
        native.push("--connect-first=off".to_owned());
        // With a number of requests, all of them are sent.
        native.extend(bound("-n").is_none().then(|| CATCH_UP.to_owned()));
    }
    if given.has("-A") {
        native.push("--skip-first".to_owned());
    }
    native.extend(given.all("-H").map(|header| format!("--header={header}")));
    let url = url(given.only_argument("URL", "h1load accepts one URL")?);
    if is_https(&url) {
        native.extend(Tls::of(&given)?.flags());
    }
    native.push(url);
    let printer = Printer::H1load {
        lines: LineFormatter::new(shown),
        percentiles: given.has("-P"),
    };
    Ok(Run {
        is_capped: rate.is_some(),
        stop_on_connect_failure: given.has("-e"),
        ..given.run(native, printer)
    })
}

/// TLS settings.
#[derive(Default)]
struct Tls {
    resumes: bool,
    version: Option<Version>,
    /// TLS 1.2 ciphers in order of preference; empty for all supported ones. `ciphers_13` is the same for TLS 1.3.
    ciphers_12: Vec<Cipher>,
    ciphers_13: Vec<Cipher>,
}

impl Tls {
    fn of(given: &ParsedOptions) -> Result<Tls, String> {
        let ciphers_of = |name, version| match given.last(name) {
            Some(list) => ciphers(name, version, list),
            None => Ok(Vec::new()),
        };
        Ok(Tls {
            resumes: given.has("--tls-reuse"),
            version: given.last("--tls-ver").map(version).transpose()?,
            ciphers_12: ciphers_of("--cipher-list", Version::Tls12)?,
            ciphers_13: ciphers_of("--cipher-suites", Version::Tls13)?,
        })
    }

    /// Native flags. h1load accepts any certificate.
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
            // `onrush load` has one list for both versions, h1load one for each.
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

/// Supported ciphers of a version.
fn all(version: Version) -> Vec<Cipher> {
    let of_version = |cipher: &Cipher| cipher.version() == version;
    Cipher::ALL.into_iter().filter(of_version).collect()
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "TLS1.2" => Ok(Version::Tls12),
        "TLS1.3" => Ok(Version::Tls13),
        _ => Err(format!(
            "--tls-ver {text}: unsupported version: expected TLS1.2 or TLS1.3"
        )),
    }
}

/// Parses names separated by colons.
fn ciphers(name: &str, version: Version, text: &str) -> Result<Vec<Cipher>, String> {
    let known = all(version);
    let named = |name| {
        known
            .iter()
            .copied()
            .find(|cipher| openssl_name(*cipher) == name)
    };
    let read: Option<Vec<Cipher>> = text.split(':').map(named).collect();
    read.ok_or_else(|| {
        let names: Vec<String> = known.iter().copied().map(openssl_name).collect();
        format!(
            "{name} {text:?} contains an unsupported cipher: expected some of {}",
            names.join(":")
        )
    })
}

/// OpenSSL's name: IANA's for TLS 1.3, and its own for TLS 1.2, such as ECDHE-RSA-AES128-GCM-SHA256.
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

/// Parses a number. As in h1load, 0 and negative numbers mean unlimited.
fn bound(name: &str, what: &str, text: &str) -> Result<String, String> {
    let text_of_number = match what {
        "seconds" => text.trim_end_matches('s'),
        _ => text,
    };
    let number: i64 = text_of_number
        .parse()
        .map_err(|_| format!("{name} {text:?}: expected a whole number of {what}"))?;
    Ok(number.max(0).to_string())
}

fn soft_start(text: &str) -> Result<Duration, String> {
    let seconds = text.trim_end_matches('s').parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("-s {text:?}: expected a number of seconds such as 2.5"))
}

fn overhead(text: &str) -> Result<Overhead, String> {
    let parsed = text.split_once('/').and_then(|(extra, payload)| {
        let payload = payload.parse().ok().filter(|payload| *payload > 0)?;
        Some(Overhead {
            extra: extra.parse().ok()?,
            payload,
        })
    });
    parsed.ok_or_else(|| format!("-O {text:?}: expected EXTRA/PAYLOAD in bytes such as 78/1448"))
}

/// Native URL. h1load needs no scheme and takes the number after the last colon as the port, also for an IPv6 address.
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
    fn h1load_line_is_translated() {
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
    fn cipher_list_applies_to_its_tls_version_only() {
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
        // Ciphers of an excluded version do not matter.
        tls.version = Some(Version::Tls12);
        let flags = tls.flags();
        let ciphers = flags.last().expect("there are some");
        assert_eq!(ciphers.split(',').count(), all(Version::Tls12).len());
    }

    #[test]
    fn output_flags_are_parsed() {
        let shown = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            match read(&words) {
                Ok(Line::Run(run)) => run,
                other => panic!("{line}: {other:?}"),
            }
        };
        for (line, form) in [
            ("-d 1 a:1", LineFormat::Brief),
            ("-l a:1", LineFormat::Long),
            ("-ll a:1", LineFormat::Raw),
            ("-l a:1 -l", LineFormat::Raw),
        ] {
            let expected = LineFormatter::new(OutputOptions {
                form,
                ..OutputOptions::default()
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
    fn errors_state_option_and_alternative() {
        for (line, part) in [
            ("", "no URL given"),
            ("a:1 b:2", "\"b:2\" after the URL \"a:1\""),
            (
                "-c x a:1",
                "-c \"x\": expected a whole number of connections",
            ),
            ("-d 2m a:1", "-d \"2m\": expected a whole number of seconds"),
            ("-c", "missing argument for option '-c'"),
            ("-s x a:1", "-s \"x\": expected a number of seconds"),
            ("-O 78 a:1", "-O \"78\": expected EXTRA/PAYLOAD"),
            ("-O 78/0 a:1", "-O \"78/0\": expected EXTRA/PAYLOAD"),
            ("-c 1 -t 2 a:1", "use -c 2 or more"),
            ("-c 0 a:1", "0 connections are out of range"),
            ("-R 5 -T 5 a:1", "pass -R or -T"),
            ("--tls-ver TLS1.1 a:1", "expected TLS1.2 or TLS1.3"),
            (
                "--cipher-list HIGH:!aNULL a:1",
                "expected some of ECDHE-ECDSA-AES256-GCM-SHA384:",
            ),
            ("--latency a:1", "--latency is not an option of h1load"),
            ("-x a:1", "-x is not an option of h1load"),
            ("-H x a:1", "is not a header"),
            ("-d 5 -s 5 a:1", "use a longer -d"),
        ] {
            let error = native(read, line).expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
