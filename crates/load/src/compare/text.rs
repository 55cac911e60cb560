//! A comparison as text.

use std::fmt;

use onrush_measure::units;

use super::{Comparison, Conclusion, FigureChange};

/// Columns of the chart of both curves.
pub(super) const WIDTH: usize = 44;

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "A {}\nB {}", self.a, self.b)?;
        for caution in &self.cautions {
            writeln!(out, "caution: {caution}")?;
        }
        for (title, shifts) in [
            ("response", &self.response_us),
            ("service", &self.service_us),
        ] {
            if shifts.is_empty() {
                writeln!(
                    out,
                    "\n{title}: too few responses, or seconds, for any percentile"
                )?;
                continue;
            }
            writeln!(
                out,
                "\n{title:<12} {:>9} {:>9} {:>9}  95 % interval",
                "A", "B", "change"
            )?;
            for shift in shifts {
                let time = |us: f64| units::nanoseconds(us * 1000.0);
                write_shift(
                    out,
                    &format!("{} %", shift.of),
                    &time(shift.a),
                    &time(shift.b),
                    shift,
                )?;
            }
        }
        if let Some(shift) = &self.rps {
            writeln!(out)?;
            write_shift(
                out,
                "rate",
                &units::rate(shift.a),
                &units::rate(shift.b),
                shift,
            )?;
        }
        draw(out, &self.response_us)?;
        let finding = match self.is_same() {
            true if self.response_us.is_empty() => "cannot compare: the runs are too short",
            true => "no difference beyond chance",
            false => {
                "the figures marked with a direction differ by more than chance between these two runs; repeat both \
                 runs to confirm"
            }
        };
        writeln!(out, "\n{finding}")
    }
}

pub(super) fn write_shift(
    out: &mut fmt::Formatter<'_>,
    of: &str,
    a: &str,
    b: &str,
    shift: &FigureChange,
) -> fmt::Result {
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let finding = match shift.finding {
        Conclusion::Lower => "lower",
        Conclusion::Higher => "higher",
        Conclusion::Same => "no difference",
    };
    let interval = format!("{} to {}", percent(shift.low), percent(shift.high));
    writeln!(
        out,
        "{of:>12} {a:>9} {b:>9} {:>9}  {interval:<20} {finding}",
        percent(shift.change)
    )
}

/// Draws both curves: a line for each percentile, with time on a logarithmic axis.
pub(super) fn draw(out: &mut fmt::Formatter<'_>, shifts: &[FigureChange]) -> fmt::Result {
    let values = || shifts.iter().flat_map(|shift| [shift.a, shift.b]);
    let (low, high) = values().fold((f64::INFINITY, 0.0_f64), |(low, high), us| {
        (low.min(us), high.max(us))
    });
    if shifts.len() < 2 || low <= 0.0 || high <= low {
        return Ok(());
    }
    let place =
        |us: f64| ((us / low).ln() / (high / low).ln() * (WIDTH - 1) as f64).round() as usize;
    writeln!(out)?;
    for shift in shifts {
        let mut line = vec![' '; WIDTH];
        let (a, b) = (place(shift.a), place(shift.b));
        line[a.min(b)..=a.max(b)].fill('-');
        line[b] = 'B';
        line[a] = if a == b { '=' } else { 'A' };
        let line: String = line.into_iter().collect();
        writeln!(out, "{:>10} % |{}", shift.of, line.trim_end())?;
    }
    let ends = [low, high].map(|us| units::nanoseconds(us * 1000.0));
    writeln!(
        out,
        "{:>12}  {:<w$}{:>r$}  (=: both)",
        "",
        ends[0],
        ends[1],
        w = WIDTH - 12,
        r = 12
    )
}
