//! Verdicts, and shares as people read them.

use serde::Serialize;

/// What may be said of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It lies within the smallest effect that matters.
    NoDifference,
    /// It became better, by more than that.
    Better,
    /// It became worse, by more than that.
    Worse,
    /// Its interval crosses that bound.
    CannotBeTold,
    /// The runs, or their rounds, do not allow it.
    NotComparable,
}

impl Verdict {
    /// In words.
    pub fn says(self) -> &'static str {
        match self {
            Verdict::NoDifference => "no difference",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::CannotBeTold => "cannot be told",
            Verdict::NotComparable => "not comparable",
        }
    }
}

/// How many figures there are of each verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts([(Verdict, usize); 5]);

impl Counts {
    /// Of these verdicts.
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

    /// How many of one.
    pub fn of_verdict(&self, verdict: Verdict) -> usize {
        let own = self.0.iter().filter(|(listed, _)| *listed == verdict);
        own.map(|(_, count)| count).sum()
    }

    /// `2 worse, 5 no difference`: what has any, the worst first.
    pub fn says(&self) -> String {
        let any = self.0.iter().filter(|(_, count)| *count > 0);
        let parts: Vec<String> = any
            .map(|(verdict, count)| format!("{count} {}", verdict.says()))
            .collect();
        match parts.is_empty() {
            true => "no figure is in both".to_owned(),
            false => parts.join(", "),
        }
    }
}

/// A share without a sign: `5.1 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        ..99.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A ratio as a change with its sign: `+5.1 %`.
pub(crate) fn signed(ratio: f64) -> String {
    let sign = match (ratio - 1.0) * 100.0 {
        // What rounds to nothing has no sign.
        -0.05..0.05 => "",
        ..0.0 => "-",
        _ => "+",
    };
    format!("{sign}{}", percent((ratio - 1.0).abs()))
}
