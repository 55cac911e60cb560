//! The command lines of hey and of oha, which has its letters. What is printed is ours: theirs are read by people.

mod options;

use lexopt::Arg;

use super::line::{Line, Printer, Run, is_https, only_url, parser, value};
use options::{HELP_HEY, HELP_OHA, REFUSED, Takes, WITHOUT_EFFECT};

/// Whose command line it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tool {
    Hey,
    Oha,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Hey => "hey",
            Tool::Oha => "oha",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Tool::Hey => HELP_HEY,
            Tool::Oha => HELP_OHA,
        }
    }

    /// What is asked for unless a header says otherwise.
    fn codings(self) -> &'static str {
        match self {
            Tool::Hey => "gzip",
            Tool::Oha => "gzip, compress, deflate, br",
        }
    }
}

/// A time without end: the longest there is.
const NO_END: &str = "8760h";

/// What the options come to.
struct Wanted {
    tool: Tool,
    count: String,
    connections: String,
    duration: Option<String>,
    rate: Option<String>,
    burst: (Option<String>, Option<String>),
    method: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
    timeout: String,
    threads: String,
    codings: Option<&'static str>,
    is_http2: bool,
    /// Concurrent HTTP/2 requests per connection.
    streams: Option<String>,
    /// Flags that are as they are.
    others: Vec<String>,
    notes: Vec<String>,
    is_verbose: bool,
}

impl Wanted {
    fn of(tool: Tool) -> Wanted {
        let (timeout, headers) = match tool {
            Tool::Hey => (
                "20s",
                vec![("Content-Type".to_owned(), "text/html".to_owned())],
            ),
            Tool::Oha => (NO_END, Vec::new()),
        };
        Wanted {
            tool,
            count: "200".to_owned(),
            connections: "50".to_owned(),
            duration: None,
            rate: None,
            burst: (None, None),
            method: "GET".to_owned(),
            headers,
            body: None,
            timeout: timeout.to_owned(),
            threads: "1".to_owned(),
            codings: Some(tool.codings()),
            is_http2: false,
            streams: None,
            others: Vec::new(),
            notes: vec![format!(
                "what is printed is in the form of onrush load, not of {}",
                tool.name()
            )],
            is_verbose: false,
        }
    }

    /// The last of several headers of one name counts, as one that is given stands for the tool's own.
    fn header(&mut self, name: &str, value: &str) {
        let is_other = |(other, _): &(String, String)| !other.eq_ignore_ascii_case(name);
        self.headers.retain(is_other);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    /// Takes one option, whose value `value` reads.
    fn take(
        &mut self,
        name: &str,
        value: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<(), String> {
        match name {
            "n" => self.count = value()?,
            "c" => self.connections = value()?,
            "z" => self.duration = Some(value()?),
            "q" => self.rate = Some(value()?),
            "burst-rate" => self.burst.0 = Some(value()?),
            "burst-delay" => self.burst.1 = Some(value()?),
            "m" | "method" => self.method = value()?,
            "H" => {
                let header = value()?;
                let (name, text) = header.split_once(':').ok_or_else(|| {
                    format!(
                        "-H {header:?} is not a header: expected one such as 'Accept: text/html'"
                    )
                })?;
                self.header(name.trim(), text.trim());
            }
            "A" => self.header("Accept", &value()?),
            "T" => self.header("Content-Type", &value()?),
            "host" => self.header("Host", &value()?),
            "a" => self.others.push(format!("--user={}", value()?)),
            "d" => {
                let text = plain(&value()?);
                // Ours would take a file by that.
                let at = if text.starts_with('@') { "@" } else { "" };
                self.body = Some(format!("--body={at}{text}"));
            }
            "D" => self.body = Some(format!("--body-file={}", value()?)),
            "t" => self.timeout = self.timeout_of(&value()?)?,
            "cpus" | "worker-threads" => self.threads = value()?,
            "disable-keepalive" => self.others.push("--requests=1".to_owned()),
            "disable-compression" => self.codings = None,
            "unix-socket" => self.others.push(format!("--connect-to=unix:{}", value()?)),
            "cacert" | "cert" | "key" => self.others.push(format!("--{name}={}", value()?)),
            "insecure" => self.others.push("--insecure".to_owned()),
            "h2" if self.tool == Tool::Hey => self.is_http2 = true,
            "http2" if self.tool == Tool::Oha => self.is_http2 = true,
            "p" if self.tool == Tool::Oha => self.streams = Some(value()?),
            "http-version" if self.tool == Tool::Oha => {
                self.is_http2 = match &*value()? {
                    "2" => true,
                    "1.1" => false,
                    other => {
                        return Err(format!("--http-version {other}: expected 1.1 or 2"));
                    }
                };
            }
            "v" => self.is_verbose = true,
            _ => return self.leave(name, value),
        }
        Ok(())
    }

    /// What makes no difference, or has no equal.
    fn leave(
        &mut self,
        name: &str,
        value: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<(), String> {
        let dashes = if name.len() == 1 || self.tool == Tool::Hey {
            "-"
        } else {
            "--"
        };
        if let Some((_, takes)) = WITHOUT_EFFECT.iter().find(|(other, _)| *other == name) {
            if *takes == Takes::Value {
                value()?;
            }
            self.notes
                .push(format!("{dashes}{name} has no effect here"));
            return Ok(());
        }
        let refused = REFUSED.iter().find(|(other, _)| *other == name);
        Err(match refused {
            Some((_, way)) => format!("{dashes}{name}: {way}"),
            None => format!(
                "{dashes}{name} is no option of {} that is known here",
                self.tool.name()
            ),
        })
    }

    fn timeout_of(&self, text: &str) -> Result<String, String> {
        match self.tool {
            Tool::Oha => Ok(text.to_owned()),
            Tool::Hey => match text.parse::<u64>() {
                Ok(0) => Ok(NO_END.to_owned()),
                Ok(seconds) => Ok(format!("{seconds}s")),
                Err(_) => Err(format!("-t wants whole seconds such as 20, not {text:?}")),
            },
        }
    }

    /// Our flags.
    fn native(mut self, url: &str) -> Result<Run, String> {
        let http2 = self.http2(url)?;
        let mut native = vec![
            format!("--connections={}", self.connections),
            format!("--threads={}", self.threads),
        ];
        native.extend(http2);
        native.push(match &self.duration {
            Some(duration) => format!("--duration={duration}"),
            None => format!("--count={}", self.count),
        });
        match (self.tool, &self.rate, &self.burst) {
            (Tool::Hey, Some(rate), _) if !self.is_http2 => {
                native.push(format!("--rate-per-connection={rate}"))
            }
            (Tool::Oha | Tool::Hey, Some(rate), _) => native.push(format!("--rate={rate}")),
            (_, None, (count, Some(every))) => {
                let count = count.as_deref().unwrap_or("1");
                native.push(format!("--burst={count}/{every}"));
            }
            (_, None, (Some(_), None)) => {
                return Err(
                    "--burst-rate wants --burst-delay, the time from one burst to the next"
                        .to_owned(),
                );
            }
            (_, None, (None, None)) => {}
        }
        native.push(format!("--timeout={}", self.timeout));
        native.push(format!("--method={}", self.method));
        if let Some(codings) = self.codings
            && !self
                .headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"))
        {
            self.header("Accept-Encoding", codings);
        }
        let headers = self.headers.iter();
        native.extend(headers.map(|(name, value)| format!("--header={name}: {}", plain(value))));
        native.extend(self.body);
        native.extend(self.others);
        native.push(plain(url));
        Ok(Run {
            native,
            printer: Printer::Own,
            verbose: self.is_verbose,
            is_capped: false,
            stop_on_connect_failure: false,
            notes: self.notes,
        })
    }
}

impl Wanted {
    /// Our flags for HTTP/2; also adapts the connections and the rate.
    fn http2(&mut self, url: &str) -> Result<Vec<String>, String> {
        if self.tool == Tool::Hey && self.is_http2 && !is_https(url) {
            self.is_http2 = false;
            self.notes
                .push("-h2 has no effect over http://, as with hey".to_owned());
        }
        if !self.is_http2 {
            return Ok(Vec::new());
        }
        if self.tool == Tool::Hey {
            // Go's client sends the requests of all workers over one connection.
            let workers = std::mem::replace(&mut self.connections, "1".to_owned());
            if let Some(rate) = &self.rate {
                let all = rate.parse::<f64>().ok().zip(workers.parse::<f64>().ok());
                let (rate, workers) =
                    all.ok_or_else(|| format!("-q {rate} -c {workers}: expected numbers"))?;
                self.rate = Some((rate * workers).to_string());
            }
            self.streams = Some(workers);
        }
        let streams = self.streams.iter();
        let streams = streams.map(|streams| format!("--streams={streams}"));
        Ok(["--http2".to_owned()].into_iter().chain(streams).collect())
    }
}

/// Text in which ours finds no variable.
fn plain(text: &str) -> String {
    text.replace("{{", "{{}}")
}

/// Reads it, or says what is wrong with it.
pub(super) fn read(tool: Tool, words: &[String]) -> Result<Line, String> {
    let mut wanted = Wanted::of(tool);
    let urls = match tool {
        Tool::Hey => read_hey(&mut wanted, words)?,
        Tool::Oha => read_oha(&mut wanted, words)?,
    };
    let Some(urls) = urls else {
        return Ok(Line::Help(tool.help()));
    };
    let url = only_url(urls, "there may be one")?;
    wanted.native(&url).map(Line::Run)
}

/// By the rules of Go's flags: one dash or two, the value in the next word or behind `=`; the first word that is none ends
/// them. The URLs; `None` where it asks for help.
fn read_hey(wanted: &mut Wanted, words: &[String]) -> Result<Option<Vec<String>>, String> {
    let mut words = words.iter();
    let mut urls = Vec::new();
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").or(word.strip_prefix('-'));
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            urls.push(word.clone());
            urls.extend(words.cloned());
            break;
        };
        let (name, joined) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (name, None),
        };
        if matches!(name, "h" | "help") {
            return Ok(None);
        }
        let mut value = || {
            let next = || words.next().cloned();
            joined
                .clone()
                .or_else(next)
                .ok_or_else(|| format!("-{name} wants a value"))
        };
        wanted.take(name, &mut value)?;
    }
    Ok(Some(urls))
}

/// By the rules of getopt, as clap has them too. The URLs; `None` where it asks for help.
fn read_oha(wanted: &mut Wanted, words: &[String]) -> Result<Option<Vec<String>>, String> {
    let mut parser = parser(words);
    let mut urls = Vec::new();
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        let name = match arg {
            Arg::Short(letter) => letter.to_string(),
            Arg::Long(name) => name.to_owned(),
            Arg::Value(url) => {
                urls.push(url.to_string_lossy().into_owned());
                continue;
            }
        };
        if matches!(name.as_str(), "h" | "help") {
            return Ok(None);
        }
        wanted.take(&name, &mut || value(&mut parser))?;
    }
    Ok(Some(urls))
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
    fn a_line_of_oha_becomes_one_of_ours() {
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
    fn a_line_of_hey_becomes_one_of_ours() {
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
    fn what_has_no_equal_is_refused_by_its_name_with_a_way() {
        for (tool, line, part) in [
            (Tool::Oha, "--http-version 3 http://a/", "expected 1.1 or 2"),
            (
                Tool::Oha,
                "-r 5 http://a/",
                "-r: redirects are followed by journeys",
            ),
            (Tool::Oha, "--output-format json http://a/", "--json"),
            (Tool::Oha, "--rand-regex-url http://a/", "{{random:1-1000}}"),
            (
                Tool::Oha,
                "--nothing http://a/",
                "--nothing is no option of oha",
            ),
            (Tool::Oha, "--burst-rate 5 http://a/", "--burst-delay"),
            (Tool::Oha, "-H x http://a/", "is not a header"),
            (Tool::Oha, "http://a/ http://b/", "behind the URL"),
            (Tool::Oha, "-n", "-n"),
            (Tool::Hey, "-t 1s http://a/", "whole seconds"),
            (Tool::Hey, "-n", "-n wants a value"),
            (Tool::Hey, "-n 5", "there is no URL"),
        ] {
            let error = native(|words| read(tool, words), line).expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn what_makes_no_difference_is_said() {
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
