//! Conditions of a route.

use toml::Spanned;

use super::kinds::read_networks;
use crate::address::parse_listen;
use crate::diagnostic::Diagnostics;
use crate::plan::{Address, Host, Listener, PathMatch, RouteMatch, Scheme, ValueMatch};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{as_text, entries_in_order, one_or_list, parsed, read_texts, report_kind};
use crate::value::{self, Invalid};
use onrush_measure::suggestion::suggestion;

pub(super) const HOST: Kind<Host> = Kind {
    expected: "a host name such as \"static.example.com\"",
    parse: value::parse_host,
};

const PATH: Kind<PathMatch> = Kind {
    expected: "a prefix such as \"/p/\" or an exact path such as \"=/p\"",
    parse: value::parse_path,
};

const METHOD: Kind<String> = Kind {
    expected: "a method such as \"GET\", or a list of them",
    parse: value::parse_method,
};

const SCHEME: Kind<Scheme> = Kind {
    expected: "\"http\" or \"https\"",
    parse: |text| {
        let known = [("http", Scheme::Http), ("https", Scheme::Https)];
        value::parse_name("scheme", text, &known)
    },
};

#[derive(Clone, Copy)]
pub(super) enum Listeners<'a> {
    All(&'a [Listener]),
    /// The list is incomplete because of errors.
    Unknown,
}

impl Listeners<'_> {
    pub(super) fn are_unknown(self) -> bool {
        matches!(self, Listeners::Unknown)
    }

    /// Whether certainly no listener is for HTTP.
    pub(super) fn have_no_http(self) -> bool {
        match self {
            Listeners::All(all) => !all.iter().any(Listener::is_http),
            Listeners::Unknown => false,
        }
    }
}

pub(super) fn read_when(
    route: &Section<'_, '_>,
    listeners: Listeners<'_>,
    findings: &mut Diagnostics<'_>,
) -> RouteMatch {
    RouteMatch {
        not: read_not(route, listeners, findings),
        ..read_conditions(route, listeners, findings)
    }
}

fn read_not(
    route: &Section<'_, '_>,
    listeners: Listeners<'_>,
    findings: &mut Diagnostics<'_>,
) -> Vec<RouteMatch> {
    const KEYS: Keys = Keys::new(&[
        "host", "path", "method", "headers", "query", "from", "scheme", "listener",
    ]);
    const EXPECTED: &str = "a table of conditions such as { path = \"/public/\" }";
    let Some(value) = route.value("not") else {
        return Vec::new();
    };
    route.refuse_empty("not", EXPECTED, findings);
    let mut all = Vec::new();
    for value in one_or_list(value) {
        let Some(section) = Section::of("not", value, EXPECTED, KEYS, findings) else {
            continue;
        };
        if section.table().is_empty() {
            let message = format!("not is empty: expected {EXPECTED}");
            findings.error(section.span(), message);
        }
        all.push(read_conditions(&section, listeners, findings));
    }
    all
}

fn read_conditions(
    route: &Section<'_, '_>,
    listeners: Listeners<'_>,
    findings: &mut Diagnostics<'_>,
) -> RouteMatch {
    RouteMatch {
        hosts: route
            .read_nonempty_list("host", HOST, findings)
            .unwrap_or_default(),
        path: route.read("path", PATH, findings).unwrap_or_default(),
        methods: route
            .read_nonempty_list("method", METHOD, findings)
            .unwrap_or_default(),
        headers: read_values(route, "headers", value::parse_field_name, findings),
        query: read_values(route, "query", parse_parameter, findings),
        from: read_networks(route, "from", findings),
        scheme: route.read("scheme", SCHEME, findings),
        listeners: read_listeners(route, listeners, findings),
        not: Vec::new(),
    }
}

fn read_listeners(
    route: &Section<'_, '_>,
    listeners: Listeners<'_>,
    findings: &mut Diagnostics<'_>,
) -> Vec<String> {
    const EXPECTED: &str = "the name or the address of a [[listen]] such as \"127.0.0.1:8080\"";
    route.refuse_empty("listener", EXPECTED, findings);
    let Some(value) = route.value("listener") else {
        return Vec::new();
    };
    let what = format!("listener in {}", route.name());
    let texts = read_texts(&what, value, EXPECTED, findings).unwrap_or_default();
    let Listeners::All(all) = listeners else {
        return Vec::new();
    };
    let mut names: Vec<String> = Vec::new();
    for text in texts {
        match named(&text, all, findings) {
            Some(listen) if !listen.is_http() => {
                findings.error(text.span(), refuse_non_http(&text, listen));
            }
            Some(listen) if !names.contains(&listen.name) => names.push(listen.name.clone()),
            Some(_) => {}
            None => findings.error(text.span(), unknown_listener(text.get_ref(), all)),
        }
    }
    names
}

/// Finds a listener by its name, or by its address in any notation.
fn named<'l>(
    written: &Spanned<String>,
    all: &'l [Listener],
    findings: &Diagnostics<'_>,
) -> Option<&'l Listener> {
    let text = written.get_ref();
    if let Some(named) = all.iter().find(|listen| listen.name == *text) {
        return Some(named);
    }
    let address = match parse_listen(text).ok()?.address {
        Address::Unix(path) => Address::Unix(findings.resolve(&path, &written.span())),
        address @ Address::Tcp(_) => address,
    };
    all.iter().find(|listen| listen.address == address)
}

fn refuse_non_http(text: &Spanned<String>, listen: &Listener) -> String {
    format!(
        "listener {:?} uses protocol {} and has no routes: expected a listener with protocol http",
        text.get_ref(),
        listen.protocol
    )
}

fn unknown_listener(text: &str, all: &[Listener]) -> String {
    let names = || all.iter().map(|listen| &*listen.name);
    if let Some(near) = suggestion(text, names()) {
        return format!("unknown listener {text:?}; nearest: {near:?}");
    }
    let shown: Vec<&str> = names().take(LISTENERS_SHOWN_MAX).collect();
    let rest = match all.len() - shown.len() {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    format!(
        "unknown listener {text:?}; expected one of: {}{rest}",
        shown.join(", ")
    )
}

/// Maximum number of listeners named in an error message.
const LISTENERS_SHOWN_MAX: usize = 10;

fn read_values(
    route: &Section<'_, '_>,
    key: &str,
    parse_name: fn(&str) -> Result<String, Invalid>,
    findings: &mut Diagnostics<'_>,
) -> Vec<(String, ValueMatch)> {
    let Some(value) = route.value(key) else {
        return Vec::new();
    };
    let Some(table) = value.get_ref().as_table() else {
        route.report_kind(key, "a table such as { Name = \"value\" }", findings);
        return Vec::new();
    };
    let mut all = Vec::new();
    for (name, value) in entries_in_order(table) {
        let parsed_name = parsed(&name, parse_name, findings);
        let Some(text) = as_text(value) else {
            let what = format!("{:?} in {key}", name.get_ref());
            let expected =
                "\"value\", \"*\" for any, \"!\" for none, or \"~\" and a regular expression";
            report_kind(&what, value, expected, findings);
            continue;
        };
        let condition = parsed(&text, value::parse_value_match, findings);
        all.extend(parsed_name.zip(condition));
    }
    all
}

fn parse_parameter(name: &str) -> Result<String, Invalid> {
    if name.is_empty() || name.contains(char::is_control) {
        return Err(Invalid::new(format!(
            "{name:?} is not the name of a parameter"
        )));
    }
    Ok(name.to_owned())
}
