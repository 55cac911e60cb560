//! Verdicts, and percentages as text.

use serde::Serialize;

/// Verdict on a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval is within the smallest relevant effect.
    NoDifference,
    /// Better by more than the smallest relevant effect.
    Better,
    /// Worse by more than the smallest relevant effect.
    Worse,
    /// The interval crosses the bound of the smallest relevant effect.
    CannotBeTold,
    /// The runs or their rounds are not comparable.
    NotComparable,
}

impl Verdict {
    /// The verdict as text.
    pub fn label(self) -> &'static str {
        match self {
            Verdict::NoDifference => "no difference",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::CannotBeTold => "inconclusive",
            Verdict::NotComparable => "not comparable",
        }
    }
}

/// Number of figures for each verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts([(Verdict, usize); 5]);

impl Counts {
    /// Counts verdicts.
    pub fn of(verdicts: impl Iterator<Item = Verdict>) -> Counts {
        let mut counts = [
            Verdict::Worse,
            Verdict::Better,
            Verdict::NoDifference,
            Verdict::CannotBeTold,
            Verdict::NotComparable,
        ]
        .map(|verdict| (verdict, 0));
        for verdict in verdicts {
            let own = counts.iter_mut().filter(|(listed, _)| *listed == verdict);
            own.for_each(|(_, count)| *count += 1);
        }
        Counts(counts)
    }

    /// Number of figures with one verdict.
    pub fn of_verdict(&self, verdict: Verdict) -> usize {
        let own = self.0.iter().filter(|(listed, _)| *listed == verdict);
        own.map(|(_, count)| count).sum()
    }

    /// Non-zero counts as text, the worst first: `2 worse, 5 no difference`.
    pub fn label(&self) -> String {
        let any = self.0.iter().filter(|(_, count)| *count > 0);
        let parts: Vec<String> = any
            .map(|(verdict, count)| format!("{count} {}", verdict.label()))
            .collect();
        match parts.is_empty() {
            true => "no figure is in both runs".to_owned(),
            false => parts.join(", "),
        }
    }
}

/// A share as a percentage without a sign: `5.1 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        ..99.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A ratio as a relative change with a sign: `+5.1 %`.
pub(crate) fn signed(ratio: f64) -> String {
    let sign = match (ratio - 1.0) * 100.0 {
        -0.05..0.05 => "",
        ..0.0 => "-",
        _ => "+",
    };
    format!("{sign}{}", percent((ratio - 1.0).abs()))
}
