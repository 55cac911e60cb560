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
        "the network said that nobody listens (ICMP port unreachable)",
        units::plural(report.refused, "time"),
        "never",
        "the far end was not there all the time: see why it ended",
    )
}

fn nothing_came(report: &Report) -> Option<Reason> {
    if report.sent == 0 || report.received != Some(0) {
        return None;
    }
    reason(
        State::Invalid,
        "of all datagrams none came",
        format!("0 of {}", units::count(report.sent)),
        "some",
        "the far end sends nothing back, or everything is lost on the way: see what it is and what stands between (a packet filter)",
    )
}

fn not_counted(report: &Report) -> Option<Reason> {
    if report.received.is_some() {
        return None;
    }
    reason(
        State::Suspect,
        "what came is not known",
        format!("{} sent", units::count(report.sent)),
        "a far end that counts",
        "nobody there says: run onrush serve --sink there, or read its counters",
    )
}

fn unsent(report: &Report) -> Option<Reason> {
    let (reason_of_system, _) = report.unsent.iter().max_by_key(|(_, count)| **count)?;
    reason(
        State::Suspect,
        "datagrams that the kernel did not take",
        format!(
            "{}, mostly: {reason_of_system}",
            units::count(report.unsent())
        ),
        "none",
        "they are not among those sent: see the reason",
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
        "datagrams that were due and could not be sent in time",
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
        "the generator was the limit: its busiest thread's CPU",
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
        "a thread of the generator saw nothing that happened",
        format!("{:.1} % of the run", share * 100.0),
        &format!("at most {:.0} %", bound * 100.0),
        "it was stopped or had no CPU: datagrams left late, and what came back may have found its socket full; leave it running, on CPUs of its own (--cpus)",
    )
}

fn by_program(report: &Report) -> Option<Reason> {
    if report.segmentation == "kernel" {
        return None;
    }
    reason(
        State::Suspect,
        "the kernel did not part messages into datagrams, and this program did",
        "each was sent by itself".to_owned(),
        "parted by the kernel (UDP_SEGMENT)",
        "the interface makes no checksums, or datagrams are longer than its MTU: see ethtool -k and ip link",
    )
}

fn wrong_length(report: &Report) -> Option<Reason> {
    if report.wrong_length == 0 {
        return None;
    }
    reason(
        State::Suspect,
        "echoes with another length than they were sent with",
        units::count(report.wrong_length),
        "none",
        "the far end cuts or pads datagrams: it is no plain echo",
    )
}

fn too_late(report: &Report) -> Option<Reason> {
    let too_late = report.too_late.filter(|count| *count > 0)?;
    reason(
        State::Suspect,
        "datagrams so late that it is not known whether they had come before",
        units::count(too_late),
        "none",
        "they count as received and may be duplicates: something on the way holds datagrams back for long",
    )
}

fn foreign(report: &Report) -> Option<Reason> {
    if report.foreign == 0 {
        return None;
    }
    reason(
        State::Suspect,
        "datagrams that are none of this run",
        units::count(report.foreign),
        "none",
        "another run, or another program, sends to these ports; they are counted nowhere else",
    )
}

fn stolen(steal: Option<f64>) -> Option<Reason> {
    let share = steal.filter(|share| *share > STEAL_SHARE_MAX)?;
    reason(
        State::Suspect,
        "the hypervisor gave this machine's CPU time to others",
        format!("{:.1} %", share * 100.0),
        &format!("at most {:.1} %", STEAL_SHARE_MAX * 100.0),
        "measure again when the host is quiet, or on a machine of its own",
    )
}
