//! Checks that make the figures of a run suspect or invalid. Pure.

use onrush_measure::units;

use super::report::Report;
use crate::limits::{
    CPU_SHARE_INVALID, MISSED_SHARE_INVALID, STALLED_SHARE_INVALID, STALLED_SHARE_SUSPECT,
    STEAL_SHARE_MAX,
};
use crate::verdict::Verdict;
use crate::verdict::reason::{Reason, State};

/// Returns the verdict; `steal` is the share of CPU time stolen by other guests.
pub(super) fn of(report: &Report, steal: Option<f64>) -> Verdict {
    let found = [
        refused(report),
        nothing_came(report),
        not_counted(report),
        unsent(report),
        skipped(report),
        cpu(report),
        stalled(report),
        by_program(report),
        wrong_length(report),
        too_late(report),
        foreign(report),
        stolen(steal),
    ];
    Verdict::from(found.into_iter().flatten().collect())
}

fn reason(state: State, what: &str, measured: String, bound: &str, remedy: &str) -> Option<Reason> {
    Some(Reason {
        state,
        what: what.to_owned(),
        measured,
        bound: bound.to_owned(),
        remedy: remedy.to_owned(),
    })
}

fn refused(report: &Report) -> Option<Reason> {
    if report.refused == 0 {
        return None;
    }
    reason(
        State::Invalid,
        "the target refused datagrams (ICMP port unreachable)",
        units::plural(report.refused, "time"),
        "never",
        "the target was not running all the time: check why it ended",
    )
}

fn nothing_came(report: &Report) -> Option<Reason> {
    if report.sent == 0 || report.received != Some(0) {
        return None;
    }
    reason(
        State::Invalid,
        "no datagram was received",
        format!("0 of {}", units::count(report.sent)),
        "some",
        "the target sends nothing back, or everything is lost on the way: check the target and any packet filter on \
         the path",
    )
}

fn not_counted(report: &Report) -> Option<Reason> {
    if report.received.is_some() {
        return None;
    }
    reason(
        State::Suspect,
        "the number of received datagrams is not known",
        format!("{} sent", units::count(report.sent)),
        "a target that counts",
        "the target does not report it: run onrush serve --sink there, or read its counters",
    )
}

fn unsent(report: &Report) -> Option<Reason> {
    let (reason_of_system, _) = report.unsent.iter().max_by_key(|(_, count)| **count)?;
    reason(
        State::Suspect,
        "datagrams that the kernel refused to send",
        format!(
            "{}, mostly: {reason_of_system}",
            units::count(report.unsent())
        ),
        "none",
        "they are not included in the sent ones: see the reason",
    )
}

fn skipped(report: &Report) -> Option<Reason> {
    let due = report.sent + report.skipped + report.unsent();
    let share = report.skipped as f64 / due.max(1) as f64;
    let (state, bound) = match share {
        share if share > MISSED_SHARE_INVALID => (State::Invalid, MISSED_SHARE_INVALID),
        share if share > MISSED_SHARE_INVALID / 10.0 => {
            (State::Suspect, MISSED_SHARE_INVALID / 10.0)
        }
        _ => return None,
    };
    reason(
        state,
        "datagrams that could not be sent in time",
        format!("{} ({:.2} %)", units::count(report.skipped), share * 100.0),
        &format!("at most {:.1} %", bound * 100.0),
        "use more threads (-t) and sockets (-c), --send batch or offload, or a lower rate",
    )
}

fn cpu(report: &Report) -> Option<Reason> {
    let share = report.cpu_shares.iter().copied().fold(0.0, f64::max);
    if report.rate_asked.is_none() || report.busy_poll || share < CPU_SHARE_INVALID {
        return None;
    }
    reason(
        State::Suspect,
        "the generator was the limit: CPU of its busiest thread",
        format!("{:.0} %", share * 100.0),
        &format!("below {:.0} % at a set rate", CPU_SHARE_INVALID * 100.0),
        "use more threads (-t) on CPUs of their own (--cpus), --send batch or offload, or a lower rate",
    )
}

fn stalled(report: &Report) -> Option<Reason> {
    let share = report.stalled_share;
    let (state, bound) = match share {
        share if share > STALLED_SHARE_INVALID => (State::Invalid, STALLED_SHARE_INVALID),
        share if share > STALLED_SHARE_SUSPECT => (State::Suspect, STALLED_SHARE_SUSPECT),
        _ => return None,
    };
    reason(
        state,
        "a thread of the generator was stalled",
        format!("{:.1} % of the run", share * 100.0),
        &format!("at most {:.0} %", bound * 100.0),
        "it was stopped or had no CPU: datagrams were sent late, and socket buffers may have overflowed; keep it \
         running, on CPUs of its own (--cpus)",
    )
}

fn by_program(report: &Report) -> Option<Reason> {
    if report.segmentation == "kernel" {
        return None;
    }
    reason(
        State::Suspect,
        "the kernel did not split messages into datagrams; this program did",
        "each sent separately".to_owned(),
        "split by the kernel (UDP_SEGMENT)",
        "the interface does not compute checksums, or datagrams are larger than its MTU: see ethtool -k and ip link",
    )
}

fn wrong_length(report: &Report) -> Option<Reason> {
    if report.wrong_length == 0 {
        return None;
    }
    reason(
        State::Suspect,
        "echoes whose length differs from the datagram sent",
        units::count(report.wrong_length),
        "none",
        "the target truncates or pads datagrams: it is not a plain echo",
    )
}

fn too_late(report: &Report) -> Option<Reason> {
    let too_late = report.too_late.filter(|count| *count > 0)?;
    reason(
        State::Suspect,
        "datagrams so late that they cannot be checked for duplicates",
        units::count(too_late),
        "none",
        "they count as received and may be duplicates: something on the path delays datagrams for long",
    )
}

fn foreign(report: &Report) -> Option<Reason> {
    if report.foreign == 0 {
        return None;
    }
    reason(
        State::Suspect,
        "datagrams that do not belong to this run",
        units::count(report.foreign),
        "none",
        "another run or program sends to these ports; they are not counted elsewhere",
    )
}

fn stolen(steal: Option<f64>) -> Option<Reason> {
    let share = steal.filter(|share| *share > STEAL_SHARE_MAX)?;
    reason(
        State::Suspect,
        "the hypervisor gave this machine's CPU time to others",
        format!("{:.1} %", share * 100.0),
        &format!("at most {:.1} %", STEAL_SHARE_MAX * 100.0),
        "measure again when the host is idle, or on a dedicated machine",
    )
}
