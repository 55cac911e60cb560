//! `report.html`: a single file with everything inline, which works offline.

mod cores;
mod curves;
mod interfaces;
mod latency_by_rate;
mod method;
mod predicted;
mod results;
mod seconds;
mod sweep;
mod sweep_axis;
mod window;

mod palette;

use std::fmt::Write;

use onrush_chart::escape;

use self::palette::Palette;
use self::results::{key_figures, results_table};
use self::seconds::TrialBudget;
use super::cumulative::cumulative_steps;
use super::notes::notes;
use super::number::number;
use super::summary::machine;
use super::table::{cost_parts, headline};
use crate::environment::{Environment, cpu_list};
use crate::outcome::{Outcome, Trial, VariantOutcome, WorkOutcome};
use crate::scenario::Role;
use crate::verdict::Verdict;

pub(super) fn html(outcome: &Outcome, environment: &Environment) -> String {
    let palette = Palette::of(outcome);
    let mut body = String::new();
    header(&mut body, outcome, environment, &palette);
    let _ = write!(body, "{}", results_table(outcome, &palette));
    let mut room = TrialBudget::of_page();
    let is_same = |a: &WorkOutcome, b: &WorkOutcome| a.name == b.name;
    for points in outcome.works.chunk_by(is_same) {
        section(&mut body, points, &palette, &mut room);
    }
    body.push_str(&predicted::section(outcome, environment, &palette));
    method::section(&mut body, outcome, environment);
    onrush_chart::page(&format!("{} · onrush bench", outcome.experiment), &body)
}

/// Escapes text and renders backticks as `<code>`.
fn prose(text: &str) -> String {
    let mut html = String::new();
    for (index, part) in text.trim().split('`').enumerate() {
        if index % 2 == 1 {
            let _ = write!(html, "<code>{}</code>", escape(part));
        } else {
            html.push_str(&escape(part));
        }
    }
    html
}

fn header(page: &mut String, outcome: &Outcome, environment: &Environment, palette: &Palette) {
    let _ = write!(
        page,
        "<header>\n<p class=\"eyebrow\">onrush bench</p>\n<h1>{}</h1>\n",
        escape(&outcome.experiment)
    );
    if !outcome.about.is_empty() {
        let _ = writeln!(page, "<p class=\"lead\">{}</p>", prose(&outcome.about));
    }
    let state = match (outcome.complete, outcome.quick) {
        (false, _) => "<b class=\"chip bad\">incomplete</b>",
        (true, _) if !outcome.has_conclusive_figure() => {
            "<b class=\"chip bad\">complete, no valid figure</b>"
        }
        (true, true) => "<b class=\"chip\">quick run</b>",
        (true, false) => "<b class=\"chip good\">complete</b>",
    };
    let rounds = if outcome.rounds == 1 {
        format!("one round of {} s", outcome.measure_s)
    } else {
        format!(
            "{} rounds of {} s, interleaved",
            outcome.rounds, outcome.measure_s
        )
    };
    let _ = writeln!(
        page,
        "<p class=\"facts\">{state}<span>{}</span><span>{rounds}</span><span>{}</span></p>",
        escape(&outcome.started.replace('T', " ").replace('Z', " UTC")),
        escape(&machine(environment)),
    );
    for note in &outcome.notes {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", escape(note));
    }
    let headline = headline(outcome);
    if headline.is_empty() {
        page.push_str(&key_figures(outcome, palette));
    } else {
        let dots: String = outcome
            .lines()
            .filter(|(_, line)| line.target.is_some())
            .map(|(_, line)| match line.verdict {
                Verdict::Reached => "<i class=\"good\"></i>",
                Verdict::Missed => "<i class=\"bad\"></i>",
                Verdict::Measured | Verdict::NotMeasured | Verdict::Invalid => "<i></i>",
            })
            .collect();
        let _ = writeln!(
            page,
            "<p class=\"headline\"><strong>{}</strong><span class=\"dots\" aria-hidden=\"true\">{dots}</span></p>",
            escape(&headline)
        );
    }
    page.push_str("</header>\n");
}

fn section(page: &mut String, points: &[WorkOutcome], palette: &Palette, room: &mut TrialBudget) {
    let first = &points[0];
    let count = |number: usize| onrush_measure::units::count(number as u64);
    let size = match points {
        [only] => format!("{} connections", count(only.connections as usize)),
        _ => format!("{} points", count(points.len())),
    };
    let _ = write!(
        page,
        "<section>\n<h2>{} <small>{size}</small></h2>\n",
        escape(&first.name)
    );
    if !first.about.is_empty() {
        let _ = writeln!(page, "<p class=\"about\">{}</p>", prose(&first.about));
    }
    page.push_str(&sweep::section(points, palette));
    page.push_str(&cumulative_tables(points, palette));
    if let [only] = points {
        details_of(page, only, palette, room);
    } else {
        for work in points {
            let point = escape(&work.point.to_string());
            let _ = writeln!(page, "<details><summary>{point}</summary>");
            details_of(page, work, palette, room);
            page.push_str("</details>\n");
        }
    }
    page.push_str("</section>\n");
}

/// A table for each variant of a work with cumulative changes.
fn cumulative_tables(points: &[WorkOutcome], palette: &Palette) -> String {
    let Some((title, roads)) = cumulative_steps(points) else {
        return String::new();
    };
    let mut text = String::new();
    for road in roads {
        let _ = write!(
            text,
            "<h3><i class=\"{}\"></i>Steps: {}</h3>\n<div class=\"scroll\" role=\"region\" aria-label=\"steps of {}, {}\" tabindex=\"0\"><table class=\"road\"><thead><tr>\
             <th scope=\"col\" class=\"text\">change</th><th scope=\"col\">{}</th><th scope=\"col\">relative to the previous step</th>\
             <th scope=\"col\" class=\"text\">limit</th></tr></thead><tbody>",
            palette.class(&road.variant),
            escape(&road.variant),
            escape(&points[0].name),
            escape(&road.variant),
            escape(&title)
        );
        for step in road.steps {
            let _ = write!(
                text,
                "<tr><th scope=\"row\" class=\"text\">{}</th><td>{}</td><td>{}</td><td class=\"text\">{}</td></tr>",
                escape(&step.change),
                escape(&step.value),
                escape(&step.ratio),
                escape(&step.limit)
            );
        }
        text.push_str("</tbody></table></div>\n");
    }
    text
}

fn details_of(page: &mut String, work: &WorkOutcome, palette: &Palette, room: &mut TrialBudget) {
    page.push_str(&legend(work, palette));
    page.push_str("<div class=\"grid3\">\n");
    for figure in curves::of_work(work, palette) {
        page.push_str(&figure);
    }
    page.push_str("</div>\n");
    page.push_str(&role_table(work, palette));
    page.push_str(&cpu_rows(work, palette));
    page.push_str(&seconds::section(work, palette, room));
    page.push_str(&profiles(work));
    page.push_str(&notes_section(work));
}

/// Links to the flame graphs of each variant's trials, with paths relative to the page.
fn profiles(work: &WorkOutcome) -> String {
    let mut links = String::new();
    for variant in &work.variants {
        for trial in &variant.trials {
            for (role, folded) in &trial.profiles {
                let graph = folded.replace(".folded", ".svg");
                let _ = write!(
                    links,
                    "<li><a href=\"{}\">{}, round {}: {}</a></li>",
                    escape(&graph),
                    escape(&variant.name),
                    trial.round,
                    role.name()
                );
            }
        }
    }
    if links.is_empty() {
        return links;
    }
    format!("<details><summary>Flame graphs</summary><ul>{links}</ul></details>\n")
}

fn legend(work: &WorkOutcome, palette: &Palette) -> String {
    let mut text = String::from("<ul class=\"legend\">");
    for variant in &work.variants {
        let _ = write!(
            text,
            "<li><i class=\"{}\"></i>{}</li>",
            palette.class(&variant.name),
            escape(&variant.name)
        );
    }
    let has_control = work
        .variants
        .iter()
        .flat_map(|variant| &variant.trials)
        .any(|trial| trial.control_latency_us.is_some());
    if has_control {
        text.push_str("<li><i class=\"dash\"></i>dashed: control client beside it</li>");
    }
    text.push_str("</ul>\n");
    text
}

/// A row for each variant: its bottleneck and CPU charts.
fn cpu_rows(work: &WorkOutcome, palette: &Palette) -> String {
    let mut rows = String::new();
    for variant in &work.variants {
        let charts = cores::charts(variant);
        let limited = |trial: &&Trial| !trial.limiter.sentence.is_empty() && !charts.is_empty();
        let Some(trial) = variant.median_trial().filter(limited) else {
            continue;
        };
        let _ = writeln!(
            rows,
            "<div class=\"cpus\"><div class=\"limit\"><h4><i class=\"{}\"></i>{}</h4><p>{}</p></div>{}</div>",
            palette.class(&variant.name),
            escape(&variant.name),
            escape(&trial.limiter.sentence),
            charts.join("")
        );
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "<h3>What was the limit</h3>\n<ul class=\"legend\">{}</ul>\n{rows}",
        cores::legend()
    )
}

fn role_table(work: &WorkOutcome, palette: &Palette) -> String {
    let mut rows = String::new();
    let mut roles: Vec<Role> = Vec::new();
    let has = |name: &str| {
        work.variants
            .iter()
            .any(|variant| variant.metrics.contains_key(name))
    };
    for role in Role::ALL {
        if has(&format!("{}.cpu_us_per_request", role.name())) && role != Role::Control {
            roles.push(role);
        }
    }
    if roles.is_empty() {
        return String::new();
    }
    let mut head = String::from("<th scope=\"col\">variant</th><th scope=\"col\">rate</th>");
    for role in &roles {
        let _ = write!(head, "<th scope=\"col\">{} CPU</th>", role.name());
    }
    head.push_str(
        "<th scope=\"col\">p50</th><th scope=\"col\">p99</th><th scope=\"col\">p99.9</th>",
    );
    for variant in &work.variants {
        rows.push_str(&role_row(variant, &roles, palette));
    }
    format!(
        "<h3>Every role</h3>\n<div class=\"scroll\" role=\"region\" aria-label=\"every role, {}\" tabindex=\"0\"><table class=\"roles\"><thead><tr>{head}</tr></thead>\
         <tbody>{rows}</tbody></table></div>\n",
        escape(&work.title())
    )
}

fn role_row(variant: &VariantOutcome, roles: &[Role], palette: &Palette) -> String {
    let Some(trial) = variant.median_trial() else {
        return String::new();
    };
    let metric = |name: &str| variant.metrics.get(name).map(|rounds| rounds.median);
    let dash = || "<td class=\"none\">–</td>".to_owned();
    let mut row = format!(
        "<tr><th scope=\"row\"><i class=\"{}\"></i>{}</th>",
        palette.class(&variant.name),
        escape(&variant.name)
    );
    row.push_str(&metric("rps").map_or_else(dash, |rate| {
        format!("<td>{}</td>", onrush_measure::units::rate(rate))
    }));
    for role in roles {
        let cost = metric(&format!("{}.cpu_us_per_request", role.name()));
        let busy = trial.roles.get(role).map_or(0.0, |used| used.busy);
        let cpus = cpu_list(variant.placement.of(*role));
        row.push_str(&cost.map_or_else(dash, |cost| {
            let parts = cost_parts(variant, *role)
                .map_or(String::new(), |parts| format!("<small>{parts}</small>"));
            format!(
                "<td>{cost:.2} µs{parts}<small>{:.0} % of CPU {cpus}</small></td>",
                busy * 100.0
            )
        }));
    }
    for percentile in ["50", "99", "99.9"] {
        let value = metric(&format!("latency.p{percentile}"));
        row.push_str(&value.map_or_else(dash, |us| format!("<td>{}</td>", number(us, "µs"))));
    }
    row.push_str("</tr>");
    row
}

fn notes_section(work: &WorkOutcome) -> String {
    let notes = notes(work);
    if notes.is_empty() {
        return String::new();
    }
    let lines: String = notes
        .iter()
        .map(|note| match &note.rounds {
            None => format!("<li>{}</li>", escape(&note.text)),
            Some(rounds) => format!("<li>{} <small>{rounds}</small></li>", escape(&note.text)),
        })
        .collect();
    format!(
        "<details class=\"trouble\"><summary>Notes on these rounds ({})</summary><ul>{lines}</ul></details>\n",
        notes.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::outcome;

    fn page() -> String {
        html(&outcome(), &Environment::default())
    }

    #[test]
    fn page_loads_no_external_resources() {
        let page = page();
        for outside in ["http://", "https://", "src=", "@import", "url(", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn charts_have_titles_and_elements_are_closed() {
        let page = page();
        let count = |text: &str| page.matches(text).count();
        assert!(count("<svg class=\"chart\"") >= 4);
        assert!(count("<title>") > count("<svg class=\"chart\""));
        for element in [
            "svg", "figure", "table", "section", "details", "div", "ul", "main", "dl",
        ] {
            let opened = count(&format!("<{element} ")) + count(&format!("<{element}>"));
            assert_eq!(opened, count(&format!("</{element}>")), "{element}");
        }
    }

    #[test]
    fn charts_and_tables_are_keyboard_accessible() {
        let page = page();
        for part in page.split("<svg class=\"chart").skip(1) {
            let tag = part.split("><title>").next().expect("a tag");
            assert!(
                tag.contains("role=\"img\" tabindex=\"0\" data-hover='[["),
                "{tag}"
            );
        }
        let parts: Vec<&str> = page.split("<div class=\"scroll\"").skip(1).collect();
        assert!(!parts.is_empty());
        let mut names: Vec<&str> = Vec::new();
        for part in parts {
            let tag = part.split('>').next().expect("a tag");
            assert!(
                tag.contains("role=\"region\"") && tag.contains("tabindex=\"0\""),
                "{tag}"
            );
            names.push(tag.split("aria-label=\"").nth(1).expect("a name"));
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }

    #[test]
    fn table_headers_and_headings_are_accessible() {
        let page = page();
        for part in page
            .split("<th")
            .skip(1)
            .filter(|part| !part.starts_with("ead"))
        {
            assert!(
                part.split('>').next().expect("a tag").contains("scope="),
                "{part}"
            );
            assert!(
                !part[part.find('>').expect("its end")..].starts_with("></th>"),
                "{part}"
            );
        }
        let mut before = 0;
        for part in page.split("<h").skip(1) {
            let Some(level) = part.chars().next().and_then(|letter| letter.to_digit(10)) else {
                continue;
            };
            assert!(level <= before + 1, "h{level} behind h{before}: {part}");
            before = level;
        }
    }

    #[test]
    fn page_reports_bottleneck_and_escapes_names() {
        let page = page();
        assert!(page.contains("CPU 1 was full: the server"));
        assert!(page.contains("sample &lt;1&gt;") && !page.contains("sample <1>"));
    }

    #[test]
    fn page_has_no_nan_or_infinity() {
        let mut outcome = outcome();
        outcome.works[0].variants[0].trials.clear();
        outcome.works[0].variants[1].trials[0].samples.clear();
        outcome.works[0].variants[2].trials[0].latency_us = None;
        let page = html(&outcome, &Environment::default());
        assert!(!page.contains("NaN") && !page.contains("inf\""));
    }
}
