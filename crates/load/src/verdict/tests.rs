//! Verdicts and their reasons.

use super::*;
use crate::record::evidence::{GeneratorShare, ThreadEvidence};

/// Closed loop without any reason against it.
fn good() -> Evidence {
    Evidence {
        threads: vec![
            ThreadEvidence {
                cpu_share: 0.5,
                ..ThreadEvidence::default()
            };
            2
        ],
        connections_asked: 100,
        connections_achieved: 100,
        fairness: Some(0.99),
        requests_sent: 1000,
        responses: 1000,
        is_count_consistent: true,
        duration_s: 10.0,
        response_mean_us: Some(10_000.0),
        ..Evidence::default()
    }
}

/// The same in an open loop that kept its rate.
fn paced() -> Evidence {
    Evidence {
        rate_asked: Some(1000.0),
        rate_achieved: 999.0,
        // Send lag of a server that stalled: lateness is no reason, because response times include it.
        send_lag_p99_us: Some(1e6),
        ..good()
    }
}

fn only_reason(evidence: &Evidence) -> (State, String) {
    let verdict = Verdict::of(evidence);
    assert_eq!(verdict.reasons.len(), 1, "{verdict}");
    assert_eq!(verdict.state, verdict.reasons[0].state);
    (verdict.state, verdict.reasons[0].what.clone())
}

#[test]
fn excess_bytes_are_suspect_or_invalid() {
    for (unasked, state) in [
        (1, State::Suspect),
        (500, State::Suspect),
        (501, State::Invalid),
    ] {
        let found = only_reason(&Evidence { unasked, ..good() });
        assert_eq!(found.0, state, "{unasked}");
        assert!(found.1.contains("more bytes"), "{}", found.1);
    }
}

#[test]
fn failed_and_false_responses_worsen_verdict() {
    for (false_responses, failed_responses, expected) in [
        (1, 0, Some(State::Suspect)),
        (500, 0, Some(State::Suspect)),
        (501, 0, Some(State::Invalid)),
        (0, 10, None),
        (0, 11, Some(State::Suspect)),
        (0, 501, Some(State::Invalid)),
    ] {
        let evidence = Evidence {
            false_responses,
            failed_responses,
            ..good()
        };
        let verdict = Verdict::of(&evidence);
        let reason = verdict.reasons.first();
        assert_eq!(reason.map(|reason| reason.state), expected, "{verdict}");
        if let Some(reason) = reason {
            assert!(reason.what.starts_with("responses that "), "{verdict}");
        }
    }
}

#[test]
fn unmeasured_run_is_invalid() {
    for count in [0, 5] {
        let found = only_reason(&Evidence {
            requests_sent: count,
            responses: count,
            measured: Some(0),
            response_mean_us: None,
            ..good()
        });
        assert_eq!(found, (State::Invalid, "nothing was measured".to_owned()));
    }
    let under_way = Evidence {
        response_mean_us: None,
        ..good()
    };
    assert_eq!(Verdict::of(&under_way).state, State::Valid);
}

#[test]
fn good_run_is_valid() {
    for evidence in [good(), paced()] {
        let verdict = Verdict::of(&evidence);
        assert_eq!((verdict.state, verdict.reasons.len()), (State::Valid, 0));
        assert_eq!(verdict.to_string(), "verdict      VALID\n");
    }
}

#[test]
fn busy_thread_invalidates_open_loop_run() {
    let full = |mut evidence: Evidence, share: f64| {
        evidence.threads[1].cpu_share = share;
        evidence
    };
    for (evidence, state) in [
        (full(good(), 0.99), State::Suspect),
        (full(good(), 0.90), State::Valid),
        (full(paced(), 0.99), State::Invalid),
        (full(paced(), 0.90), State::Suspect),
        (full(paced(), 0.70), State::Valid),
    ] {
        assert_eq!(Verdict::of(&evidence).state, state, "{evidence:?}");
    }
    let short = Evidence {
        duration_s: 0.1,
        ..full(good(), 1.0)
    };
    assert_eq!(Verdict::of(&short).state, State::Valid, "mostly connecting");
}

#[test]
fn each_exceeded_limit_has_its_reason() {
    let one = |change: fn(&mut Evidence)| {
        let mut evidence = paced();
        change(&mut evidence);
        only_reason(&evidence)
    };
    type Change = fn(&mut Evidence);
    let part = |percentile, response_us, own_us| GeneratorShare {
        percentile,
        response_us,
        own_us,
    };
    let with = |own| Evidence {
        own: vec![own],
        ..good()
    };
    for (own, state) in [
        (part(50.0, 1000.0, 600.0), Some(State::Invalid)),
        (part(50.0, 1000.0, 300.0), Some(State::Suspect)),
        (part(99.0, 1000.0, 900.0), Some(State::Suspect)),
        // Shares of a short time such as a wake-up, and small shares.
        (part(50.0, 100.0, 90.0), None),
        (part(99.9, 100_000.0, 9000.0), None),
    ] {
        let verdict = Verdict::of(&with(own));
        assert_eq!(verdict.reasons.first().map(|reason| reason.state), state);
    }
    let cases: [(Change, State, &str); 22] = [
        (
            |e| e.start_late_s = Some(0.02),
            State::Suspect,
            "started after",
        ),
        (|e| e.is_count_consistent = false, State::Invalid, "counts"),
        (|e| e.missed = 200, State::Invalid, "never sent"),
        (|e| e.rate_achieved = 900.0, State::Suspect, "per second"),
        (
            |e| e.threads[0].run_delay_share = 0.3,
            State::Suspect,
            "waited for a CPU",
        ),
        (
            |e| e.threads[0].run_delay_share = 0.67,
            State::Invalid,
            "waited for a CPU",
        ),
        (
            |e| e.threads[0].stalled_share = 0.03,
            State::Suspect,
            "was stalled",
        ),
        (
            |e| e.threads[0].stalled_share = 0.2,
            State::Invalid,
            "was stalled",
        ),
        (
            |e| e.responses = 0,
            State::Invalid,
            "no response was received",
        ),
        (
            |e| e.answered_until_s = Some(3.2),
            State::Invalid,
            "stopped responding",
        ),
        (
            |e| e.silent_s = 2.0,
            State::Suspect,
            "did not respond for a while",
        ),
        (|e| e.failures = 20, State::Suspect, "failed"),
        (|e| e.failures = 2000, State::Invalid, "failed"),
        (|e| e.unfinished = 230, State::Invalid, "without a response"),
        (
            |e| (e.unfinished, e.longest_open) = (230, Some(0.9)),
            State::Suspect,
            "without a response",
        ),
        (|e| e.resent = 20, State::Suspect, "sent again"),
        (
            |e| (e.resent, e.refused) = (220, 200),
            State::Suspect,
            "sent again",
        ),
        (
            |e| e.connections_achieved = 90,
            State::Suspect,
            "open at the same time",
        ),
        (|e| e.no_local_port = 1, State::Suspect, "local port"),
        (|e| e.fairness = Some(0.3), State::Suspect, "Jain"),
        (|e| e.steal_share = Some(0.1), State::Suspect, "hypervisor"),
        (|e| e.throttled_s = Some(1.0), State::Suspect, "quota"),
    ];
    for (change, state, part) in cases {
        let (found, what) = one(change);
        assert_eq!(found, state, "{what}");
        assert!(what.contains(part), "{what}");
    }
    let lossy = Evidence {
        retransmits: Some(50),
        segments_out: Some(10_000),
        ..paced()
    };
    assert!(only_reason(&lossy).1.contains("retransmitted"));
}

#[test]
fn resent_requests_keep_run_valid() {
    let mut evidence = good();
    (evidence.resent, evidence.refused) = (500, 500);
    assert_eq!(Verdict::of(&evidence).state, State::Valid);
}

#[test]
fn context_switches_and_late_responses_keep_run_valid() {
    let mut evidence = good();
    evidence.threads[0].involuntary_switches = 99_999;
    evidence.threads[0].longest_turn_us = 30_000.0;
    evidence.threads[0].run_delay_share = 0.1;
    assert_eq!(Verdict::of(&evidence).state, State::Valid);
    // The times of late responses are known.
    (evidence.unfinished, evidence.late) = (230, 230);
    assert_eq!(Verdict::of(&evidence).state, State::Valid);
}

#[test]
fn run_delay_is_weighed_against_response_time() {
    // One request of 1 ms per second, and a thread that waited for 0.2 % of the time.
    let mut evidence = Evidence {
        rate_asked: Some(1.0),
        rate_achieved: 1.0,
        responses: 10,
        requests_sent: 10,
        measured: Some(10),
        response_mean_us: Some(1_000.0),
        own_mean_us: Some(50.0),
        ..paced()
    };
    evidence.duration_s = 10.0;
    evidence.threads[0].run_delay_share = 0.002;
    assert_eq!(Verdict::of(&evidence).state, State::Valid);
    evidence.own_mean_us = Some(600.0);
    assert_eq!(Verdict::of(&evidence).state, State::Invalid);
}

#[test]
fn unexpected_error_statuses_are_suspect() {
    let mut evidence = good();
    evidence.unaccepted = evidence.responses / 2;
    let verdict = Verdict::of(&evidence);
    assert_eq!(verdict.state, State::Suspect);
    assert!(verdict.reasons[0].remedy.contains("--expect-status"));
}

#[test]
fn unexpected_responses_are_suspect() {
    for (unexpected, state) in [
        (0, State::Valid),
        (10, State::Valid),
        (11, State::Suspect),
        (1_000, State::Suspect),
    ] {
        let verdict = Verdict::of(&Evidence {
            unexpected,
            ..good()
        });
        assert_eq!(verdict.state, state, "{unexpected}");
    }
}

#[test]
fn worst_reason_is_first() {
    let evidence = Evidence {
        fairness: Some(0.1),
        is_count_consistent: false,
        ..good()
    };
    let verdict = Verdict::of(&evidence);
    assert_eq!(verdict.state, State::Invalid);
    let states: Vec<State> = verdict.reasons.iter().map(|reason| reason.state).collect();
    assert_eq!(states, [State::Invalid, State::Suspect]);
}

#[test]
fn in_flight_requests_are_not_missed() {
    let evidence = Evidence {
        rate_asked: Some(10.0),
        rate_achieved: 5.0,
        duration_s: 10.0,
        ..paced()
    };
    // 100 connections, and 100 requests in total.
    assert_eq!(Verdict::of(&evidence).state, State::Valid);
}

#[test]
fn states_are_lower_case_in_json() {
    let verdict = Verdict::of(&Evidence {
        no_local_port: 3,
        ..good()
    });
    let json = serde_json::to_value(&verdict).unwrap();
    assert_eq!(json["state"], "suspect");
    assert_eq!(json["reasons"][0]["measured"], "3");
    assert_eq!(serde_json::from_value::<Verdict>(json).unwrap(), verdict);
}
