//! Command lines of hey and oha, which share most options. The output is that of `onrush load`: only people read
//! theirs.

mod options;

use super::line::{Line, Printer, Run, is_https};
use super::option::ParsedOptions;
use options::{HEY, NO_END, OHA, OUR_FLAGS, plain};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tool {
    Hey,
    Oha,
}

/// Parses the command line.
pub(super) fn read(tool: Tool, words: &[String]) -> Result<Line, String> {
    let syntax = match tool {
        Tool::Hey => HEY,
        Tool::Oha => OHA,
    };
    syntax.line(words, |given| run(tool, given))
}

fn run(tool: Tool, mut given: ParsedOptions) -> Result<Run, String> {
    let url = given
        .only_argument("URL", "only one URL is accepted")?
        .to_owned();
    let (name, timeout) = match tool {
        Tool::Hey => ("hey", "20s"),
        Tool::Oha => ("oha", NO_END),
    };
    let printed = format!("the output has the format of onrush load, not of {name}");
    given.notes.insert(0, printed);
    let is_http2 = match tool {
        Tool::Hey => given.has("--h2") && is_https(&url),
        Tool::Oha => given.last("--http2 --http-version") == Some("2"),
    };
    if given.has("--h2") && !is_http2 {
        let note = "-h2 has no effect over http://, as with hey";
        given.notes.push(note.to_owned());
    }
    let or = |names, default| given.last(names).unwrap_or(default);
    let workers = or("-c", "50");
    let (connections, streams) = match tool {
        // Go's client sends the requests of all workers over one connection.
        Tool::Hey if is_http2 => ("1", Some(workers)),
        Tool::Hey | Tool::Oha => (workers, given.last("-p")),
    };
    let mut native = vec![
        format!("--connections={connections}"),
        format!("--threads={}", or("--cpus", "1")),
    ];
    if is_http2 {
        native.push("--http2".to_owned());
        native.extend(streams.map(|streams| format!("--streams={streams}")));
    }
    native.push(match given.last("-z") {
        Some(time) => format!("--duration={time}"),
        None => format!("--count={}", or("-n", "200")),
    });
    native.extend(match (given.last("-q"), tool) {
        (Some(rate), Tool::Hey) if is_http2 => Some(format!("--rate={}", of_all(rate, workers)?)),
        (Some(rate), Tool::Hey) => Some(format!("--rate-per-connection={rate}")),
        (Some(rate), Tool::Oha) => Some(format!("--rate={rate}")),
        (None, Tool::Hey | Tool::Oha) => burst(&given)?,
    });
    native.push(format!("--timeout={}", or("-t", timeout)));
    native.push(format!("--method={}", or("-m", "GET")));
    native.extend(
        headers(tool, &given)
            .iter()
            .map(|header| format!("--header={header}")),
    );
    native.extend(given.last("-d -D").map(str::to_owned));
    native.extend(given.all(OUR_FLAGS).map(str::to_owned));
    native.push(plain(&url));
    Ok(given.run(native, Printer::Own))
}

/// The total rate of all workers.
fn of_all(rate: &str, workers: &str) -> Result<f64, String> {
    let numbers = rate.parse::<f64>().ok().zip(workers.parse::<f64>().ok());
    let numbers = numbers.ok_or_else(|| format!("-q {rate} -c {workers}: expected numbers"));
    numbers.map(|(rate, workers)| rate * workers)
}

fn burst(given: &ParsedOptions) -> Result<Option<String>, String> {
    match (given.last("--burst-rate"), given.last("--burst-delay")) {
        (count, Some(every)) => Ok(Some(format!("--burst={}/{every}", count.unwrap_or("1")))),
        (Some(_), None) => {
            Err("--burst-rate needs --burst-delay, the time between bursts".to_owned())
        }
        (None, None) => Ok(None),
    }
}

/// Headers of a request. The last one of a name replaces earlier ones and the tool's own.
fn headers(tool: Tool, given: &ParsedOptions) -> Vec<&str> {
    let (own, codings) = match tool {
        Tool::Hey => (Some("Content-Type: text/html"), "Accept-Encoding: gzip"),
        Tool::Oha => (None, "Accept-Encoding: gzip, compress, deflate, br"),
    };
    let name = |header: &str| header.split(':').next().map(str::to_ascii_lowercase);
    let mut headers: Vec<&str> = Vec::new();
    for header in own.into_iter().chain(given.all("-H -A -T --host")) {
        headers.retain(|other| name(other) != name(header));
        headers.push(header);
    }
    let asks = headers.iter().any(|header| name(header) == name(codings));
    if !asks && !given.has("--disable-compression") {
        headers.push(codings);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::as_tool::tests::native;

    #[track_caller]
    fn check(tool: Tool, line: &str, expected: &str) {
        let found = native(|words| read(tool, words), line);
        assert_eq!(found.as_deref(), Ok(expected), "{line}");
    }

    #[test]
    fn oha_line_is_translated() {
        for (line, expected) in [
            (
                "http://a/",
                "--connections=50 --threads=1 --count=200 --timeout=8760h --method=GET '--header=Accept-Encoding: gzip, compress, deflate, br' http://a/",
            ),
            (
                "-z 5s -c10 -q 100 --disable-keepalive --disable-compression --no-tui -t 2s http://a/b",
                "--connections=10 --threads=1 --duration=5s --rate=100 --timeout=2s --method=GET --requests=1 http://a/b",
            ),
            (
                "-n 10 -m POST -d @a{{b -T text/plain -H A:b -H Accept-Encoding:br --burst-rate 5 --burst-delay 2s http://a/",
                "--connections=50 --threads=1 --count=10 --burst=5/2s --timeout=8760h --method=POST '--header=Content-Type: text/plain' '--header=A: b' '--header=Accept-Encoding: br' '--body=@@a{{}}b' http://a/",
            ),
            (
                "-n 10 --http2 -p 4 --disable-compression http://a/",
                "--connections=50 --threads=1 --http2 --streams=4 --count=10 --timeout=8760h --method=GET http://a/",
            ),
            ("--help", "help"),
        ] {
            check(Tool::Oha, line, expected);
        }
    }

    #[test]
    fn hey_line_is_translated() {
        for (line, expected) in [
            (
                "-n=100 -c 10 -disable-compression http://a/",
                "--connections=10 --threads=1 --count=100 --timeout=20s --method=GET '--header=Content-Type: text/html' http://a/",
            ),
            (
                "-z 10s -q 5 -t 0 --disable-keepalive -T a/b -host b -cpus 2 -disable-compression http://a/",
                "--connections=50 --threads=2 --duration=10s --rate-per-connection=5 --timeout=8760h --method=GET '--header=Content-Type: a/b' '--header=Host: b' --requests=1 http://a/",
            ),
            (
                "-h2 -c 20 -q 5 -disable-compression https://a/",
                "--connections=1 --threads=1 --http2 --streams=20 --count=200 --rate=100 --timeout=20s --method=GET '--header=Content-Type: text/html' https://a/",
            ),
            (
                "-h2 -c 20 -disable-compression http://a/",
                "--connections=20 --threads=1 --count=200 --timeout=20s --method=GET '--header=Content-Type: text/html' http://a/",
            ),
            ("-h", "help"),
        ] {
            check(Tool::Hey, line, expected);
        }
    }

    #[test]
    fn unsupported_option_errors_state_alternative() {
        for (tool, line, part) in [
            (Tool::Oha, "--http-version 3 http://a/", "expected 1.1 or 2"),
            (
                Tool::Oha,
                "-r 5 http://a/",
                "-r: to follow redirects use onrush load --journeys",
            ),
            (Tool::Oha, "--output-format json http://a/", "--json"),
            (Tool::Oha, "--rand-regex-url http://a/", "{{random:1-1000}}"),
            (
                Tool::Oha,
                "--nothing http://a/",
                "--nothing is not an option of oha",
            ),
            (Tool::Oha, "--burst-rate 5 http://a/", "--burst-delay"),
            (Tool::Oha, "-H x http://a/", "is not a header"),
            (Tool::Oha, "http://a/ http://b/", "after the URL"),
            (Tool::Oha, "-n", "-n"),
            (Tool::Hey, "-t 1s http://a/", "whole seconds"),
            (Tool::Hey, "-n", "-n needs a value"),
            (Tool::Hey, "-n 5", "no URL given"),
        ] {
            let error = native(|words| read(tool, words), line).expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn options_without_effect_have_notes() {
        let words = ["-w", "--fps", "5", "http://a/"].map(str::to_owned);
        let Ok(Line::Run(run)) = read(Tool::Oha, &words) else {
            panic!("it is one");
        };
        let notes = run.notes.join("; ");
        for part in ["not of oha", "-w has no effect", "--fps has no effect"] {
            assert!(notes.contains(part), "{notes}");
        }
    }
}
