//! Whether a run may be believed: facts in, a verdict with its reasons out. Pure.
//!
//! A reason says what was seen, what the bound is and what to do about it. What makes the figures wrong is invalid;
//! what makes them say something else than they seem to is suspect.

use std::fmt;

use onrush_measure::units;
use serde::{Deserialize, Serialize};

use crate::evidence::{Evidence, OwnPart, ThreadEvidence};
use crate::limits::{
    BUSY_DURATION_MIN, CONNECTIONS_SHARE_MIN, CPU_SHARE_INVALID, CPU_SHARE_SUSPECT,
    FAILED_SHARE_INVALID, FAIRNESS_MIN, MISSED_SHARE_INVALID, OWN_MIN_US, OWN_PERCENTILE_INVALID,
    OWN_SHARE_INVALID, OWN_SHARE_SUSPECT, RATE_MISSED_SHARE, RESENT_SHARE_MAX,
    RETRANSMIT_SHARE_MAX, SEGMENTS_MIN, STALLED_SHARE_INVALID, STALLED_SHARE_SUSPECT,
    START_LATE_MAX, STEAL_SHARE_MAX, THROTTLED_SHARE_MAX, UNANSWERED_SHARE_INVALID,
    UNANSWERED_SHARE_SUSPECT,
};

/// What a run is worth. From best to worst, so that the worst of several is their maximum.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nothing speaks against the figures.
    #[default]
    Valid,
    /// The figures are what was measured, and something else than the server may have shaped them.
    Suspect,
    /// The figures are wrong or of another load than was asked for.
    Invalid,
}

/// The judgement of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The worst of the reasons; valid without any.
    pub state: State,
    /// What speaks against the run, the worst first.
    pub reasons: Vec<Reason>,
}

/// One thing that speaks against a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reason {
    /// What it makes of the run.
    pub state: State,
    /// What was looked at, in a few words.
    pub what: String,
    /// What was found, with its unit.
    pub measured: String,
    /// How far it may go, with its unit.
    pub bound: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            State::Valid => "VALID",
            State::Suspect => "SUSPECT",
            State::Invalid => "INVALID",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}: {} ({}): {}",
            self.what, self.measured, self.bound, self.remedy
        )
    }
}

/// The verdict and a line for each reason; every line ends.
impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "verdict      {}", self.state)?;
        self.reasons
            .iter()
            .try_for_each(|reason| writeln!(out, "  {:<8} {reason}", reason.state))
    }
}

impl Verdict {
    /// Judges a run by its facts.
    pub fn of(evidence: &Evidence) -> Verdict {
        let found = [
            counts(evidence),
            answers(evidence),
            measured(evidence),
            silence(evidence),
            failures(evidence),
            unasked(evidence),
            unanswered(evidence),
            resent(evidence),
            start(evidence),
            cpu(evidence),
            rate(evidence),
            own(evidence),
            stalls(evidence),
            run_delay(evidence),
            connections(evidence),
            ports(evidence),
            fairness(evidence),
            steal(evidence),
            throttling(evidence),
            retransmits(evidence),
        ];
        Verdict::from(found.into_iter().flatten().collect())
    }

    /// The verdict that these reasons come to.
    pub fn from(mut reasons: Vec<Reason>) -> Verdict {
        // Stable: reasons of one state stay in the order in which they were looked for.
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.state));
        Verdict {
            state: reasons
                .first()
                .map(|reason| reason.state)
                .unwrap_or_default(),
            reasons,
        }
    }
}

/// [`suspect`] or [`invalid`].
type Judge = fn(&str, String, String, &str) -> Reason;

fn suspect(what: &str, measured: String, bound: String, remedy: &str) -> Reason {
    Reason {
        state: State::Suspect,
        what: what.to_owned(),
        measured,
        bound,
        remedy: remedy.to_owned(),
    }
}

fn invalid(what: &str, measured: String, bound: String, remedy: &str) -> Reason {
    Reason {
        state: State::Invalid,
        ..suspect(what, measured, bound, remedy)
    }
}

fn per_cent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 {
        format!("{percent:.2} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// The worst thread by `figure`; none in a run too short for shares of its time to mean anything.
fn worst(evidence: &Evidence, figure: fn(&ThreadEvidence) -> f64) -> Option<f64> {
    if evidence.duration_s < BUSY_DURATION_MIN.as_secs_f64() {
        return None;
    }
    evidence.threads.iter().map(figure).reduce(f64::max)
}

fn counts(evidence: &Evidence) -> Option<Reason> {
    let accounted = evidence.answers + evidence.failures + evidence.unfinished;
    (!evidence.is_count_consistent).then(|| {
        invalid(
            "counts do not add up",
            format!(
                "{} sent; {} answered, failed or unfinished",
                units::count(evidence.requests_sent),
                units::count(accounted)
            ),
            "equal, and as many values in every histogram".to_owned(),
            "this is a mistake in onrush: please report it with the command line",
        )
    })
}

fn start(evidence: &Evidence) -> Option<Reason> {
    let late = evidence.start_late_s?;
    (late > START_LATE_MAX.as_secs_f64()).then(|| {
        suspect(
            "the run began after the moment that was set",
            format!("{late:.3} s"),
            format!("at most {} ms", START_LATE_MAX.as_millis()),
            "its connections were not made in time: set --start-at further ahead, and look at what keeps connections from being made",
        )
    })
}

/// A thread that never sleeps measures its own queue. In a closed loop that bounds the rate, and the figures are those
/// of that rate; in an open loop the requests leave late and the load is not the one asked for.
fn cpu(evidence: &Evidence) -> Option<Reason> {
    let share = worst(evidence, |thread| thread.cpu_share)?;
    let remedy = "use more threads (-t) on CPUs of their own (--cpus), or a lower rate";
    if evidence.rate_asked.is_some() && share >= CPU_SHARE_INVALID {
        return Some(invalid(
            "the generator was the limit: its busiest thread's CPU",
            per_cent(share),
            format!("below {} at a set rate", per_cent(CPU_SHARE_INVALID)),
            remedy,
        ));
    }
    let bound = match evidence.rate_asked {
        Some(_) => CPU_SHARE_SUSPECT,
        None => CPU_SHARE_INVALID,
    };
    (share >= bound).then(|| {
        suspect(
            "the generator was the limit: its busiest thread's CPU",
            per_cent(share),
            format!("below {}", per_cent(bound)),
            remedy,
        )
    })
}

fn rate(evidence: &Evidence) -> Option<Reason> {
    let asked = evidence.rate_asked.filter(|asked| *asked > 0.0)?;
    let due = asked * evidence.duration_s;
    let missed_share = evidence.missed as f64 / due.max(1.0);
    if missed_share > MISSED_SHARE_INVALID {
        return Some(invalid(
            "requests that were due and never sent",
            format!(
                "{} ({})",
                units::count(evidence.missed),
                per_cent(missed_share)
            ),
            format!("at most {}", per_cent(MISSED_SHARE_INVALID)),
            "the percentiles lack them: use more threads (-t) or connections (-c), or a lower rate",
        ));
    }
    let short = 1.0 - evidence.rate_achieved / asked;
    // Those in flight at the end were not late: as many as there are connections at most.
    let in_flight = evidence.connections_asked as f64 / due.max(1.0);
    (short > RATE_MISSED_SHARE.max(in_flight)).then(|| {
        suspect(
            "requests per second started",
            format!("{:.0} of {:.0} asked for", evidence.rate_achieved, asked),
            format!("at most {} fewer", per_cent(RATE_MISSED_SHARE)),
            "the wait of those that started late is part of their latency: use more connections (-c), or take it as the target's limit",
        )
    })
}

/// A thread that waits for a CPU sees nothing: as far as requests are under way meanwhile, they wait with it. In a closed
/// loop the share of time is the share of the mean response time; where fewer requests than one are under way on average,
/// it is so many times as much of theirs.
fn run_delay(evidence: &Evidence) -> Option<Reason> {
    let share = worst(evidence, |thread| thread.run_delay_share)?;
    let mean_us = evidence.response_mean_us?;
    let under_way = evidence.answers as f64 * mean_us / 1e6 / evidence.duration_s;
    let of_mean = (share / under_way.clamp(f64::MIN_POSITIVE, 1.0)).min(1.0);
    let exceeds = |bound: f64| share > bound || (of_mean > bound && of_mean * mean_us > OWN_MIN_US);
    let reason = |judge: Judge, bound: f64| {
        judge(
            "a thread that could have run waited for a CPU",
            format!(
                "{} of the time, up to {} of the mean response time",
                per_cent(share),
                per_cent(of_mean)
            ),
            format!("at most {}", per_cent(bound)),
            "give the generator CPUs of its own (--cpus), away from the server",
        )
    };
    match () {
        () if exceeds(OWN_SHARE_INVALID) => Some(reason(invalid, OWN_SHARE_INVALID)),
        () if exceeds(OWN_SHARE_SUSPECT) => Some(reason(suspect, OWN_SHARE_SUSPECT)),
        () => None,
    }
}

/// What the generator itself added to the percentiles: requests that left late though a connection was free, and answers
/// that waited to be read.
fn own(evidence: &Evidence) -> Option<Reason> {
    if evidence.duration_s < BUSY_DURATION_MIN.as_secs_f64() {
        return None;
    }
    let exceeds = |part: &&OwnPart, bound: f64| part.share() > bound && part.own_us > OWN_MIN_US;
    let worst = |parts: Vec<&OwnPart>| {
        parts
            .into_iter()
            .max_by(|one, other| one.share().total_cmp(&other.share()))
            .copied()
    };
    let wrong = evidence.own.iter().filter(|part| {
        part.percentile <= OWN_PERCENTILE_INVALID && exceeds(part, OWN_SHARE_INVALID)
    });
    let doubtful = evidence
        .own
        .iter()
        .filter(|part| exceeds(part, OWN_SHARE_SUSPECT));
    let reason = |judge: Judge, part: OwnPart, bound: f64| {
        let time = |us: f64| units::nanoseconds(us * 1000.0);
        judge(
            "the generator's own part of the response time",
            format!(
                "up to {} of p{}, {} of {}",
                per_cent(part.share()),
                units::percentile(part.percentile),
                time(part.own_us),
                time(part.response_us)
            ),
            format!("at most {}", per_cent(bound)),
            "it sent or read late, since it was stopped, had no CPU or too much to do: give it CPUs of its own (--cpus) or more threads (-t)",
        )
    };
    if let Some(part) = worst(wrong.collect()) {
        return Some(reason(invalid, part, OWN_SHARE_INVALID));
    }
    worst(doubtful.collect()).map(|part| reason(suspect, part, OWN_SHARE_SUSPECT))
}

fn stalls(evidence: &Evidence) -> Option<Reason> {
    let share = worst(evidence, |thread| thread.stalled_share)?;
    let longest = worst(evidence, |thread| thread.longest_turn_us)?;
    let (judge, bound): (Judge, f64) = match share {
        share if share > STALLED_SHARE_INVALID => (invalid, STALLED_SHARE_INVALID),
        share if share > STALLED_SHARE_SUSPECT => (suspect, STALLED_SHARE_SUSPECT),
        _ => return None,
    };
    Some(judge(
        "a thread of the generator saw nothing that happened",
        format!(
            "{} of the run, {} at a time",
            per_cent(share),
            units::nanoseconds(longest * 1000.0)
        ),
        format!("at most {}", per_cent(bound)),
        "it was stopped or had no CPU, and made no load meanwhile: leave it running, on CPUs of its own (--cpus)",
    ))
}

/// Who has answered nothing has not been measured.
fn answers(evidence: &Evidence) -> Option<Reason> {
    (evidence.answers == 0 && evidence.requests_sent > 0).then(|| {
        invalid(
            "no answer came",
            format!(
                "{} sent, {} failed, {} without an answer at the end",
                units::count(evidence.requests_sent),
                units::count(evidence.failures),
                units::count(evidence.unfinished)
            ),
            "at least one".to_owned(),
            "there is nothing to judge: ask the target by hand (curl -v), and look at its log",
        )
    })
}

/// A run may be over before anything was asked, or anything counts.
fn measured(evidence: &Evidence) -> Option<Reason> {
    let has_reason = evidence.answers == 0 && evidence.requests_sent > 0;
    (evidence.measured == Some(0) && !has_reason).then(|| {
        invalid(
            "nothing was measured",
            format!(
                "{} sent, {} answered, all of them before the measurement began",
                units::count(evidence.requests_sent),
                units::count(evidence.answers)
            ),
            "at least one answer behind ramp and warm-up, beside first ones that are left out"
                .to_owned(),
            "run for longer (-d), ask for more (-n), or warm up for a shorter time",
        )
    })
}

/// A target that stops answering before the end has no rate and no latency from then on.
fn silence(evidence: &Evidence) -> Option<Reason> {
    let duration = evidence.duration_s;
    if let Some(until) = evidence.answered_until_s {
        return Some(invalid(
            "the target stopped answering before the end of the run",
            format!("the last answer came after {until:.2} s of {duration:.2} s"),
            "answers to the end".to_owned(),
            "the rate is that until then, and no percentile knows of the rest: look at what became of the target",
        ));
    }
    (evidence.silent_s > 0.0).then(|| {
        suspect(
            "the target answered nothing for a while",
            format!("only errors for {:.0} s of {duration:.0} s", evidence.silent_s),
            "answers in every second".to_owned(),
            match evidence.rate_asked {
                None => "that time is not in the rate, and closed loops asked for nothing meanwhile: look at what became of the target",
                Some(_) => "what was due meanwhile was sent late or failed: look at what became of the target",
            },
        )
    })
}

/// Requests that got no answer are in no percentile.
fn failures(evidence: &Evidence) -> Option<Reason> {
    let tried = evidence.answers + evidence.failures;
    let share = evidence.failures as f64 / tried.max(1) as f64;
    without_answer(
        share,
        "requests that failed",
        evidence.failures,
        FAILED_SHARE_INVALID,
        "they are in no percentile: see the errors by kind",
    )
}

/// Whoever sends more than it says may have sent it as the answer to another request: which answer is whose is not known.
fn unasked(evidence: &Evidence) -> Option<Reason> {
    let share = evidence.unasked as f64 / evidence.answers.max(1) as f64;
    let (judge, bound): (Judge, String) = match evidence.unasked {
        0 => return None,
        _ if share > FAILED_SHARE_INVALID => {
            let bound = format!("at most {}", per_cent(FAILED_SHARE_INVALID));
            (invalid, bound)
        }
        _ => (suspect, "none".to_owned()),
    };
    Some(judge(
        "answers with more bytes than they should have",
        format!("{} ({})", units::count(evidence.unasked), per_cent(share)),
        bound,
        "such bytes may have been taken for the answer to the next request: look at the target's Content-Length and chunks (curl -v)",
    ))
}

fn unanswered(evidence: &Evidence) -> Option<Reason> {
    let open = evidence.unfinished.saturating_sub(evidence.late);
    let mut share = open as f64 / evidence.requests_sent.max(1) as f64;
    // A closed loop always leaves one on each connection. What has not waited longer than others were answered in may
    // be as fast as they: in a short run against a slow target the figures are few, not wrong.
    if evidence.longest_open.is_some_and(|longest| longest <= 1.0) {
        share = share.min(UNANSWERED_SHARE_INVALID);
    }
    without_answer(
        share,
        "requests without an answer at the end",
        open,
        UNANSWERED_SHARE_INVALID,
        "percentiles that they could change are printed as bounds (>): measure for longer (-d), and look for requests that the target never answers",
    )
}

fn without_answer(
    share: f64,
    what: &str,
    count: u64,
    invalid_above: f64,
    remedy: &str,
) -> Option<Reason> {
    let measured = format!("{} ({})", units::count(count), per_cent(share));
    if share > invalid_above {
        let bound = format!("at most {}", per_cent(invalid_above));
        return Some(invalid(what, measured, bound, remedy));
    }
    let bound = format!("at most {}", per_cent(UNANSWERED_SHARE_SUSPECT));
    (share > UNANSWERED_SHARE_SUSPECT).then(|| suspect(what, measured, bound, remedy))
}

fn resent(evidence: &Evidence) -> Option<Reason> {
    let share = evidence.resent as f64 / evidence.requests_sent.max(1) as f64;
    (share > RESENT_SHARE_MAX).then(|| {
        suspect(
            "requests sent again",
            format!("{} ({})", units::count(evidence.resent), per_cent(share)),
            format!("at most {}", per_cent(RESENT_SHARE_MAX)),
            "the target closed connections that it had kept alive, and each of these waited for a new one: see its keep-alive settings",
        )
    })
}

fn connections(evidence: &Evidence) -> Option<Reason> {
    let (asked, achieved) = (evidence.connections_asked, evidence.connections_achieved);
    let is_short = (achieved as f64) < asked as f64 * CONNECTIONS_SHARE_MIN;
    (asked > 0 && is_short).then(|| {
        suspect(
            "connections open at once",
            format!("{} of {}", units::count(achieved), units::count(asked)),
            format!("at least {}", per_cent(CONNECTIONS_SHARE_MIN)),
            "the load came over fewer connections than asked for: see the errors, and the target's limit on connections",
        )
    })
}

fn ports(evidence: &Evidence) -> Option<Reason> {
    (evidence.no_local_port > 0).then(|| {
        suspect(
            "connections without a free local port",
            units::count(evidence.no_local_port),
            "none".to_owned(),
            "keep connections alive, widen net.ipv4.ip_local_port_range, or use more source addresses",
        )
    })
}

fn fairness(evidence: &Evidence) -> Option<Reason> {
    let fairness = evidence.fairness?;
    (fairness < FAIRNESS_MIN).then(|| {
        suspect(
            "answers were spread unevenly over the connections: Jain's index",
            format!("{fairness:.2}"),
            format!("at least {FAIRNESS_MIN:.2}"),
            "some connections hardly worked: look at the target's threads, or at its limits per connection",
        )
    })
}

fn steal(evidence: &Evidence) -> Option<Reason> {
    let share = evidence.steal_share?;
    (share > STEAL_SHARE_MAX).then(|| {
        suspect(
            "the hypervisor gave this machine's CPU time to others",
            per_cent(share),
            format!("at most {}", per_cent(STEAL_SHARE_MAX)),
            "measure again when the host is quiet, or on a machine of its own",
        )
    })
}

fn throttling(evidence: &Evidence) -> Option<Reason> {
    let throttled = evidence.throttled_s.filter(|_| evidence.duration_s > 0.0)?;
    let share = throttled / evidence.duration_s;
    (share > THROTTLED_SHARE_MAX).then(|| {
        suspect(
            "the control group's CPU quota held the generator back",
            format!("{throttled:.2} s, {} of the run", per_cent(share)),
            format!("at most {}", per_cent(THROTTLED_SHARE_MAX)),
            "raise the quota (cpu.max; in Kubernetes the CPU limit) or use fewer threads",
        )
    })
}

fn retransmits(evidence: &Evidence) -> Option<Reason> {
    let (again, out) = (evidence.retransmits?, evidence.segments_out?);
    let share = again as f64 / out.max(1) as f64;
    (out >= SEGMENTS_MIN && share > RETRANSMIT_SHARE_MAX).then(|| {
        suspect(
            "TCP segments sent again",
            format!("{} of {}", units::count(again), units::count(out)),
            format!("at most {}", per_cent(RETRANSMIT_SHARE_MAX)),
            "the network lost packets, and each cost 200 ms or more: look for drops (ip -s link, nstat) before believing the tail",
        )
    })
}

#[cfg(test)]
mod tests;
