//! The result of the self-test as text.

use std::fmt;

use onrush_measure::histogram::Histogram;
use onrush_measure::units;

use super::{ERROR_MAX, ERROR_SHARE_MAX, Host, SelfTest, TAKEN_MAX, cpu};

impl fmt::Display for SelfTest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_host(&self.host, out)?;
        writeln!(out)?;
        let mut last = "";
        for check in &self.checks {
            if check.case != last {
                writeln!(out, "{}", check.case)?;
                last = check.case;
            }
            let error = check.reported - check.expected;
            writeln!(
                out,
                "  {:<5} {:<28} expected {:>12.1}  reported {:>12.1}  error {:>+9.1} ({:>+6.2} %)",
                if check.is_right() { "ok" } else { "WRONG" },
                check.figure,
                check.expected,
                check.reported,
                error,
                100.0 * error / check.expected.max(1.0),
            )?;
        }
        let wrong = self.checks.iter().filter(|check| !check.is_right()).count();
        writeln!(
            out,
            "\n{} of {} figures correct; times in microseconds, tolerance {:.0} % or {} us",
            self.checks.len() - wrong,
            self.checks.len(),
            ERROR_SHARE_MAX * 100.0,
            ERROR_MAX.as_micros(),
        )?;
        let gaps = self.host.gaps.iter();
        let taken = gaps.map(|gaps| gaps.share).fold(0.0, f64::max);
        if wrong > 0 && taken > TAKEN_MAX {
            writeln!(
                out,
                "other work on this machine takes {:.1} % of a CPU from its threads: figures from p{:.1} on include \
                 that",
                taken * 100.0,
                (1.0 - taken) * 100.0,
            )?;
        }
        Ok(())
    }
}

fn write_host(host: &Host, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Host {
        floor,
        slip_50us,
        slip_1ms,
        ceiling,
        gaps,
    } = host;
    let three = |histogram: &Histogram| {
        let at = |percentile| units::nanoseconds(histogram.value_at(percentile) as f64);
        format!("p50 {}, p99 {}, max {}", at(50.0), at(99.0), at(100.0))
    };
    match (cpu(0), cpu(1)) {
        (Some(generator), Some(server)) => writeln!(
            out,
            "threads       busy polling: the generator on CPU {generator}, the server on CPU {server}"
        )?,
        _ => writeln!(
            out,
            "threads       share one CPU: results include its wake-ups"
        )?,
    }
    writeln!(out, "floor         {}", three(floor))?;
    writeln!(out, "late by 50 us {}", three(slip_50us))?;
    writeln!(out, "late by 1 ms  {}", three(slip_1ms))?;
    writeln!(
        out,
        "ceiling       {} with one thread and 50 connections",
        units::rate(*ceiling)
    )?;
    for (role, gaps) in ["generator", "server"].iter().zip(gaps) {
        writeln!(
            out,
            "taken away    {:.1} % of the {role}'s CPU, in {} pauses a second of more than {} us, the longest {}",
            gaps.share * 100.0,
            gaps.lengths.count(),
            ERROR_MAX.as_micros(),
            units::nanoseconds(gaps.lengths.value_at(100.0) as f64),
        )?;
    }
    Ok(())
}
