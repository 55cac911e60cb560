//! `onrush load --as TOOL`: accepts the command lines of other tools and prints output in their format; its counts
//! equal the server's.

use crate::peer::peer;
use crate::program::{Finished, Program, Serve, run_onrush};

const CONNECTIONS: u64 = 10;

fn load_as(tool: &str, line: &[&str]) -> Finished {
    run_onrush(&[&["load", "--as", tool], line].concat())
}

fn load_as_wrk(line: &[&str]) -> Finished {
    load_as("wrk", line)
}

fn wrk(line: &[&str]) -> Finished {
    Program::start(&mut peer("wrk", line)).finish()
}

/// Replaces each number and its unit by a mark. In tables, numbers are in cells of a fixed width.
fn shape(text: &str) -> Vec<String> {
    let word = |word: &str| match word.starts_with(|letter: char| letter.is_ascii_digit()) {
        true => "#".to_owned(),
        false => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    // The number of blanks before a number depends on its width.
    let without_runs = |line: String| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(line).map(without_runs).collect()
}

fn number_before(text: &str, words: &str) -> u64 {
    let before = text.split(words).next().unwrap_or_default();
    let number = before.split_whitespace().next_back();
    let number = number.and_then(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no number before {words:?} in {text}"))
}

/// The number after `words`; 0 when they do not occur.
fn number_behind(text: &str, words: &str) -> u64 {
    let Some((_, behind)) = text.split_once(words) else {
        return 0;
    };
    let word = behind.split([' ', ',', '\n']).find(|word| !word.is_empty());
    let number = word.and_then(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no number behind {words:?} in {text}"))
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn wrk_output_matches_original() {
    for (respond, arguments) in [
        ("200:hello", &["-t2", "-c", "10", "-d1s", "--latency"][..]),
        ("503:no", &["-c10", "--threads=1", "--duration", "1"]),
        (
            "404:no",
            &["-H", "A: b", "-d", "1s", "-t2", "--timeout", "5s", "-L"],
        ),
    ] {
        let mut texts = Vec::new();
        // wrk makes an additional connection to check that the server is there.
        for (run, probes) in [(wrk as fn(&[&str]) -> Finished, 1), (load_as_wrk, 0)] {
            let serve = Serve::start(&["--respond", respond]);
            let url = serve.url("/a?b=c");
            let finished = run(&[arguments, &[url.as_str()]].concat());
            assert_eq!(finished.code, Some(0), "{arguments:?}: {finished:?}");
            let text = finished.out;
            let responses = number_before(&text, " requests in ");
            let totals = serve.stop();
            let served = totals.requests();
            assert!(
                responses > 0 && (responses..=responses + CONNECTIONS).contains(&served),
                "{responses} and {served} of {arguments:?}: {text}"
            );
            let refusals = if respond.starts_with('2') {
                0
            } else {
                responses
            };
            assert_eq!(number_behind(&text, "3xx responses: "), refusals, "{text}");
            assert_eq!(totals.connections(), CONNECTIONS + probes, "{text}");
            texts.push(text.replace(&url, "URL"));
        }
        let [theirs, ours] = &texts[..] else {
            unreachable!("two ran");
        };
        assert_eq!(shape(theirs), shape(ours), "{theirs}{ours}");
        let tables = |text: &str| -> Vec<usize> {
            let lines = text
                .lines()
                .take_while(|line| !line.contains(" requests in "));
            lines.map(str::len).collect()
        };
        assert_eq!(tables(theirs), tables(ours), "{theirs}{ours}");
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn wrk_accepts_any_certificate() {
    let serve = Serve::start(&["--respond", "200:hello", "--tls", "self-signed"]);
    let url = serve.tls_url("/");
    let arguments = ["-t1", "-c2", "-d1s", url.as_str()];
    let (theirs, ours) = (wrk(&arguments), load_as_wrk(&arguments));
    for finished in [&theirs, &ours] {
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(number_before(&finished.out, " requests in ") > 0);
    }
    assert_eq!(shape(&theirs.out), shape(&ours.out));
}

#[test]
fn wrk2_prints_both_latency_distributions() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let url = serve.url("/");
    let finished = load_as("wrk2", &["-R500", "-t2", "-c10", "-d1s", "-U", &url]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let text = finished.out;
    let responses = number_before(&text, " requests in ");
    let served = serve.stop().requests();
    assert!(
        (responses..=responses + CONNECTIONS).contains(&served),
        "{text}"
    );
    assert!(responses <= 500, "{text}");
    let parts: Vec<&str> = text.split("  Detailed Percentile spectrum:\n").collect();
    assert_eq!(parts.len(), 3, "{text}");
    // A response after the end does not count as a response of the run; its latency is known and counts in both.
    for part in &parts[1..] {
        let heading = "       Value   Percentile   TotalCount 1/(1-Percentile)\n\n";
        assert!(part.starts_with(heading), "{part}");
        let rows: Vec<Vec<&str>> = part[heading.len()..]
            .lines()
            .take_while(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert!(rows.iter().all(|row| row.len() == 4), "{part}");
        let last = rows.last().expect("there were responses");
        let count: u64 = last[2].parse().expect("a number");
        assert!((responses..=500).contains(&count), "{responses}: {part}");
        assert_eq!((last[1], last[3]), ("1.000000", "inf"), "{part}");
        assert!(
            part.contains(&format!("Total count    = {count:>12}]\n")),
            "{part}"
        );
    }
}

#[test]
fn h1load_columns_and_counts_match_original() {
    const COUNTERS: &str = "conns tot_conn  tot_req      tot_bytes    err ";
    for (form, time, rates) in [
        (&[][..], "#     time ", " cps  rps  bps   ttfb"),
        (&["-l"], "#     time ", " cps  rps  Bps  bps   ttfb   ttlb"),
        (
            &["-ll"],
            "#_____time ",
            "thr cps rps Bps bps ttfb(us) ttlb(us)",
        ),
    ] {
        for arguments in [
            &["-n", "1000", "-c", "4", "-t", "2"][..],
            &["-n", "100", "-c", "5", "-r", "3"],
            &["-n", "100", "-c", "2", "-R", "2000", "-I"],
        ] {
            let serve = Serve::start(&["--respond", "200:hello"]);
            // h1load accepts URLs without a scheme.
            let address = serve.address.clone();
            let line = [form, arguments, &["-S", "-P", &address]].concat();
            let finished = load_as("h1load", &line);
            assert_eq!(finished.code, Some(0), "{line:?}: {finished:?}");
            let (lines, table) = finished.out.split_once("#======= ").expect("with -P");
            let mut lines = lines.lines();
            let statuses = " 1xx 2xx 3xx 4xx 5xx";
            let header = lines.next().expect("a header");
            assert_eq!(header, format!("{time}{COUNTERS}{rates}{statuses}"));
            // The mark of the first column is a separate word, except with -ll.
            let columns = header.replace("# ", "  ").split_whitespace().count();
            let rows: Vec<Vec<u64>> = lines
                .map(|line| {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    assert_eq!(words.len(), columns, "{line}");
                    // Rates in the short formats are not plain numbers.
                    words.iter().map(|word| word.parse().unwrap_or(0)).collect()
                })
                .collect();
            let totals = serve.stop();
            let last = rows.last().expect("a row");
            let requests: u64 = arguments[1].parse().expect("a number");
            assert_eq!((last[3], last[5]), (requests, 0), "{line:?}: {finished:?}");
            let successes: u64 = rows.iter().map(|row| row[columns - 4]).sum();
            assert_eq!(successes, requests, "{line:?}: {finished:?}");
            assert_eq!(totals.requests(), requests, "{line:?}: {totals:?}");
            assert_eq!(totals.connections(), last[2], "{line:?}: {totals:?}");
            let rows: Vec<&str> = table.lines().filter(|row| !row.contains('=')).collect();
            let heads = "#pctl   tail   invtail   ttfbcnt ttfb(ms)   ttlbcnt ttlb(ms)";
            assert_eq!(rows[2], heads, "{table}");
            assert_eq!(rows.len(), 3 + 64, "{table}");
            let is_row = |row: &&str| row.split_whitespace().count() == 7;
            assert!(rows[3..].iter().all(is_row), "{table}");
        }
    }
}

#[test]
fn h1load_runs_until_ctrl_c() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let url = serve.url("/");
    let program = Program::start(&mut crate::program::onrush(&[
        "load", "--as", "h1load", &url,
    ]));
    program.out.wait_for("\n         1 ");
    program.signal(rustix::process::Signal::INT);
    let finished = program.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.err, "");
}

#[test]
fn translated_command_line_is_printed() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let url = serve.url("/");
    let finished = load_as("h1load", &["-v", "-F", "-c", "2", "-n", "10", &url]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let lines: Vec<&str> = finished.err.lines().collect();
    assert!(lines[0].contains("-F has no effect"), "{finished:?}");
    assert_eq!(lines[1], format!("onrush load -c 2 -t 1 -n 10 {url}"));
    let words: Vec<&str> = lines[1].split(' ').skip(1).collect();
    assert_eq!(run_onrush(&words).code, Some(0), "{lines:?}");
}

#[test]
fn untranslatable_flags_are_refused() {
    let url = "http://127.0.0.1:9/";
    for (words, part) in [
        (&["wrk", "-s", "post.lua", url][..], "-X"),
        (&["wrk", "-c", "1", url], "use -c 2 or more"),
        (&["wrk2", "-d", "1s", url], "-R COUNT"),
        (&["h1load", "--tls-ver", "TLS1.1", url], "--tls-ver"),
        (&["h1load"], "no URL"),
        (
            &["ab", "-n", "5", url],
            "expected h1load, h2load, wrk, wrk2, oha, hey or mcblaster",
        ),
    ] {
        let finished = load_as(words[0], &words[1..]);
        assert_eq!(finished.code, Some(1), "{words:?}: {finished:?}");
        assert!(finished.err.contains(part), "{words:?}: {finished:?}");
        assert_eq!(finished.err.lines().count(), 1, "{words:?}: {finished:?}");
        assert_eq!(finished.out, "", "{words:?}");
    }
    let mixed = run_onrush(&["load", "-c", "5", "--as", "wrk", url]);
    assert_eq!(mixed.code, Some(1), "{mixed:?}");
    assert!(mixed.err.contains("cannot be used with"), "{mixed:?}");
}

#[test]
fn unreachable_target_exits_2_for_each_tool() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", nobody.local_addr().expect("bound"));
    drop(nobody);
    for words in [
        &["wrk", "-d5s", &url][..],
        &["wrk2", "-R10", &url],
        &["h1load", "-e", "-d", "5", &url],
    ] {
        let finished = load_as(words[0], &words[1..]);
        assert_eq!(finished.code, Some(2), "{words:?}: {finished:?}");
        assert!(finished.err.contains("refused"), "{words:?}: {finished:?}");
    }
}

#[test]
fn help_lists_supported_flags_of_each_tool() {
    for tool in ["h1load", "wrk", "wrk2"] {
        let finished = load_as(tool, &["-h"]);
        assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""));
        let usage = format!("onrush load --as {tool} ");
        assert!(finished.out.starts_with(&usage), "{finished:?}");
    }
}
