//! State of the clocks of several generators.

use super::part::Part;
use super::span::Span;
use crate::pace::wall_clock::{ClockRow, WallTime};
use crate::verdict::reason::{Reason, State};

/// Merges the state of the clocks: each value is that of the worst clock.
pub(super) fn clock(parts: &[Part], span: &Span) -> ClockRow {
    let all = || parts.iter().map(|part| &part.report.clock);
    let worst = |of: fn(&ClockRow) -> Option<f64>| all().filter_map(of).reduce(f64::max);
    let same = |of: fn(&ClockRow) -> &Option<String>| {
        let first = of(all().next()?);
        all()
            .all(|clock| of(clock) == first)
            .then(|| first.clone())?
    };
    let known: Option<Vec<bool>> = all().map(|clock| clock.synchronized).collect();
    ClockRow {
        started_at: Some(WallTime::of_seconds(span.began).to_string()),
        start_asked: same(|clock| &clock.start_asked),
        synchronized: known.map(|known| known.into_iter().all(|is_synchronized| is_synchronized)),
        offset_us: None,
        error_estimated_us: worst(|clock| clock.error_estimated_us),
        error_max_us: worst(|clock| clock.error_max_us),
        id: same(|clock| &clock.id),
        spread_us: Some(((span.last_start - span.began) * 1e6).round()),
    }
}

pub(super) fn unsynchronized(parts: &[Part], span: &Span) -> Option<Reason> {
    let clock = clock(parts, span);
    let is_doubtful = clock.id.is_none() && clock.synchronized == Some(false);
    is_doubtful.then(|| {
        let free = |part: &&Part| part.report.clock.synchronized == Some(false);
        let names: Vec<&str> = parts
            .iter()
            .filter(free)
            .map(|part| part.name.as_str())
            .collect();
        Reason {
            state: State::Suspect,
            what: "clocks of the generators' machines are not synchronized".to_owned(),
            measured: names.join(", "),
            bound: "all synchronized".to_owned(),
            remedy: "the generators may not have run together, and seconds of the sum may combine different times: run \
                chrony or ntpd on each machine".to_owned(),
        }
    })
}
