//! `balance`, `hash` and `sticky`: how a group selects the server for a request.

use std::time::Duration;

use super::kinds::parse_in_place;
use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::{Balance, HashKey, Sticky};
use crate::section::{Keys, Kind, Section};
use crate::value::{self, Invalid};

pub(super) fn read_balance(group: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Balance {
    let key = group.read("hash", HASH_KEY, findings);
    let balance = group.read("balance", BALANCE, findings);
    match balance {
        Some(None) => {
            if !group.is_present_or_misspelt("hash") {
                let message = format!(
                    "balance \"hash\" needs a key: expected hash = {}",
                    HASH_KEY.expected
                );
                findings.error(group.place("balance"), message);
            }
            key.map_or(Balance::RoundRobin, Balance::Hash)
        }
        Some(Some(balance)) => {
            group.report_conflict(
                &["hash"],
                "is only for balance = \"hash\", and balance has another value",
                findings,
            );
            balance
        }
        None => {
            if !group.has("balance") {
                group.report_conflict(
                    &["hash"],
                    "needs balance = \"hash\", which is missing",
                    findings,
                );
            }
            Balance::default()
        }
    }
}

pub(super) fn read_sticky(
    group: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Option<Sticky> {
    const COOKIE: Kind<String> = Kind {
        expected: "the name of a cookie such as \"server\"",
        parse: parse_cookie,
    };
    const AGE: Kind<Duration> = Kind {
        expected: "a duration such as \"8h\"",
        parse: |text| {
            let age = value::parse_duration(text)?;
            if age < Duration::from_secs(1) || age > limits::COOKIE_AGE_MAX {
                return Err(Invalid::new(format!(
                    "an age of {text} is out of range: expected 1s to 9600h"
                )));
            }
            Ok(age)
        },
    };
    let value = group.value("sticky")?;
    if value.get_ref().is_str() {
        let cookie = parse_in_place(value, COOKIE, findings)?;
        return Some(Sticky {
            cookie,
            age_max: None,
        });
    }
    let expected =
        "the name of a cookie, or a table such as { cookie = \"server\", age_max = \"8h\" }";
    let keys = Keys::new(&["cookie", "age_max"]);
    let section = Section::of("sticky", value, expected, keys, findings)?;
    section.require("cookie", COOKIE.expected, findings);
    let age_max = section.read("age_max", AGE, findings);
    Some(Sticky {
        cookie: section.read("cookie", COOKIE, findings)?,
        age_max,
    })
}

const HASH_KEY: Kind<HashKey> = Kind {
    expected: "\"address\", \"path\", \"header:NAME\" or \"cookie:NAME\"",
    parse: |text| {
        if let Some(name) = text.strip_prefix("header:") {
            return value::parse_field_name(name).map(HashKey::Header);
        }
        if let Some(name) = text.strip_prefix("cookie:") {
            return parse_cookie(name).map(HashKey::Cookie);
        }
        // The last two entries are only for the error message: names are parsed above.
        let known = [
            ("address", HashKey::Address),
            ("path", HashKey::Path),
            ("header:NAME", HashKey::Path),
            ("cookie:NAME", HashKey::Path),
        ];
        value::parse_name("key to hash", text, &known)
    },
};

/// `None` for the consistent hash, whose key is a separate setting.
const BALANCE: Kind<Option<Balance>> = Kind {
    expected: "a way to balance such as \"round_robin\"",
    parse: |text| value::parse_name("balance", text, &Balance::NAMED),
};

/// Parses a cookie name, a token (RFC 6265, section 4.1.1).
fn parse_cookie(name: &str) -> Result<String, Invalid> {
    if !value::is_token(name) || name.len() > limits::COOKIE_NAME_MAX {
        return Err(Invalid::new(format!(
            "{name:?} is not the name of a cookie"
        )));
    }
    Ok(name.to_owned())
}
