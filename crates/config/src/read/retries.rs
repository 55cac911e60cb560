//! `retries`: retry policy of a group.

use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::{Retries, RetryOn};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{as_number, one_or_list, report_kind};
use crate::value;

const KEYS: Keys = Keys::new(&["count", "on", "statuses", "budget"]);

pub(super) fn read_retries(
    group: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Option<Retries> {
    const EXPECTED: &str = "a count such as 2, or a table such as { count = 2, statuses = [503] }";
    let default = Retries::default();
    let value = group.value("retries")?;
    if value.get_ref().is_integer() {
        let count = group.count("retries", 0..=limits::RETRIES_MAX, findings)?;
        return Some(Retries { count, ..default });
    }
    let section = Section::of("retries", value, EXPECTED, KEYS, findings)?;
    let count = section.count("count", 0..=limits::RETRIES_MAX, findings);
    let budget = section.percent("budget", 1..=limits::RETRY_BUDGET_MAX, findings);
    let retries = Retries {
        count: count.unwrap_or(default.count),
        on: read_on(&section, findings).unwrap_or(default.on),
        statuses: read_statuses(&section, findings),
        budget: budget.unwrap_or(default.budget),
    };
    if retries.count == 0 {
        let others = ["on", "statuses", "budget"];
        section.warn_ignored(&others, "when count is 0", findings);
    }
    Some(retries)
}

/// Reads the failures that cause a retry; an empty list if only statuses do.
fn read_on(retries: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<RetryOn> {
    const NONE: RetryOn = RetryOn {
        connect: false,
        reset: false,
        timeout: false,
        invalid_response: false,
    };
    const FAILURE: Kind<RetryOn> = Kind {
        expected: "a list of \"connect\", \"reset\", \"timeout\" and \"garbage\"",
        parse: |text| {
            let known = [
                (
                    "connect",
                    RetryOn {
                        connect: true,
                        ..NONE
                    },
                ),
                (
                    "reset",
                    RetryOn {
                        reset: true,
                        ..NONE
                    },
                ),
                (
                    "timeout",
                    RetryOn {
                        timeout: true,
                        ..NONE
                    },
                ),
                (
                    "garbage",
                    RetryOn {
                        invalid_response: true,
                        ..NONE
                    },
                ),
            ];
            value::parse_name("failure", text, &known)
        },
    };
    let listed = retries.read_list("on", FAILURE, findings)?;
    Some(listed.into_iter().fold(NONE, |all, one| RetryOn {
        connect: all.connect | one.connect,
        reset: all.reset | one.reset,
        timeout: all.timeout | one.timeout,
        invalid_response: all.invalid_response | one.invalid_response,
    }))
}

fn read_statuses(retries: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Vec<u16> {
    const EXPECTED: &str = "a list of statuses such as [502, 503]";
    let Some(value) = retries.value("statuses") else {
        return Vec::new();
    };
    let mut statuses = Vec::new();
    for value in one_or_list(value) {
        let Some(number) = as_number(value) else {
            report_kind("statuses in retries", value, EXPECTED, findings);
            continue;
        };
        match u16::try_from(number) {
            Ok(status) if (400..600).contains(&status) => statuses.push(status),
            _ => findings.error(
                value.span(),
                format!("status {number} is not a failure status: expected 400 to 599"),
            ),
        }
    }
    statuses
}
