//! A search for the highest rate as one HTML page: the answer, latency by rate, every trial. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use onrush_chart::{
    Axis, Line, LineChart, Scale, Size, Stack, escape, figure, linear_ticks, plain_number,
};
use onrush_measure::compare::Rounds;
use onrush_measure::units;

use super::charts::{latency_axis, legend, line};
use super::time::time;
use crate::report::find_max::{SearchResult, Trial, TrialOutcome, sentence};

/// Returns the page of a search for the highest rate at which `condition` holds; without an answer it was stopped
/// early.
pub fn search_page(
    target: &str,
    condition: &str,
    answer: Option<&SearchResult>,
    trials: &[Trial],
) -> String {
    let (class, word) = match answer {
        Some(SearchResult::Found { .. }) => ("good", "found"),
        Some(SearchResult::Never { .. }) => ("bad", "none"),
        Some(SearchResult::Unsteady { .. } | SearchResult::TooShort { .. }) => {
            ("doubt", "not certain")
        }
        None => ("doubt", "ended early"),
    };
    let mut body = String::new();
    let _ = write!(
        body,
        "<header>\n<p class=\"eyebrow\">onrush load --find-max</p>\n<h1 class=\"url\">{}</h1>\n\
         <p class=\"facts\"><b class=\"chip {class}\">{word}</b><span>the highest rate at which <code>{}</code></span>\
         <span>{}</span></p>\n</header>\n",
        escape(target),
        escape(condition),
        units::plural(trials.len() as u64, "trial"),
    );
    let _ = writeln!(
        body,
        "<ul class=\"reasons\"><li>{}</li></ul>",
        escape(&sentence(answer, trials))
    );
    if let Some(chart) = chart(trials) {
        let bounded = bounded(trials);
        let _ = writeln!(
            body,
            "<section>\n<h2>Latency against rate</h2>\n<div class=\"alone\">{chart}</div>\n{bounded}</section>"
        );
    }
    table(&mut body, trials);
    onrush_chart::page(&format!("{target} · onrush load --find-max"), &body)
}

/// Median of each percentile over the trials of a rate.
fn chart(trials: &[Trial]) -> Option<String> {
    type Pick = fn(&Trial) -> Option<f64>;
    let picks: [(&str, &str, Pick); 3] = [
        ("p99.9", "t1", |trial| trial.p99_9_us),
        ("p99", "t2", |trial| trial.p99_us),
        ("p50", "o1", |trial| trial.p50_us),
    ];
    let lines: Vec<Line> = picks
        .into_iter()
        .map(|(name, class, pick)| line(name, class, false, medians(trials, pick)))
        .filter(|line| line.segments[0].len() > 1)
        .collect();
    let last = trials.iter().map(|trial| trial.rate).max()? as f64;
    let ticks = linear_ticks(last * 1.02, 5);
    let plot = LineChart {
        title: "Latency against rate".into(),
        description: format!("{} percentiles at up to {}", lines.len(), units::rate(last)),
        x: Axis {
            label: "requested rate per second".into(),
            scale: Scale::Linear(0.0, ticks.last().copied()?),
            ticks: ticks
                .into_iter()
                .map(|tick| (tick, plain_number(tick)))
                .collect(),
        },
        y: latency_axis(&lines)?,
        stack: Stack::default(),
        rules: Vec::new(),
        size: Size::Full,
        x_text: units::rate,
        y_text: time,
        lines,
    };
    let drawn = format!("{}{}", legend(&plot.lines), plot.svg());
    Some(figure(
        "Response times",
        "the median over the trials of each rate",
        &drawn,
    ))
}

/// Sentence naming the points of the chart that are lower bounds; empty if there are none.
fn bounded(trials: &[Trial]) -> String {
    let of_percentile = |name: &str| {
        let rates = trials.iter().filter(|trial| trial.is_at_least(name));
        let lowest = rates.map(|trial| trial.rate).min()?;
        Some(format!("p{name} from {} on", units::rate(lowest as f64)))
    };
    let names = ["50", "99", "99.9"];
    let all: Vec<String> = names.into_iter().filter_map(of_percentile).collect();
    match all.len() {
        0 => String::new(),
        _ => format!(
            "<p class=\"about\">Requests were left without a response, so these are lower bounds, with “≥” before \
             them in the table: {}.</p>\n",
            escape(&all.join(", "))
        ),
    }
}

fn medians(trials: &[Trial], pick: fn(&Trial) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut by_rate: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for trial in trials {
        let positive = pick(trial).filter(|us| *us > 0.0);
        by_rate.entry(trial.rate).or_default().extend(positive);
    }
    let median = |(rate, values): (u64, Vec<f64>)| Some((rate as f64, Rounds::of(&values)?.median));
    by_rate.into_iter().filter_map(median).collect()
}

fn table(body: &mut String, trials: &[Trial]) {
    let row = |(index, trial): (usize, &Trial)| {
        let [p50, p99, p99_9] = trial.times().map(|(name, us)| {
            let sign = if trial.is_at_least(name) { "≥ " } else { "" };
            us.map_or("–".to_owned(), |us| format!("{sign}{}", time(us)))
        });
        let (class, word) = match trial.held {
            TrialOutcome::Yes => ("good", "held"),
            TrialOutcome::No => ("bad", "the condition failed"),
            TrialOutcome::RateNotKept => ("bad", "the target did not keep up"),
            TrialOutcome::GeneratorLimit => ("doubt", "the generator was the limit"),
            TrialOutcome::Undecided => ("doubt", "undecided"),
            TrialOutcome::TooShort => ("doubt", "too few responses"),
        };
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{p50}</td><td>{p99}</td><td>{p99_9}</td><td>{}</td>\
             <td><b class=\"chip {class}\">{word}</b></td></tr>\n",
            index + 1,
            units::count(trial.rate),
            units::count(trial.rps.round() as u64),
            escape(&trial.measured).replace(" us", " µs"),
        )
    };
    let rows: String = trials.iter().enumerate().map(row).collect();
    let _ = write!(
        body,
        "<section>\n<h2>Trials</h2>\n<div class=\"scroll\" role=\"region\" aria-label=\"trials\" tabindex=\"0\"><table class=\"figures numbered\"><thead><tr><th scope=\"col\"></th>\
         <th scope=\"col\">requested /s</th><th scope=\"col\">responses /s</th><th scope=\"col\">p50</th><th scope=\"col\">p99</th>\
         <th scope=\"col\">p99.9</th><th scope=\"col\">condition</th><th scope=\"col\"></th></tr></thead><tbody>{rows}</tbody></table></div>\n</section>\n"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::find_max::SearchLimit;

    fn trial(rate: u64, p99_us: f64, held: TrialOutcome) -> Trial {
        Trial {
            rate,
            held,
            measured: format!("{p99_us} us"),
            rps: rate as f64,
            p50_us: Some(p99_us / 2.0),
            p99_us: Some(p99_us),
            p99_9_us: None,
            at_least: Vec::new(),
        }
    }

    #[test]
    fn search_page_has_result_curve_and_trials() {
        let trials = [
            trial(1000, 100.0, TrialOutcome::Yes),
            trial(2000, 300.0, TrialOutcome::No),
            trial(2000, 200.0, TrialOutcome::GeneratorLimit),
        ];
        let answer = SearchResult::Found {
            rate: 1000,
            held: 5,
            trials: 5,
            confidence: 0.96,
            ceiling: SearchLimit::Condition,
        };
        let page = search_page("http://<a>/", "p99 < 150us", Some(&answer), &trials);
        assert!(page.contains("http://&lt;a&gt;/") && page.contains("p99 &lt; 150us"));
        assert!(page.contains("held in 5 of 5 trials"));
        assert!(
            page.contains("p99</li>") && page.contains("p50</li>"),
            "a line for each percentile"
        );
        assert_eq!(page.matches("<th scope=\"row\">").count(), 3);
    }

    #[test]
    fn lower_bounds_of_trials_are_marked() {
        let mut trials = [
            trial(1000, 100.0, TrialOutcome::Yes),
            trial(2000, 9_000_000.0, TrialOutcome::No),
        ];
        let whole = search_page("http://a/", "p99 < 150us", None, &trials);
        assert!(!whole.contains("≥ ") && !whole.contains("at least"));
        trials[1].at_least = vec!["99".to_owned()];
        let page = search_page("http://a/", "p99 < 150us", None, &trials);
        assert!(page.contains("<td>4.50 s</td><td>≥ 9 s</td>"), "{page}");
        assert!(page.contains("p99 from 2 k/s on"), "{page}");
        let line = trials[1].to_string();
        assert!(
            line.contains("≥ 9 s") && !line.contains("≥ 4.50 s"),
            "{line}"
        );
    }

    #[test]
    fn search_without_trials_has_page() {
        let page = search_page("http://a/", "p99 < 1ms", None, &[]);
        assert!(page.contains("stopped before a rate was found"));
    }
}
