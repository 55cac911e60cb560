//! Access rules of a route: networks, rates and passwords.

use toml::Spanned;
use toml::de::DeValue;

use super::kinds::{parse_in_place, read_networks};
use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::{Access, BasicAuth, Rate, RateKey, RateLimit};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{as_text, entries_in_order, parsed, report_kind};
use crate::value::{self, Invalid};

pub(super) fn read_access(route: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Access {
    let allow = read_networks(route, "allow", findings).unwrap_or_default();
    let deny = read_networks(route, "deny", findings).unwrap_or_default();
    if !allow.is_empty() && deny.contain_all(&allow) {
        findings.warning(
            route.place("deny"),
            "deny is checked first and refuses every client that allow admits",
        );
    }
    Access {
        allow,
        deny,
        rate_limit: read_rate_limit(route, findings),
        basic_auth: read_basic_auth(route, findings),
    }
}

const RATE: Kind<Rate> = Kind {
    expected: "a rate such as \"100/s\", \"1k/m\" or \"10/h\"",
    parse: value::parse_rate,
};

const RATE_KEY: Kind<RateKey> = Kind {
    expected: "\"address\", \"header:NAME\" or \"route\"",
    parse: |text| {
        if let Some(name) = text.strip_prefix("header:") {
            return value::parse_field_name(name).map(RateKey::Header);
        }
        // The second entry is only for the error message: header names are parsed above.
        let known = [
            ("address", RateKey::Address),
            ("header:NAME", RateKey::Address),
            ("route", RateKey::Route),
        ];
        value::parse_name("key to count by", text, &known)
    },
};

fn read_rate_limit(route: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<RateLimit> {
    const EXPECTED: &str =
        "a rate such as \"100/s\", or a table such as { requests = \"100/s\", key = \"address\" }";
    let value = route.value("rate_limit")?;
    if value.get_ref().is_str() {
        return Some(RateLimit {
            key: RateKey::Address,
            requests: Some(parse_in_place(value, RATE, findings)?),
            concurrent: None,
        });
    }
    let keys = Keys::new(&["requests", "burst", "concurrent", "key"]);
    let section = Section::of("rate_limit", value, EXPECTED, keys, findings)?;
    if !section.is_present_or_misspelt("requests") && !section.is_present_or_misspelt("concurrent")
    {
        findings.error(
            section.span(),
            "rate_limit limits nothing: expected requests such as \"100/s\", or concurrent such as 10",
        );
    }
    if !section.is_present_or_misspelt("requests") {
        section.report_conflict(&["burst"], "goes with requests, which is missing", findings);
    }
    let mut requests = section.read("requests", RATE, findings);
    let burst = section.count("burst", 0..=limits::RATE_MAX, findings);
    if let (Some(rate), Some(burst)) = (&mut requests, burst) {
        rate.burst = burst;
    }
    let concurrent = section.count("concurrent", 1..=limits::RATE_MAX, findings);
    Some(RateLimit {
        key: section
            .read("key", RATE_KEY, findings)
            .unwrap_or(RateKey::Address),
        requests,
        concurrent,
    })
}

fn read_basic_auth(route: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<BasicAuth> {
    const EXPECTED: &str = "a table such as { file = \"htpasswd\" }";
    const REALM: Kind<String> = Kind {
        expected: "text such as \"staff only\"",
        parse: |text| {
            if text.is_empty()
                || text.contains(|letter: char| letter.is_control() || matches!(letter, '"' | '\\'))
            {
                return Err(Invalid::new(format!(
                    "{text:?} cannot be a realm: expected text without quotes, backslashes and control characters"
                )));
            }
            Ok(text.to_owned())
        },
    };
    let value = route.value("basic_auth")?;
    let keys = Keys::new(&["realm", "users", "file"]);
    let section = Section::of("basic_auth", value, EXPECTED, keys, findings)?;
    if !section.is_present_or_misspelt("users") && !section.is_present_or_misspelt("file") {
        findings.error(
            section.span(),
            "basic_auth has no users: expected users = { NAME = \"HASH\" }, or file = \"htpasswd\"",
        );
    }
    Some(BasicAuth {
        realm: section
            .read("realm", REALM, findings)
            .unwrap_or_else(|| limits::REALM_DEFAULT.to_owned()),
        users: read_users(&section, findings),
        file: section.path("file", "a file such as \"htpasswd\"", findings),
    })
}

fn read_users(auth: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Vec<(String, String)> {
    const EXPECTED: &str = "a table such as { NAME = \"$2y$10$…\" }";
    let Some(value) = auth.value("users") else {
        return Vec::new();
    };
    let Some(table) = value.get_ref().as_table() else {
        auth.report_kind("users", EXPECTED, findings);
        return Vec::new();
    };
    if table.is_empty() {
        let message = format!("users in basic_auth is empty: expected {EXPECTED}");
        findings.error(value.span(), message);
    }
    let mut users = Vec::new();
    for (name, value) in entries_in_order(table) {
        let name = parsed(&name, parse_user, findings);
        users.extend(name.zip(read_hash(value, findings)));
    }
    users
}

fn read_hash(value: &Spanned<DeValue<'_>>, findings: &mut Diagnostics<'_>) -> Option<String> {
    let Some(hash) = as_text(value) else {
        report_kind(
            "a password's hash",
            value,
            "text such as \"$2y$10$…\"",
            findings,
        );
        return None;
    };
    parsed(&hash, value::check_password_hash, findings)?;
    Some(hash.into_inner())
}

/// User names must not contain a colon, which ends the name in credentials (RFC 7617, section 2).
fn parse_user(name: &str) -> Result<String, Invalid> {
    if name.is_empty() || name.contains(|letter: char| letter == ':' || letter.is_control()) {
        return Err(Invalid::new(format!(
            "{name:?} is not a user's name: it cannot be empty or contain a colon"
        )));
    }
    Ok(name.to_owned())
}
