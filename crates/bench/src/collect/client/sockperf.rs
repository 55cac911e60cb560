//! Output of sockperf: `ping-pong` and `under-load` with replies, and `throughput` without.

use super::parsing::{after_prefix, amount, count, find, not_a_number, strip_ansi};
use super::report::{ClientReport, latency};
use crate::scenario::CountedUnit;

const NAME: &str = "sockperf: ";
const MEGABYTE: f64 = 1_048_576.0;

pub(super) fn read(text: &str) -> Result<ClientReport, String> {
    let text = strip_ansi(text).replace(NAME, "");
    match find(&text, "Summary: Message Rate is") {
        Some(rate) => one_way(&text, rate),
        None => round_trip(&text),
    }
}

fn round_trip(text: &str) -> Result<ClientReport, String> {
    // Latencies come from the "valid" part, which excludes the warm-up and the last 50 ms.
    let run = after_prefix(text, "[Total Run]")?;
    let seconds = field(run, "RunTime=")?;
    let received = whole(run, "ReceivedMessages=")?;
    let lost = after_prefix(text, "# dropped messages =")?;
    let kinds = format!("# dropped messages = {lost}");
    let dropped = whole(&kinds, "# dropped messages = ")?;
    let disorder = ["# duplicated messages = ", "# out-of-order messages = "];
    let disorder = disorder.map(|name| whole(&kinds, name));
    let [duplicated, out_of_order] = disorder;
    let is_whole_round_trip = find(text, "Summary: Round trip is").is_some();
    if !is_whole_round_trip {
        after_prefix(text, "Summary: Latency is")?;
    }
    let latency_words = match is_whole_round_trip {
        true => "latencies of sockperf are round trips here (--full-rtt)",
        false => "latencies of sockperf are half round trips",
    };
    let (mean, max, percentiles) = distribution(text)?;
    let trouble = dropped > 0 || duplicated? > 0 || out_of_order? > 0;
    Ok(ClientReport {
        counted: CountedUnit::Messages,
        requests: received,
        errors: dropped,
        duration_s: seconds,
        rps: received as f64 / seconds.max(1e-9),
        latency: latency(Some(mean), Some(max), percentiles),
        warnings: trouble.then_some(kinds).into_iter().collect(),
        notes: vec![
            "sockperf counts messages: `requests` are the returned messages".to_owned(),
            latency_words.to_owned(),
        ],
        ..ClientReport::default()
    })
}

fn one_way(text: &str, rate: &str) -> Result<ClientReport, String> {
    let words: Vec<&str> = after_prefix(text, "Total of ")?
        .split_whitespace()
        .collect();
    let [sent, "messages", "sent", "in", seconds, "sec"] = words[..] else {
        return Err(not_a_number("Total of", &words.join(" ")));
    };
    let first = |words: &str| words.split_whitespace().next().and_then(amount);
    let rate = first(rate).ok_or_else(|| not_a_number("Message Rate", rate))?;
    let bandwidth = after_prefix(text, "Summary: BandWidth is")?;
    let bandwidth = first(bandwidth).ok_or_else(|| not_a_number("BandWidth", bandwidth))?;
    Ok(ClientReport {
        counted: CountedUnit::Messages,
        requests: count(sent).ok_or_else(|| not_a_number("Total of", sent))?,
        duration_s: amount(seconds).ok_or_else(|| not_a_number("Total of", seconds))?,
        rps: rate,
        bytes_per_s: Some(bandwidth * MEGABYTE),
        notes: vec![
            "sockperf counts messages sent; whether they were received is not known".to_owned(),
        ],
        ..ClientReport::default()
    })
}

/// `RunTime=0.550 sec; SentMessages=53; …`.
fn field(line: &str, name: &str) -> Result<f64, String> {
    let (_, rest) = line
        .split_once(name)
        .ok_or_else(|| format!("`{line}` has no `{name}`"))?;
    let word = rest.split([' ', ';']).next().unwrap_or_default();
    amount(word).ok_or_else(|| not_a_number(name, word))
}

fn whole(line: &str, name: &str) -> Result<u64, String> {
    Ok(field(line, name)? as u64)
}

type Distribution = (f64, f64, Vec<(String, f64)>);

/// `---> percentile 99.900 =   14.911`, in µs.
fn distribution(text: &str) -> Result<Distribution, String> {
    let average = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("====> avg-"));
    let average = average.ok_or("no line begins with `====> avg-`")?;
    let mean = field(average, "=")?;
    let (mut max, mut percentiles, mut has_end) = (None, Vec::new(), false);
    let rows = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("---> "));
    for row in rows {
        let (name, value) = row
            .split_once('=')
            .ok_or_else(|| format!("`{row}` has no `=`"))?;
        let us = amount(value.trim()).ok_or_else(|| not_a_number(name, value))?;
        match name.split_whitespace().collect::<Vec<_>>()[..] {
            ["<MAX>", _] if max.is_some() => {
                return Err(
                    "it has statistics of more than one server, which cannot be separated"
                        .to_owned(),
                );
            }
            ["<MAX>", _] => max = Some(us),
            ["<MIN>", _] => has_end = true,
            ["percentile", number] => percentiles.push((number.to_owned(), us)),
            _ => {}
        }
    }
    let max = max.ok_or("it has no `---> <MAX> observation`")?;
    if !has_end {
        return Err("its percentiles end before `---> <MIN> observation`".to_owned());
    }
    Ok((mean, max, percentiles))
}
