//! Comparison as text for a terminal.

use std::fmt;

use super::comparison::{Comparison, Figure, ReferenceChange};
use super::verdict::signed;
use crate::archive::{Difference, DifferenceScope, SeriesId};
use crate::report::number;

/// Names listed of each kind; the JSON has all.
const NAMES_SHOWN: usize = 12;

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "A {}\nB {}", self.a, self.b)?;
        write_differences(out, &self.differences)?;
        write_missing(out, "A", &self.only_in_a)?;
        write_missing(out, "B", &self.only_in_b)?;
        let mut before: Option<&SeriesId> = None;
        for figure in &self.figures {
            write_heads(out, before, &figure.subject)?;
            before = Some(&figure.subject);
            write_figure(out, figure)?;
        }
        write_references(out, &self.references)?;
        writeln!(out, "\n{}", self.counts().label())?;
        self.write_legend(out)
    }
}

impl Comparison {
    fn write_legend(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.together > 0 {
            writeln!(
                out,
                "Changes are B relative to A with their 90 % interval; no difference: the interval is within {}. \
                 Better and worse are given where all figures judged ({}) hold together at 95 %, \
                 with that interval.",
                within(self.min_effect),
                self.together
            )?;
        }
        if !self.without_direction.is_empty() {
            writeln!(
                out,
                "Not compared, unless named in full by `--only`: {}",
                some(&self.without_direction)
            )?;
        }
        Ok(())
    }
}

pub(super) fn within(share: f64) -> String {
    format!("±{} %", (share * 1e4).round() / 1e2)
}

pub(super) fn some(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES_SHOWN).map(String::as_str).collect();
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}

fn write_differences(out: &mut fmt::Formatter<'_>, differences: &[Difference]) -> fmt::Result {
    if differences.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nnot the same in A and B:")?;
    for difference in differences.iter().take(NAMES_SHOWN) {
        writeln!(out, "  {}", sentence(difference))?;
    }
    match differences.len().saturating_sub(NAMES_SHOWN) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more, listed in the JSON"),
    }
}

/// A difference and what it makes incomparable.
pub(super) fn sentence(difference: &Difference) -> String {
    let Difference {
        what,
        a,
        b,
        forbids,
    } = difference;
    let forbids = match forbids {
        DifferenceScope::Everything => ": cannot be compared",
        DifferenceScope::Variant => ": this variant cannot be compared",
        DifferenceScope::Nothing => "",
    };
    format!("{what}: {a:?} and {b:?}{forbids}")
}

fn write_missing(out: &mut fmt::Formatter<'_>, side: &str, names: &[String]) -> fmt::Result {
    match names.is_empty() {
        true => Ok(()),
        false => writeln!(out, "\nonly in {side}: {}", some(names)),
    }
}

/// Headings before the first figure of a work and of a variant.
fn write_heads(
    out: &mut fmt::Formatter<'_>,
    before: Option<&SeriesId>,
    subject: &SeriesId,
) -> fmt::Result {
    if before.is_none_or(|before| !before.is_same_work(subject)) {
        writeln!(out, "\n{}", subject.place())?;
    }
    match before {
        Some(before) if before == subject => Ok(()),
        _ => writeln!(out, "  {}", subject.variant),
    }
}

fn write_figure(out: &mut fmt::Formatter<'_>, figure: &Figure) -> fmt::Result {
    let side = |rounds: Option<onrush_measure::compare::Rounds>| {
        rounds.map_or_else(|| "–".into(), |rounds| number(rounds.median, figure.unit))
    };
    let (change, interval) = figure.change().unwrap_or_default();
    let beside = match &figure.beside {
        Some(beside) => format!("beside {}", beside.reference),
        None => String::new(),
    };
    let line = format!(
        "    {:<28} {:>9} {:>9} {change:>8}  {interval:<19} {beside:<16} {}",
        figure.metric,
        side(figure.a),
        side(figure.b),
        figure.words()
    );
    writeln!(out, "{}", line.trim_end())
}

fn write_references(out: &mut fmt::Formatter<'_>, references: &[ReferenceChange]) -> fmt::Result {
    if references.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nreferences differ between A and B although they were not changed:"
    )?;
    for moved in references.iter().take(NAMES_SHOWN) {
        let remark = match moved.is_same {
            true => "",
            false => "  (another version or other options: not compared)",
        };
        writeln!(
            out,
            "  {} / {} {}{remark}",
            moved.subject,
            moved.metric,
            signed(1.0 + moved.change)
        )?;
    }
    match references.len().saturating_sub(NAMES_SHOWN) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more, listed in the JSON"),
    }
}
