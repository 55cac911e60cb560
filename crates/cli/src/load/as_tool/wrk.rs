//! The command lines of wrk and of wrk2, which has some options more.

use std::time::Duration;

use lexopt::Arg;
use onrush_load::dialect::wrk::{CALIBRATION, Shown, Text};
use onrush_load::target::Target;

pub(super) use onrush_load::dialect::wrk::Tool;

use super::line::{Line, Printer, Run, is_https, only_url, parser, value};

const HELP_WRK: &str = "\
onrush load --as wrk [option]... URL

  -c, --connections COUNT  connections (10)
  -t, --threads COUNT      threads (2)
  -d, --duration TIME      how long the run takes (10s)
  -H, --header 'N: VALUE'  a header to send; repeatable
  -L, --latency            percentiles of the latency
  -T, --timeout TIME       responses that take longer are counted as timeouts, too (2s)
  -v, --version            say on standard error which command line of onrush load this is

Counts may have a unit (1k, 1M, 1G) and so may times (2s, 2m, 2h). Scripts in Lua (-s) are not run.
";

const HELP_WRK2: &str = "\
onrush load --as wrk2 [option]... URL

  -R, --rate COUNT         requests per second in all; it must be given
  -c, --connections COUNT  connections (10)
  -t, --threads COUNT      threads (2)
  -d, --duration TIME      how long the run takes (10s); the first 10 s of a longer one are not measured
  -H, --header 'N: VALUE'  a header to send; repeatable
  -L, --latency            percentiles of the latency from the intended start
  -U, --u_latency          those of the latency from the sending, too
  -B, --batch_latency      makes no difference without a script
  -T, --timeout TIME       responses that take longer are counted as timeouts, too (2s)
  -v, --version            say on standard error which command line of onrush load this is

Counts may have a unit (1k, 1M, 1G) and so may times (2s, 2m, 2h). Scripts in Lua (-s) are not run.
";

/// The long name of each option.
const LONG: [(&str, char); 12] = [
    ("connections", 'c'),
    ("duration", 'd'),
    ("threads", 't'),
    ("script", 's'),
    ("header", 'H'),
    ("latency", 'L'),
    ("timeout", 'T'),
    ("help", 'h'),
    ("version", 'v'),
    ("rate", 'R'),
    ("u_latency", 'U'),
    ("batch_latency", 'B'),
];

/// Those that only wrk2 has.
const WRK2_ONLY: [char; 3] = ['R', 'U', 'B'];

/// A script is refused with what most scripts are for.
const NO_SCRIPTS: &str = "-s: scripts in Lua are not run; what most of them do, onrush load has options for: -X and --body for another method, --requests-file for many requests, --data for values from a file, --expect-status, -T for pauses, --pipeline";

/// Reads it, or says what is wrong with it.
pub(super) fn read(tool: Tool, words: &[String]) -> Result<Line, String> {
    let mut parser = parser(words);
    let mut shown = Shown {
        tool,
        url: String::new(),
        duration: Duration::from_secs(10),
        threads: 2,
        connections: 10,
        latency: false,
        uncorrected: false,
        timeout: Duration::from_secs(2),
    };
    let (mut rate, mut headers, mut urls, mut verbose) = (0, Vec::new(), Vec::new(), false);
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        let letter = match arg {
            Arg::Short(letter) => letter,
            Arg::Long(name) => letter_of(tool, name)?,
            Arg::Value(url) => {
                urls.push(url.to_string_lossy().into_owned());
                continue;
            }
        };
        match letter {
            'h' | '?' => return Ok(Line::Help(help(tool))),
            _ if tool == Tool::Wrk && WRK2_ONLY.contains(&letter) => {
                return Err(format!("-{letter} is an option of wrk2: use --as wrk2"));
            }
            'c' => shown.connections = count(letter, &value(&mut parser)?)?,
            't' => shown.threads = count(letter, &value(&mut parser)?)?,
            'd' => shown.duration = time(letter, &value(&mut parser)?)?,
            'T' => shown.timeout = time(letter, &value(&mut parser)?)?,
            'R' => rate = count(letter, &value(&mut parser)?)?,
            'H' => headers.push(format!("--header={}", value(&mut parser)?)),
            'L' => shown.latency = true,
            'U' => (shown.latency, shown.uncorrected) = (true, true),
            'B' => {}
            'v' => verbose = true,
            's' => return Err(NO_SCRIPTS.to_owned()),
            _ => return Err(format!("-{letter} is no option of {}", name(tool))),
        }
    }
    shown.url = only_url(urls, "arguments are for scripts, and none is run")?;
    // Without a scheme it is none for wrk.
    Target::of_url(&shown.url)?;
    let mut native = native(&shown, rate)?;
    native.extend(headers);
    native.push(shown.url.clone());
    Ok(Line::Run(Run {
        native,
        printer: Printer::Wrk(Text::new(shown)),
        verbose,
        is_capped: false,
        stop_on_connect_failure: false,
        notes: Vec::new(),
    }))
}

/// Our flags, but for headers.
fn native(shown: &Shown, rate: u64) -> Result<Vec<String>, String> {
    let seconds = shown.duration.as_secs();
    let mut native = vec![
        "-c".to_owned(),
        shown.connections.to_string(),
        "-t".to_owned(),
        shown.threads.to_string(),
        "-d".to_owned(),
        format!("{seconds}s"),
        // No response is given up: wrk counts those that are slow, and goes on waiting.
        format!("--timeout={}s", seconds.saturating_add(1)),
    ];
    if is_https(&shown.url) {
        native.push("--insecure".to_owned());
    }
    if shown.tool == Tool::Wrk2 {
        if rate == 0 {
            return Err(
                "wrk2 wants a rate: -R COUNT, such as -R 2000; without one use --as wrk".to_owned(),
            );
        }
        native.extend(["-R".to_owned(), rate.to_string()]);
        if shown.duration > CALIBRATION {
            native.push(format!("--warm-up={}s", CALIBRATION.as_secs()));
        }
    }
    Ok(native)
}

fn help(tool: Tool) -> &'static str {
    match tool {
        Tool::Wrk => HELP_WRK,
        Tool::Wrk2 => HELP_WRK2,
    }
}

fn name(tool: Tool) -> &'static str {
    match tool {
        Tool::Wrk => "wrk",
        Tool::Wrk2 => "wrk2",
    }
}

/// The short form of a long option, which may be cut short as long as it is the only one that begins so (getopt_long).
fn letter_of(tool: Tool, given: &str) -> Result<char, String> {
    let known = |letter: &char| tool == Tool::Wrk2 || !WRK2_ONLY.contains(letter);
    let of = |is: &dyn Fn(&str) -> bool| -> Vec<char> {
        let found = LONG.iter().filter(|(name, _)| is(name));
        found.map(|(_, letter)| *letter).filter(known).collect()
    };
    let exact = of(&|name| name == given);
    match (
        exact.as_slice(),
        of(&|name| name.starts_with(given)).as_slice(),
    ) {
        (&[letter], _) | (_, &[letter]) => Ok(letter),
        (_, []) => Err(format!("--{given} is no option of {}", name(tool))),
        _ => Err(format!(
            "--{given} is the beginning of several options of {}",
            name(tool)
        )),
    }
}

/// A whole number and what is behind it.
fn number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, unit) = text.split_at(digits);
    Some((digits.parse().ok()?, unit))
}

fn count(letter: char, text: &str) -> Result<u64, String> {
    let counted = number(text).and_then(|(count, unit)| {
        let scale: u64 = match unit {
            "" => 1,
            "k" | "K" => 1_000,
            "m" | "M" => 1_000_000,
            "g" | "G" => 1_000_000_000,
            _ => return None,
        };
        count.checked_mul(scale)
    });
    counted.ok_or_else(|| format!("-{letter} wants a number such as 100 or 10k, not {text:?}"))
}

fn time(letter: char, text: &str) -> Result<Duration, String> {
    let timed = number(text).and_then(|(count, unit)| {
        let scale: u64 = match unit {
            "" | "s" | "S" => 1,
            "m" | "M" => 60,
            "h" | "H" => 3600,
            _ => return None,
        };
        count.checked_mul(scale).map(Duration::from_secs)
    });
    timed.ok_or_else(|| {
        format!("-{letter} wants whole seconds, minutes or hours such as 30s or 2m, not {text:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::as_tool::tests::native;

    fn wrk(line: &str) -> Result<String, String> {
        native(|words| read(Tool::Wrk, words), line)
    }

    fn wrk2(line: &str) -> Result<String, String> {
        native(|words| read(Tool::Wrk2, words), line)
    }

    #[test]
    fn a_line_of_wrk_becomes_one_of_ours() {
        for (line, expected) in [
            ("http://a/", "-c 10 -t 2 -d 10s --timeout=11s http://a/"),
            (
                "-t4 -c1k -d30s --latency http://a/b?c",
                "-c 1000 -t 4 -d 30s --timeout=31s 'http://a/b?c'",
            ),
            (
                "http://a/ --connections=20 --threads 1 --dur 2m -HA:b",
                "-c 20 -t 1 -d 120s --timeout=121s --header=A:b http://a/",
            ),
            (
                "-Lc2 -d 1h --timeout 30 https://a/",
                "-c 2 -t 2 -d 3600s --timeout=3601s --insecure https://a/",
            ),
            ("--help", "help"),
        ] {
            assert_eq!(wrk(line).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn a_line_of_wrk2_has_a_rate_and_a_warm_up_when_it_is_long() {
        for (line, expected) in [
            (
                "-R2000 -t2 -c100 -d30s -L http://a/",
                "-c 100 -t 2 -d 30s --timeout=31s -R 2000 --warm-up=10s http://a/",
            ),
            (
                "--rate 10k -d5 -U -B http://a/",
                "-c 10 -t 2 -d 5s --timeout=6s -R 10000 http://a/",
            ),
        ] {
            assert_eq!(wrk2(line).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_option_and_a_way() {
        for (line, part) in [
            ("-d 1", "there is no URL"),
            ("-s post.lua http://a/", "-X"),
            ("http://a/ -- 5", "arguments are for scripts"),
            ("-d 1.5s http://a/", "-d wants whole seconds"),
            ("-c 10x http://a/", "-c wants a number such as 100 or 10k"),
            ("-c -5 http://a/", "-c wants a number"),
            ("-R 10 http://a/", "use --as wrk2"),
            ("--rate 10 http://a/", "--rate is no option of wrk"),
            ("--t 10 http://a/", "--t is the beginning of several"),
            ("-c 1 http://a/", "use -c 2 or more"),
            ("-d 0 http://a/", "no time"),
            ("-x http://a/", "-x is no option of wrk"),
            ("a:80/", "does not begin with http://"),
        ] {
            let error = wrk(line).expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
        let error = wrk2("http://a/").expect_err("without a rate");
        assert!(error.contains("-R COUNT"), "{error}");
    }
}
