//! Reasons against a run that lie with its requests and responses.

use onrush_measure::units;

use super::reason::{NewReason, Reason, invalid, per_cent, suspect};
use crate::limits::{
    FAILED_SHARE_INVALID, INCOMPLETE_SHARE_INVALID, INCOMPLETE_SHARE_SUSPECT, RESENT_SHARE_MAX,
};
use crate::record::evidence::Evidence;

pub(super) fn counts(evidence: &Evidence) -> Option<Reason> {
    let accounted = evidence.responses + evidence.failures + evidence.unfinished;
    (!evidence.is_count_consistent).then(|| {
        invalid(
            "counts do not add up",
            format!(
                "{} sent; {} with a response, failed or unfinished",
                units::count(evidence.requests_sent),
                units::count(accounted)
            ),
            "equal, and as many values in every histogram".to_owned(),
            "this is a bug in onrush: please report it with the command line",
        )
    })
}

/// A run without any response measured nothing.
pub(super) fn no_response(evidence: &Evidence) -> Option<Reason> {
    (evidence.responses == 0 && evidence.requests_sent > 0).then(|| {
        invalid(
            "no response was received",
            format!(
                "{} sent, {} failed, {} without a response at the end",
                units::count(evidence.requests_sent),
                units::count(evidence.failures),
                units::count(evidence.unfinished)
            ),
            "at least one".to_owned(),
            "the run has no result: test the target manually (over HTTP with curl -v), and check its log",
        )
    })
}

/// A run may end before the first request, or before the measured window.
pub(super) fn measured(evidence: &Evidence) -> Option<Reason> {
    let has_reason = evidence.responses == 0 && evidence.requests_sent > 0;
    (evidence.measured == Some(0) && !has_reason).then(|| {
        invalid(
            "nothing was measured",
            format!(
                "{} sent, {} with a response, all of them before the measurement began",
                units::count(evidence.requests_sent),
                units::count(evidence.responses)
            ),
            "at least one response after ramp and warm-up, not counting the excluded first ones"
                .to_owned(),
            "run for longer (-d), send more requests (-n), or warm up for a shorter time",
        )
    })
}

/// If the target stops responding before the end, rate and latency are undefined from then on.
pub(super) fn silence(evidence: &Evidence) -> Option<Reason> {
    let duration = evidence.duration_s;
    if let Some(until) = evidence.answered_until_s {
        return Some(invalid(
            "the target stopped responding before the end of the run",
            format!("the last response was received after {until:.2} s of {duration:.2} s"),
            "responses until the end".to_owned(),
            "the rate covers the time until then, and the percentiles exclude the rest: check the target",
        ));
    }
    (evidence.silent_s > 0.0).then(|| {
        suspect(
            "the target did not respond for a while",
            format!("only errors for {:.0} s of {duration:.0} s", evidence.silent_s),
            "responses in every second".to_owned(),
            match evidence.rate_asked {
                None => "the rate excludes that time, and closed loops sent nothing meanwhile: check the target",
                Some(_) => "requests scheduled meanwhile were sent late or failed: check the target",
            },
        )
    })
}

/// Requests that got no response leave percentiles as lower bounds.
pub(super) fn failures(evidence: &Evidence) -> Option<Reason> {
    let tried = evidence.responses + evidence.failures;
    let share = evidence.failures as f64 / tried.max(1) as f64;
    without_response(
        share,
        "requests that failed",
        evidence.failures,
        FAILED_SHARE_INVALID,
        "percentiles count each as longer than it had waited: see the errors by kind",
    )
}

/// The excess bytes may have been taken for another response, so responses cannot be matched with certainty.
pub(super) fn unasked(evidence: &Evidence) -> Option<Reason> {
    any_is_suspect(
        evidence,
        "responses with more bytes than they should have",
        evidence.unasked,
        "such bytes may have been parsed as the response to the next request, or over HTTP/2 were missing from one: \
         check what the target sends after a response (over HTTP/1 its Content-Length and chunks: curl -v)",
    )
}

/// If one response belongs to another request, any other may, too.
pub(super) fn false_responses(evidence: &Evidence) -> Option<Reason> {
    any_is_suspect(
        evidence,
        "responses that do not match their requests",
        evidence.false_responses,
        "a value does not belong to its key: another client stores under the same keys (--seed and the sizes must be \
         those used for storing), or the target mixes them up",
    )
}

/// Reason if there is even one such response: suspect, or invalid above a share.
fn any_is_suspect(evidence: &Evidence, what: &str, count: u64, remedy: &str) -> Option<Reason> {
    let share = count as f64 / evidence.responses.max(1) as f64;
    let (judge, bound): (NewReason, String) = match count {
        0 => return None,
        _ if share > FAILED_SHARE_INVALID => {
            let bound = format!("at most {}", per_cent(FAILED_SHARE_INVALID));
            (invalid, bound)
        }
        _ => (suspect, "none".to_owned()),
    };
    let measured = format!("{} ({})", units::count(count), per_cent(share));
    Some(judge(what, measured, bound, remedy))
}

/// Times of error responses are included in the times of all responses.
pub(super) fn failed_responses(evidence: &Evidence) -> Option<Reason> {
    let share = evidence.failed_responses as f64 / evidence.responses.max(1) as f64;
    without_response(
        share,
        "responses that are server errors",
        evidence.failed_responses,
        FAILED_SHARE_INVALID,
        "percentiles include them: see the responses of the target",
    )
}

/// Redirects and error responses are often faster than what the user means to measure.
pub(super) fn unaccepted(evidence: &Evidence) -> Option<Reason> {
    let share = evidence.unaccepted as f64 / evidence.responses.max(1) as f64;
    (share > INCOMPLETE_SHARE_SUSPECT).then(|| {
        suspect(
            "responses with a status of 300 or above, or a code other than OK",
            format!("{} ({})", units::count(evidence.unaccepted), per_cent(share)),
            format!("at most {}", per_cent(INCOMPLETE_SHARE_SUSPECT)),
            "percentiles include them: see the statuses, and accept expected ones with --expect-status, such as --expect-status 200,404 or 2xx,5xx",
        )
    })
}

/// Responses other than expected are not those whose times the user means to measure.
pub(super) fn unexpected(evidence: &Evidence) -> Option<Reason> {
    let share = evidence.unexpected as f64 / evidence.responses.max(1) as f64;
    (share > INCOMPLETE_SHARE_SUSPECT).then(|| {
        suspect(
            "responses other than expected",
            format!("{} ({})", units::count(evidence.unexpected), per_cent(share)),
            format!("at most {}", per_cent(INCOMPLETE_SHARE_SUSPECT)),
            "percentiles include them: see the errors by kind, and correct the target or the expectation \
             (--expect-status, --expect-body, expect, checks of a journey)",
        )
    })
}

pub(super) fn unanswered(evidence: &Evidence) -> Option<Reason> {
    let open = evidence.unfinished.saturating_sub(evidence.late);
    let mut share = open as f64 / evidence.requests_sent.max(1) as f64;
    // A closed loop always leaves one request on each connection. If none has waited longer than the longest response
    // took, they may be as fast: in a short run against a slow target there are few values, but they are right.
    if evidence.longest_open.is_some_and(|longest| longest <= 1.0) {
        share = share.min(INCOMPLETE_SHARE_INVALID);
    }
    without_response(
        share,
        "requests without a response at the end",
        open,
        INCOMPLETE_SHARE_INVALID,
        "percentiles that they could change are printed as lower bounds (≥): measure for longer (-d), and check for \
         requests to which the target never responds",
    )
}

pub(super) fn without_response(
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
    let bound = format!("at most {}", per_cent(INCOMPLETE_SHARE_SUSPECT));
    (share > INCOMPLETE_SHARE_SUSPECT).then(|| suspect(what, measured, bound, remedy))
}

/// Requests sent again over other connections. Refused streams are excluded: they are sent again at once over the same
/// connection, and a server refuses them before the client has received its limit on concurrent streams.
pub(super) fn resent(evidence: &Evidence) -> Option<Reason> {
    let resent = evidence.resent.saturating_sub(evidence.refused);
    let share = resent as f64 / evidence.requests_sent.max(1) as f64;
    (share > RESENT_SHARE_MAX).then(|| {
        suspect(
            "requests sent again",
            format!("{} ({})", units::count(resent), per_cent(share)),
            format!("at most {}", per_cent(RESENT_SHARE_MAX)),
            "the target closed keep-alive connections, and each of these requests waited for a new one: check its \
             keep-alive settings",
        )
    })
}
