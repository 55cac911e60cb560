//! Command lines of wrk and of wrk2, which has a few more options.

use std::time::Duration;

use onrush_load::dialect::wrk::{CALIBRATION, OutputOptions, SummaryFormatter};
use onrush_load::target::Target;

pub(super) use onrush_load::dialect::wrk::Tool;

use super::line::{Line, Printer, Run, is_https};
use super::option::Action::{Flag, Refused, Value};
use super::option::{Grammar, ParsedOptions, Row, Syntax, any, table};

const HELP_WRK: &str = "\
onrush load --as wrk [option]... URL

  -c, --connections COUNT  connections (10)
  -t, --threads COUNT      threads (2)
  -d, --duration TIME      duration of the run (10s)
  -H, --header 'N: VALUE'  header field to send; repeatable
  -L, --latency            print latency percentiles
  -T, --timeout TIME       also count slower responses as timeouts (2s)
  -v, --version            print the command line of onrush load to standard error

Counts may have a unit (1k, 1M, 1G), as may times (2s, 2m, 2h). Lua scripts (-s) are not supported.
";

const HELP_WRK2: &str = "\
onrush load --as wrk2 [option]... URL

  -R, --rate COUNT         total requests per second; required
  -c, --connections COUNT  connections (10)
  -t, --threads COUNT      threads (2)
  -d, --duration TIME      duration of the run (10s); the first 10 s of a longer run are not measured
  -H, --header 'N: VALUE'  header field to send; repeatable
  -L, --latency            print percentiles of the latency since the intended start
  -U, --u_latency          also print percentiles of the latency since sending
  -B, --batch_latency      has no effect without a script
  -T, --timeout TIME       also count slower responses as timeouts (2s)
  -v, --version            print the command line of onrush load to standard error

Counts may have a unit (1k, 1M, 1G), as may times (2s, 2m, 2h). Lua scripts (-s) are not supported.
";

/// Refusal of a script, with alternatives for what most scripts do.
const NO_SCRIPTS: &str = ": Lua scripts are not supported; onrush load has options for most of their uses: -X and --body for another method, --requests-file for many requests, --data for values from a file, --expect-status, -T for pauses, --pipeline";

const OPTIONS: &[Row] = table! {
    "-h|-?|--help -L|--latency -v|--version" => Flag(""),
    "-c|--connections -t|--threads" => Value(count),
    "-d|--duration -T|--timeout" => Value(time),
    "-H|--header" => Value(any),
    "-s|--script" => Refused(NO_SCRIPTS),
};

const WRK_OPTIONS: &[Row] = table! {
    "-R -U -B" => Refused(" is an option of wrk2: use --as wrk2"),
};

const WRK2_OPTIONS: &[Row] = table! {
    "-R|--rate" => Value(count),
    "-U|--u_latency -B|--batch_latency" => Flag(""),
};

/// Parses the command line.
pub(super) fn read(tool: Tool, words: &[String]) -> Result<Line, String> {
    let (name, help, options) = match tool {
        Tool::Wrk => ("wrk", HELP_WRK, WRK_OPTIONS),
        Tool::Wrk2 => ("wrk2", HELP_WRK2, WRK2_OPTIONS),
    };
    let syntax = Syntax {
        tool: name,
        grammar: Grammar::GetoptLong,
        help,
        tables: [OPTIONS, options],
    };
    syntax.line(words, |given| run(tool, given))
}

fn run(tool: Tool, given: ParsedOptions) -> Result<Run, String> {
    let url = given.only_argument(
        "URL",
        "further arguments are for scripts, which are not supported",
    )?;
    // wrk requires a scheme.
    Target::of_url(url)?;
    let shown = OutputOptions {
        tool,
        url: url.to_owned(),
        duration: Duration::from_secs(given.number("-d").unwrap_or(10)),
        threads: given.number("-t").unwrap_or(2),
        connections: given.number("-c").unwrap_or(10),
        latency: given.has("-L -U"),
        uncorrected: given.has("-U"),
        timeout: Duration::from_secs(given.number("-T").unwrap_or(2)),
    };
    let mut native = native(&shown, given.number("-R").unwrap_or(0))?;
    native.extend(given.all("-H").map(|header| format!("--header={header}")));
    native.push(shown.url.clone());
    Ok(given.run(native, Printer::Wrk(SummaryFormatter::new(shown))))
}

/// Native flags except headers.
fn native(shown: &OutputOptions, rate: u64) -> Result<Vec<String>, String> {
    let seconds = shown.duration.as_secs();
    let mut native = vec![
        "-c".to_owned(),
        shown.connections.to_string(),
        "-t".to_owned(),
        shown.threads.to_string(),
        "-d".to_owned(),
        format!("{seconds}s"),
        // Longer than the run: wrk counts slow responses as timeouts but still waits for them.
        format!("--timeout={}s", seconds.saturating_add(1)),
    ];
    if is_https(&shown.url) {
        native.push("--insecure".to_owned());
    }
    if shown.tool == Tool::Wrk2 {
        if rate == 0 {
            return Err(
                "wrk2 needs a rate: pass -R COUNT, such as -R 2000, or use --as wrk".to_owned(),
            );
        }
        native.extend(["-R".to_owned(), rate.to_string()]);
        if shown.duration > CALIBRATION {
            native.push(format!("--warm-up={}s", CALIBRATION.as_secs()));
        }
    }
    Ok(native)
}

fn count(name: &str, text: &str) -> Result<String, String> {
    let scales = [("kK", 1_000), ("mM", 1_000_000), ("gG", 1_000_000_000)];
    scaled(text, &scales)
        .ok_or_else(|| format!("{name} {text:?}: expected a number such as 100 or 10k"))
}

/// A time in seconds.
fn time(name: &str, text: &str) -> Result<String, String> {
    scaled(text, &[("sS", 1), ("mM", 60), ("hH", 3600)]).ok_or_else(|| {
        format!("{name} {text:?}: expected whole seconds, minutes or hours such as 30s or 2m")
    })
}

/// A whole number times the scale of the letter after it, if there is one.
fn scaled(text: &str, scales: &[(&str, u64)]) -> Option<String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, unit) = text.split_at(digits);
    let scale = match unit.len() {
        0 => 1,
        1 => scales.iter().find(|(letters, _)| letters.contains(unit))?.1,
        _ => return None,
    };
    let number: u64 = digits.parse().ok()?;
    Some(number.checked_mul(scale)?.to_string())
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
    fn wrk_line_is_translated() {
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
    fn long_wrk2_run_has_warm_up() {
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
    fn invalid_lines_are_refused_with_advice() {
        for (line, part) in [
            ("-d 1", "no URL given"),
            ("-s post.lua http://a/", "-X"),
            ("http://a/ -- 5", "arguments are for scripts"),
            ("-d 1.5s http://a/", "-d \"1.5s\": expected whole seconds"),
            (
                "-c 10x http://a/",
                "-c \"10x\": expected a number such as 100 or 10k",
            ),
            ("-c -5 http://a/", "-c \"-5\": expected a number"),
            ("-R 10 http://a/", "use --as wrk2"),
            ("--rate 10 http://a/", "--rate is not an option of wrk"),
            (
                "--t 10 http://a/",
                "--t is ambiguous: several options of wrk begin",
            ),
            ("-c 1 http://a/", "use -c 2 or more"),
            ("-d 0 http://a/", "must last more than 0 s"),
            ("-x http://a/", "-x is not an option of wrk"),
            ("a:80/", "does not begin with http://"),
        ] {
            let error = wrk(line).expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
        let error = wrk2("http://a/").expect_err("without a rate");
        assert!(error.contains("-R COUNT"), "{error}");
    }
}
