//! A result as one self-contained HTML page: figures, verdict, charts. Pure.

mod charts;
mod journeys;
mod search;
mod time;

pub use search::search_page;

use std::fmt::Write;

use onrush_chart::escape;
use onrush_measure::units;

use crate::pace::wall_clock::WallTime;
use crate::record::figures::Kind;
use crate::record::incomplete_waits::{Censored, IncompleteWaits};
use crate::record::times::Times;
use crate::report::Report;
use crate::report::exact_times::times_of;
use crate::report::latency::Latency;
use crate::report::rows::RequestRow;
use crate::verdict::reason::State;
use crate::verdict::threshold::ThresholdOutcome;
use time::time;

/// Returns the page of a result.
pub fn page(report: &Report) -> String {
    // A result without histograms has no curves, but all figures.
    let times = times_of(report).ok();
    let waits = report.histograms.as_ref();
    let waits = waits.and_then(|histograms| histograms.unanswered().ok());
    let waits = waits.unwrap_or_default();
    let mut body = String::new();
    header(&mut body, report);
    tiles(&mut body, report);
    verdict(&mut body, report);
    thresholds(&mut body, report);
    body.push_str("<section>\n<h2>The run</h2>\n<div class=\"grid3\">\n");
    for figure in charts::of(report, times.as_ref(), &waits) {
        body.push_str(&figure);
    }
    body.push_str("</div>\n");
    if report.requests == 0 {
        body.push_str(
            "<p class=\"about\">No responses were received, so this report has no charts of response times.</p>\n",
        );
    }
    without_response(&mut body, report, times.as_ref(), &waits);
    body.push_str("</section>\n");
    percentiles(&mut body, report);
    kinds(&mut body, report);
    journeys::journeys(&mut body, report);
    counts(&mut body, report);
    asked(&mut body, report);
    onrush_chart::page(&format!("{} · onrush load", report.target), &body)
}

fn header(body: &mut String, report: &Report) {
    let options = &report.options;
    let class = match report.verdict.state {
        State::Valid => "good",
        State::Suspect => "doubt",
        State::Invalid => "bad",
    };
    let pace = match options.rate {
        Some(rate) => format!("{} per second requested", units::plural(rate, "request")),
        None => "closed loop".to_owned(),
    };
    let began = report.began_unix_s.map_or(String::new(), |began| {
        let began = WallTime::of_seconds(began).date_and_time();
        format!("<span>{began} UTC</span>")
    });
    let _ = write!(
        body,
        "<header>\n<p class=\"eyebrow\">onrush load</p>\n<h1 class=\"url\">{}</h1>\n\
         <p class=\"facts\"><b class=\"chip {class}\">{}</b>{began}<span>{:.1} s</span><span>{} over {}</span>\
         <span>{pace}</span></p>\n</header>\n",
        escape(&report.target),
        report.verdict.state.to_string().to_lowercase(),
        report.duration_s,
        units::plural(options.connections as u64, "connection"),
        units::plural(options.threads as u64, "thread"),
    );
}

fn tiles(body: &mut String, report: &Report) {
    let latency = &report.latency_us;
    let mut all = vec![(
        units::rate(report.rps),
        "responses",
        match report.requests {
            0 => "no responses".to_owned(),
            requests => format!("{} in total", units::count(requests)),
        },
    )];
    for (percentile, what) in [("50", "median response"), ("99", "p99"), ("99.9", "p99.9")] {
        if latency.percentile(percentile).is_some() {
            let interval = latency.interval(percentile);
            let beside = interval.map_or(String::new(), |interval| interval.text(time));
            all.push((latency.text(percentile, "–", time), what, beside));
        }
    }
    let tried = report.attempts().max(1);
    all.push((
        units::count(report.errors),
        "errors",
        format!("{:.3} %", report.errors as f64 * 100.0 / tried as f64),
    ));
    if report.unfinished > 0 {
        all.push((
            units::count(report.unfinished),
            "unfinished",
            format!("{} after it", units::plural(report.late, "response")),
        ));
    }
    let tile = |(value, what, beside): &(String, &str, String)| {
        format!(
            "<div class=\"tile\"><b>{}</b><span>{what}</span><small>{}</small></div>",
            escape(value),
            escape(beside)
        )
    };
    let tiles: String = all.iter().map(tile).collect();
    let _ = writeln!(body, "<div class=\"tiles\">{tiles}</div>");
}

fn verdict(body: &mut String, report: &Report) {
    let verdict = &report.verdict;
    if verdict.reasons.is_empty() && report.warnings.is_empty() {
        return;
    }
    body.push_str("<ul class=\"reasons\">\n");
    for reason in &verdict.reasons {
        let class = match reason.state {
            State::Valid => "good",
            State::Suspect => "doubt",
            State::Invalid => "bad",
        };
        let _ = writeln!(
            body,
            "<li><b class=\"chip {class}\">{}</b> <b>{}: {}</b> ({})<small>{}</small></li>",
            reason.state.to_string().to_lowercase(),
            escape(&reason.what),
            escape(&reason.measured),
            escape(&reason.bound),
            escape(&reason.remedy)
        );
    }
    for warning in report.other_warnings() {
        let _ = writeln!(body, "<li>{}</li>", escape(warning));
    }
    body.push_str("</ul>\n");
}

fn thresholds(body: &mut String, report: &Report) {
    if report.thresholds.is_empty() {
        return;
    }
    body.push_str("<ul class=\"reasons\">\n");
    for outcome in &report.thresholds {
        let (class, word) = match outcome.fate {
            ThresholdOutcome::Passed => ("good", "passed"),
            ThresholdOutcome::Failed => ("bad", "failed"),
            ThresholdOutcome::Undecided => ("bad", "undecided"),
        };
        let _ = writeln!(
            body,
            "<li><b class=\"chip {class}\">{word}</b> fail if <code>{}</code>: {}</li>",
            escape(&outcome.condition),
            escape(&outcome.measured)
        );
    }
    body.push_str("</ul>\n");
}

/// Describes requests without a response, which the charts of responses cannot show.
fn without_response(
    body: &mut String,
    report: &Report,
    times: Option<&Times>,
    waits: &IncompleteWaits,
) {
    let count = waits.response.count();
    if count == 0 {
        return;
    }
    let first = times.and_then(|times| {
        let curve = Censored::new(&times.response, &waits.response).curve();
        let mut bounded = curve.into_iter().filter(|(_, bounds)| !bounds.is_known());
        bounded.next()
    });
    let from = match first {
        Some((percentile, _)) => format!(
            "From {} on, response times are lower bounds: “≥” before figures, dashed in the chart by percentile.",
            charts::percentile_text(onrush_chart::tail(percentile))
        ),
        None if report.latency_us.is_at_least("max") => {
            "Counting them changes no percentile shown here; the maximum is a lower bound."
                .to_owned()
        }
        None => "They change no figure shown here.".to_owned(),
    };
    let _ = writeln!(
        body,
        "<p class=\"about\">{} had no response: failed, unfinished at the end, timed out, or due and never sent. Their \
            times are in no second and not in the distribution, but their waiting times are known. {from}</p>",
        units::plural(count, "request")
    );
}

/// Table of percentiles, with a column for each kind of time measured.
fn percentiles(body: &mut String, report: &Report) {
    let kinds: Vec<(Kind, &Latency)> = Kind::ALL
        .into_iter()
        .map(|kind| (kind, report.latency_of(kind)))
        .filter(|(_, latency)| latency.mean.is_some())
        .collect();
    let longest = kinds
        .iter()
        .map(|(_, latency)| &latency.percentiles)
        .max_by_key(|list| list.len());
    let Some(longest) = longest else {
        return;
    };
    let head: String = kinds
        .iter()
        .map(|(kind, _)| format!("<th scope=\"col\">{}</th>", kind.title()))
        .collect();
    // `name` is the figure's key in the result, `title` the text shown.
    let row = |name: &str, title: &str| {
        let cell = |latency: &Latency| {
            let is_there = matches!(name, "mean" | "max") || latency.percentile(name).is_some();
            if !is_there {
                return "<td class=\"none\">–</td>".to_owned();
            }
            let interval = latency.interval(name).map_or(String::new(), |interval| {
                format!("<small>{}</small>", escape(&interval.text(time)))
            });
            let figure = latency.text(name, "–", time);
            format!("<td>{}{interval}</td>", escape(&figure))
        };
        let cells: String = kinds.iter().map(|(_, latency)| cell(latency)).collect();
        format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(title))
    };
    let mut rows = row("mean", "mean");
    for (percentile, _) in longest {
        rows.push_str(&row(percentile, &format!("{percentile} %")));
    }
    rows.push_str(&row("max", "largest"));
    let is_bounded = kinds
        .iter()
        .any(|(_, latency)| !latency.at_least.is_empty());
    let bounded = match is_bounded {
        true => {
            "A figure with “≥” is a lower bound: requests without a response may have made it larger. The mean is of \
             responses only."
        }
        false => "",
    };
    let _ = write!(
        body,
        "<section>\n<h2>Percentiles</h2>\n<p class=\"about\">As far as at least ten values lie above them; below each, \
         between which times the true one lies with 95 %.{bounded}</p>\n\
         <div class=\"scroll\" role=\"region\" aria-label=\"times\" tabindex=\"0\"><table class=\"roles times\"><thead><tr><th scope=\"col\"></th>{head}</tr></thead><tbody>{rows}</tbody></table></div>\n</section>\n"
    );
}

fn kinds(body: &mut String, report: &Report) {
    if report.by_request.is_empty() {
        return;
    }
    let row = |row: &RequestRow| {
        let cell = |name: &str| escape(&row.latency_us.text(name, "–", time)).to_string();
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            escape(&row.name),
            units::count(row.requests),
            units::count(row.unexpected),
            cell("mean"),
            cell("50"),
            cell("99"),
            cell("max"),
        )
    };
    let rows: String = report.by_request.iter().map(row).collect();
    let _ = write!(
        body,
        "<section>\n<h2>Requests</h2>\n<p class=\"about\">Times are of responses alone.</p>\n<div class=\"scroll\" role=\"region\" aria-label=\"requests\" tabindex=\"0\"><table class=\"figures\"><thead><tr><th scope=\"col\" class=\"text\">request</th>\
         <th scope=\"col\">responses</th><th scope=\"col\">unexpected</th><th scope=\"col\">mean</th><th scope=\"col\">p50</th>\
         <th scope=\"col\">p99</th><th scope=\"col\">largest</th></tr></thead><tbody>{rows}</tbody></table></div>\n</section>\n"
    );
}

fn counts(body: &mut String, report: &Report) {
    let statuses = report
        .statuses
        .iter()
        .map(|(status, count)| (status.clone(), *count));
    let errors = report
        .errors_by_kind
        .iter()
        .filter(|(_, count)| **count > 0);
    let errors = errors.map(|(kind, count)| (kind.replace('_', " "), *count));
    let total = report.attempts().max(1) as f64;
    let rows: String = statuses
        .chain(errors)
        .map(|(what, count)| {
            format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{:.3} %</td></tr>\n",
                escape(&what),
                units::count(count),
                count as f64 * 100.0 / total
            )
        })
        .collect();
    let _ = write!(
        body,
        "<section>\n<h2>Responses and errors</h2>\n<table class=\"figures\"><thead><tr><th scope=\"col\" class=\"text\">status or kind</th>\
         <th scope=\"col\">count</th><th scope=\"col\">share</th></tr></thead><tbody>{rows}</tbody></table>\n</section>\n"
    );
}

fn asked(body: &mut String, report: &Report) {
    let options = &report.options;
    let mut facts: Vec<(&str, String)> = vec![
        ("method", options.method.clone()),
        ("connections opened", units::count(report.connections)),
        (
            "sent again after the server had closed",
            units::count(report.resent_after_close()),
        ),
        ("driver", options.io.clone()),
        ("pipeline", options.pipeline.to_string()),
        ("timeout", format!("{} s", options.timeout_s)),
        ("received", units::bytes(report.bytes as f64)),
    ];
    if options.streams.is_some() {
        facts.push((
            "sent again after the server had refused a stream",
            units::count(report.refused),
        ));
        facts.push(("streams of each connection", options.streams_text()));
    }
    if !options.headers.is_empty() {
        facts.push(("fields", options.headers.join(", ")));
    }
    if let Some(us) = report.cpu_us_per_request {
        facts.push(("generator's own CPU", format!("{us:.2} µs per request")));
    }
    let busy: Vec<String> = report
        .cores
        .iter()
        .map(|core| format!("{:.0} %", core.share * 100.0))
        .collect();
    facts.push(("its threads busy", busy.join(", ")));
    if let Some(tls) = &report.tls {
        facts.push(("TLS", format!("{} {}", tls.version, tls.cipher)));
        facts.push((
            "handshakes",
            format!(
                "{}, {} resumed, mean {}",
                units::count(tls.handshakes),
                units::count(tls.resumed),
                time(tls.mean_us)
            ),
        ));
    }
    let list: String = facts
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value)))
        .collect();
    let _ = write!(
        body,
        "<section class=\"how\">\n<h2>How it was measured</h2>\n<p>Response times count from the moment a request should have started, \
         service times from its being written; the difference is how long it had to wait to leave. Mean and maximum of response times are exact, \
         everything else is within 0.1 %.</p>\n<dl>{list}</dl>\n</section>\n"
    );
}

#[cfg(test)]
mod tests;
