//! `cors`: cross-origin access to a route's responses.

use std::time::Duration;

use crate::diagnostic::Diagnostics;
use crate::limits;
use crate::plan::{Cors, Edits, ResponseFilter, RouteMatch};
use crate::section::{Keys, Kind, Section};
use crate::value::{self, Invalid};

/// CORS-safelisted methods (the Fetch standard).
const METHODS_DEFAULT: [&str; 3] = ["GET", "HEAD", "POST"];

pub(super) fn read_cors(
    route: &Section<'_, '_>,
    when: &RouteMatch,
    edits: &Edits,
    findings: &mut Diagnostics<'_>,
) -> Option<Cors> {
    const EXPECTED: &str = "a table such as { origins = [\"https://app.example.com\"] }";
    const KEYS: Keys = Keys::new(&[
        "origins",
        "methods",
        "headers",
        "expose",
        "credentials",
        "age_max",
    ]);
    let section = Section::of("cors", route.value("cors")?, EXPECTED, KEYS, findings)?;
    section.require("origins", ORIGIN.expected, findings);
    let origins = section.read_nonempty_list("origins", ORIGIN, findings)?;
    let is_any = origins.iter().any(|origin| origin == "*");
    let credentials = section.truth("credentials", findings).unwrap_or(false);
    if is_any && origins.len() > 1 {
        let message = "origins has \"*\" beside others: expected \"*\" alone, or a list of origins";
        findings.error(section.place("origins"), message);
    }
    if is_any && credentials {
        let message = "credentials cannot be used with origins = \"*\": every site could send requests in the name of its visitors; expected a list of origins";
        findings.error(section.place("credentials"), message);
    }
    let methods = section.read_nonempty_list("methods", METHOD, findings);
    let methods = methods.unwrap_or_else(|| METHODS_DEFAULT.map(str::to_owned).to_vec());
    let cors = Cors {
        origins: (!is_any).then_some(origins),
        methods,
        headers: section
            .read_nonempty_list("headers", NAME, findings)
            .unwrap_or_default(),
        expose: section
            .read_nonempty_list("expose", NAME, findings)
            .unwrap_or_default(),
        credentials,
        age_max: section.read("age_max", AGE, findings),
    };
    check_length(&section, &cors, findings);
    if !when.methods.is_empty() && !when.methods.iter().any(|method| method == "OPTIONS") {
        let message = "cors has no effect on preflight requests: browsers send them with OPTIONS, which is not among the methods of the route";
        findings.warning(route.place("cors"), message);
    }
    if let ResponseFilter::Statuses(_) = edits.response_on {
        let message = "cors applies to responses of every status, but on limits response_headers to some: expected on = \"always\", or no on";
        findings.error(route.place("cors"), message);
    }
    Some(cors)
}

/// Limits the length of lists that each response carries.
fn check_length(section: &Section<'_, '_>, cors: &Cors, findings: &mut Diagnostics<'_>) {
    for (key, names) in [
        ("methods", &cors.methods),
        ("headers", &cors.headers),
        ("expose", &cors.expose),
    ] {
        let bytes: usize = names.iter().map(|name| name.len() + 2).sum();
        if bytes > limits::CORS_LIST_BYTES_MAX {
            let most = limits::CORS_LIST_BYTES_MAX;
            let message = format!("{key} in cors has {bytes} bytes: expected at most {most}");
            findings.error(section.place(key), message);
        }
    }
}

const ORIGIN: Kind<String> = Kind {
    expected: "\"*\", or origins such as \"https://app.example.com\"",
    parse: |text| {
        let lower = text.to_ascii_lowercase();
        let host = ["http://", "https://"]
            .iter()
            .find_map(|scheme| lower.strip_prefix(scheme));
        let is_origin = host.is_some_and(|host| {
            !host.is_empty()
                && host.len() <= limits::HOST_MAX + ":65535".len()
                && host
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte))
        });
        match is_origin || text == "*" {
            true => Ok(lower),
            false => Err(Invalid::new(format!(
                "{text:?} is not an origin: expected \"*\", or a scheme and a host such as \"https://app.example.com\", without a path"
            ))),
        }
    },
};

const METHOD: Kind<String> = Kind {
    expected: "methods such as [\"GET\", \"PUT\"]",
    parse: value::parse_method,
};

const NAME: Kind<String> = Kind {
    expected: "names of fields such as [\"X-Request-Id\"]",
    parse: value::parse_field_name,
};

const AGE: Kind<Duration> = Kind {
    expected: "a duration such as \"10m\"",
    parse: value::parse_duration,
};
