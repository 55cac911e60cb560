//! What was written: the keys and values of a configuration file, each with its place, before
//! anything is made of them. Unknown keys, missing ones and values of the wrong kind end here;
//! whether a value means something does not matter yet.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Findings, Span};
use crate::limits;
use crate::section::{Section, expect_table, first_of, in_order, kind_of, read_texts};

/// A configuration as it was written. What was wrong with it has been reported and is absent, so
/// that the rest can still be looked at.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) threads: Option<Spanned<String>>,
    pub(crate) cpus: Option<Spanned<String>>,
    pub(crate) io: Option<Spanned<String>>,
    pub(crate) listen: Vec<Listen>,
    pub(crate) routes: Vec<Route>,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) timeouts: Vec<(Spanned<String>, Spanned<String>)>,
}

#[derive(Debug)]
pub(crate) struct Listen {
    pub(crate) address: Option<Spanned<String>>,
}

#[derive(Debug)]
pub(crate) struct Route {
    /// Of the header `[[route]]`.
    pub(crate) span: Span,
    pub(crate) host: Option<Spanned<String>>,
    pub(crate) path: Option<Spanned<String>>,
    pub(crate) answers: Vec<Answer>,
}

/// One of the keys that say how a route answers.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) key: Spanned<String>,
    /// Absent when it was wrong.
    pub(crate) kind: Option<AnswerKind>,
}

#[derive(Debug)]
pub(crate) enum AnswerKind {
    Respond {
        status: Option<Spanned<i128>>,
        body: Option<Spanned<String>>,
        headers: Vec<(Spanned<String>, Spanned<String>)>,
    },
    Files {
        root: Option<Spanned<String>>,
        index: Option<Vec<Spanned<String>>>,
        hidden: Option<bool>,
    },
    Synthetic,
    Forward(Spanned<String>),
}

#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: Spanned<String>,
    pub(crate) balance: Option<Spanned<String>>,
    pub(crate) connections_idle_max: Option<Spanned<String>>,
    /// Absent when it was wrong.
    pub(crate) servers: Option<Spanned<Vec<Server>>>,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: Option<Spanned<String>>,
    pub(crate) weight: Option<Spanned<i128>>,
}

/// The keys of `[timeouts]`.
pub(crate) const TIMEOUTS: [&str; 9] = [
    "client_head",
    "client_body",
    "client_idle",
    "client_send",
    "connect",
    "upstream_first_byte",
    "upstream_body",
    "upstream_idle",
    "drain",
];

const ANSWERS: [&str; 4] = ["respond", "files", "synthetic", "forward"];

/// Reads the whole file. Text that is no TOML at all is reported and gives none.
pub(crate) fn read(text: &str, findings: &mut Findings<'_>) -> Option<File> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        for error in errors {
            // The parser puts what it expected on a line of its own.
            let message = error.message().trim().replace('\n', "; ");
            findings.error(
                error.span().unwrap_or_default(),
                format!("not TOML: {message}"),
            );
        }
        return None;
    }
    let section = Section {
        name: "the file",
        span: 0..0,
        table: root.get_ref(),
        keys: &[
            "threads", "cpus", "io", "listen", "route", "upstream", "timeouts",
        ],
        later: &["tls", "log", "admin", "reload"],
    };
    section.report_unknown_keys(findings);
    let is_empty_list = |value: &Spanned<DeValue<'_>>| {
        value
            .get_ref()
            .as_array()
            .is_some_and(|list| list.is_empty())
    };
    if !section.is_meant("route") || section.table.get("route").is_some_and(is_empty_list) {
        findings.error(
            0..0,
            "there is no [[route]]: expected at least one, to say what is answered",
        );
    }
    Some(File {
        threads: section.number_or_text("threads", "\"auto\" or a number such as 4", findings),
        cpus: section.number_or_text("cpus", "a list of CPUs such as \"0,2-3\"", findings),
        io: section.text("io", "\"auto\", \"epoll\" or \"io_uring\"", findings),
        listen: section.tables("listen", limits::LISTEN_MAX, findings, read_listen),
        routes: section.tables("route", limits::ROUTES_MAX, findings, read_route),
        upstreams: read_upstreams(&section, findings),
        timeouts: read_timeouts(&section, findings),
    })
}

fn read_listen(table: &DeTable<'_>, span: Span, findings: &mut Findings<'_>) -> Listen {
    let section = Section {
        name: "[[listen]]",
        span,
        table,
        keys: &["address"],
        later: &["tls", "proxy_protocol"],
    };
    section.report_unknown_keys(findings);
    let expected = "an address such as \"0.0.0.0:80\"";
    section.require("address", expected, findings);
    Listen {
        address: section.text("address", expected, findings),
    }
}

fn read_route(table: &DeTable<'_>, span: Span, findings: &mut Findings<'_>) -> Route {
    let section = Section {
        name: "[[route]]",
        span: span.clone(),
        table,
        keys: &["host", "path", "respond", "files", "synthetic", "forward"],
        later: &["redirect", "method", "headers", "compress", "cache"],
    };
    section.report_unknown_keys(findings);
    // A redirect would be an answer, too, and has been reported as one to come.
    let has_answer = |answer: &&str| section.is_meant(answer);
    if !ANSWERS.iter().any(has_answer) && !table.contains_key("redirect") {
        findings.error(
            section.span.clone(),
            "this [[route]] has no answer: expected exactly one of respond, files, synthetic and forward",
        );
    }
    Route {
        host: section.text(
            "host",
            "a host name such as \"static.example.com\"",
            findings,
        ),
        path: section.text(
            "path",
            "a prefix such as \"/p/\" or an exact path such as \"=/p\"",
            findings,
        ),
        answers: read_answers(&section, findings),
        span,
    }
}

/// In the order written.
fn read_answers(route: &Section<'_, '_>, findings: &mut Findings<'_>) -> Vec<Answer> {
    let written = in_order(route.table)
        .into_iter()
        .filter(|(key, _)| ANSWERS.contains(&key.get_ref().as_str()));
    written
        .map(|(key, value)| {
            let kind = match key.get_ref().as_str() {
                "respond" => read_respond(value, findings),
                "files" => read_files(value, findings),
                "synthetic" => read_synthetic(value, findings),
                _ => route
                    .text(
                        "forward",
                        "a group's name or a URL such as \"http://10.0.0.9:8000\"",
                        findings,
                    )
                    .map(AnswerKind::Forward),
            };
            Answer { key, kind }
        })
        .collect()
}

fn read_respond(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<AnswerKind> {
    let section = Section {
        name: "respond",
        span: value.span(),
        table: expect_table(
            "respond",
            value,
            "{ status = 200, body = \"ok\" }",
            findings,
        )?,
        keys: &["status", "body", "headers"],
        later: &["file"],
    };
    section.report_unknown_keys(findings);
    section.require("status", "a number such as 200", findings);
    Some(AnswerKind::Respond {
        status: section.number("status", "a number such as 200", findings),
        body: section.text("body", "text such as \"ok\"", findings),
        headers: read_headers(&section, findings),
    })
}

/// A table of header fields, the value one text or a list of texts for a field that comes several
/// times.
fn read_headers(
    respond: &Section<'_, '_>,
    findings: &mut Findings<'_>,
) -> Vec<(Spanned<String>, Spanned<String>)> {
    let Some(value) = respond.table.get("headers") else {
        return Vec::new();
    };
    let Some(table) = expect_table(
        "headers",
        value,
        "{ Content-Type = \"text/plain\" }",
        findings,
    ) else {
        return Vec::new();
    };
    let mut headers = Vec::new();
    for (name, value) in in_order(table) {
        let what = format!("header {:?}", name.get_ref());
        let values =
            read_texts(&what, value, "text such as \"text/plain\"", findings).unwrap_or_default();
        headers.extend(values.into_iter().map(|value| (name.clone(), value)));
    }
    headers
}

fn read_files(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<AnswerKind> {
    let section = Section {
        name: "files",
        span: value.span(),
        table: expect_table("files", value, "{ root = \"/srv/www\" }", findings)?,
        keys: &["root", "index", "hidden"],
        later: &["listing", "fallback", "precompressed"],
    };
    section.report_unknown_keys(findings);
    section.require("root", "a directory such as \"/srv/www\"", findings);
    let index = section.table.get("index");
    Some(AnswerKind::Files {
        root: section.text("root", "a directory such as \"/srv/www\"", findings),
        index: index.and_then(|value| {
            read_texts(
                "index in files",
                value,
                "a list of file names such as [\"index.html\"]",
                findings,
            )
        }),
        hidden: section.truth("hidden", findings),
    })
}

fn read_synthetic(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<AnswerKind> {
    match value.get_ref() {
        DeValue::Boolean(true) => Some(AnswerKind::Synthetic),
        _ => {
            findings.error(
                value.span(),
                "synthetic can only be true; leave it out for another answer",
            );
            None
        }
    }
}

fn read_upstreams(file: &Section<'_, '_>, findings: &mut Findings<'_>) -> Vec<Upstream> {
    let Some(value) = file.table.get("upstream") else {
        return Vec::new();
    };
    let DeValue::Table(groups) = value.get_ref() else {
        let place = first_of(value);
        findings.error(
            place,
            "upstream is written [upstream.NAME], with a name that a route can forward to",
        );
        return Vec::new();
    };
    let groups = in_order(groups);
    if let Some((name, _)) = groups.get(limits::UPSTREAMS_MAX) {
        let message = format!(
            "there are {} upstream groups: expected at most {}",
            groups.len(),
            limits::UPSTREAMS_MAX
        );
        findings.error(name.span(), message);
    }
    groups
        .into_iter()
        .take(limits::UPSTREAMS_MAX)
        .filter_map(|(name, value)| read_upstream(name, value, findings))
        .collect()
}

fn read_upstream(
    name: Spanned<String>,
    value: &Spanned<DeValue<'_>>,
    findings: &mut Findings<'_>,
) -> Option<Upstream> {
    let title = format!("[upstream.{}]", name.get_ref());
    let DeValue::Table(table) = value.get_ref() else {
        findings.error(
            name.span(),
            format!(
                "upstream is written [upstream.NAME]: {:?} is {}, not a group",
                name.get_ref(),
                kind_of(value)
            ),
        );
        return None;
    };
    let section = Section {
        name: &title,
        span: value.span(),
        table,
        keys: &["balance", "servers", "connections_idle_max"],
        later: &["health", "tls", "retries", "proxy_protocol"],
    };
    section.report_unknown_keys(findings);
    section.require("servers", "a list such as [\"10.0.0.1:8000\"]", findings);
    Some(Upstream {
        balance: section.text("balance", "\"round_robin\" or \"random\"", findings),
        connections_idle_max: section.number_or_text(
            "connections_idle_max",
            "a count such as 1000",
            findings,
        ),
        servers: read_servers(&section, findings),
        name,
    })
}

fn read_servers(
    group: &Section<'_, '_>,
    findings: &mut Findings<'_>,
) -> Option<Spanned<Vec<Server>>> {
    let value = group.table.get("servers")?;
    let DeValue::Array(array) = value.get_ref() else {
        group.report_kind(
            "servers",
            value,
            "a list such as [\"10.0.0.1:8000\"]",
            findings,
        );
        return None;
    };
    let servers = array
        .iter()
        .filter_map(|value| read_server(value, findings))
        .collect();
    Some(Spanned::new(value.span(), servers))
}

fn read_server(value: &Spanned<DeValue<'_>>, findings: &mut Findings<'_>) -> Option<Server> {
    let expected = "an address such as \"10.0.0.1:8000\"";
    match value.get_ref() {
        DeValue::String(address) => {
            let address = Spanned::new(value.span(), address.to_string());
            Some(Server {
                address: Some(address),
                weight: None,
            })
        }
        DeValue::Table(table) => {
            let section = Section {
                name: "a server",
                span: value.span(),
                table,
                keys: &["address", "weight"],
                later: &["backup", "tls"],
            };
            section.report_unknown_keys(findings);
            section.require("address", expected, findings);
            Some(Server {
                address: section.text("address", expected, findings),
                weight: section.number("weight", "a number such as 2", findings),
            })
        }
        _ => {
            let kind = kind_of(value);
            findings.error(
                value.span(),
                format!("a server is {kind}: expected {expected} or {{ address = \"10.0.0.1:8000\", weight = 2 }}"),
            );
            None
        }
    }
}

fn read_timeouts(
    file: &Section<'_, '_>,
    findings: &mut Findings<'_>,
) -> Vec<(Spanned<String>, Spanned<String>)> {
    let Some(value) = file.table.get("timeouts") else {
        return Vec::new();
    };
    let DeValue::Table(table) = value.get_ref() else {
        findings.error(
            first_of(value),
            "timeouts is written [timeouts], once, with keys such as connect = \"1s\" below",
        );
        return Vec::new();
    };
    let section = Section {
        name: "[timeouts]",
        span: value.span(),
        table,
        keys: &TIMEOUTS,
        later: &["request", "queue", "tunnel", "tls_handshake"],
    };
    section.report_unknown_keys(findings);
    in_order(table)
        .into_iter()
        .filter(|(key, _)| TIMEOUTS.contains(&key.get_ref().as_str()))
        .filter_map(|(key, _)| {
            let value = section.text(key.get_ref(), "a duration such as \"10s\"", findings)?;
            Some((key, value))
        })
        .collect()
}
