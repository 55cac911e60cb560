//! From sections to a plan: checks types, values, references and contradictions, and reports all errors.

mod access;
mod admin;
mod balance;
mod bypassed_routes;
mod cache_control;
mod clients;
mod compress;
mod condition;
mod cors;
mod defaults;
mod ejection;
mod error_pages;
mod fields;
mod files;
mod group;
mod health;
mod listen;
mod log;
mod moved_match;
mod moved_paths;
mod process;
mod protocol;
mod request_limits;
mod response;
mod retries;
mod rewrite;
mod route;
mod server;
mod status;
mod timeouts;
mod tracing;
mod unreachable;
mod upstream_headers;
mod upstream_protocol;
mod upstream_tls;

mod kinds;

use toml::Spanned;

use self::condition::Listeners;
use self::defaults::Defaults;
use self::kinds::read_networks;
use self::unreachable::ListenerSchemes;
use crate::diagnostic::Diagnostics;
use crate::merge::merged;
use crate::plan::{Forwarded, ForwardingFields, Listener, Plan, Scheme, Threads};
use crate::section::{Keys, Kind, Section};
use crate::sources::Sources;
use crate::value;

const FILE: Keys = Keys {
    known: &[
        "include",
        "threads",
        "cpus",
        "io",
        "accept",
        "busy_poll",
        "listen",
        "route",
        "upstream",
        "timeouts",
        "forwarded",
        "compress",
        "admin",
        "log",
        "tracing",
        "request_body_max",
        "error_pages",
        "cache_control",
        "upstream_headers",
        "clients",
        "process",
        "request_head_max",
        "request_fields_max",
        "request_target_max",
    ],
    of_other_versions: &[("reload", "is not supported yet in this version")],
};

/// Reads the plan; valid only if `findings` has no errors. `None` if a file is missing or not valid TOML.
pub(crate) fn read(sources: &Sources, findings: &mut Diagnostics<'_>) -> Option<Plan> {
    let merged = merged(sources);
    for (span, message) in &sources.warnings {
        findings.warning(span.clone(), message);
    }
    for (span, message) in merged.wrong {
        findings.error(span, message);
    }
    if !merged.is_whole {
        return None;
    }
    let file = Section::open("the file", 0..0, &merged.table, FILE, findings);
    let mut groups = group::read_groups(&file, findings);
    let defaults = Defaults::read(&file, findings);
    let errors_before = findings.errors();
    let listen = listen::read_listen(&file, findings);
    let listeners = match findings.errors() == errors_before {
        true => Listeners::All(&listen),
        false => Listeners::Unknown,
    };
    let forwarded = read_forwarded(&file, findings).unwrap_or_default();
    let spoken = schemes(&file, &listen, &forwarded);
    let conditions = (listeners, spoken.as_ref());
    let routes = route::read_routes(&file, &defaults, conditions, &mut groups, findings);
    groups.warn_of_unused(&routes, findings);
    let (access_log, error_log) = log::read_log(&file, findings);
    let admin = admin::read_admin(&file, &listen, findings).unwrap_or_default();
    let plan = Plan {
        threads: file
            .read_number("threads", THREADS, findings)
            .unwrap_or_default(),
        cpus: file.read_number("cpus", CPUS, findings),
        io: file.read("io", IO, findings).unwrap_or_default(),
        accept: file.read("accept", ACCEPT, findings).unwrap_or_default(),
        busy_poll: file.truth("busy_poll", findings).unwrap_or(false),
        listen,
        routes,
        upstreams: groups.into_upstreams(),
        forwarded,
        request_body_max: defaults.request_body_max,
        request_limits: request_limits::read_request_limits(&file, findings),
        clients: clients::read_clients(&file, findings),
        error_pages: defaults.error_pages,
        timeouts: defaults.timeouts,
        admin,
        process: process::read_process(&file, findings),
        access_log,
        error_log,
        tracing: tracing::read_tracing(&file, findings),
    };
    warn_of_shared_cpus(&file, &plan, findings);
    warn_of_taken_cpus(&file, &plan, findings);
    Some(plan)
}

/// Schemes of each listener; `None` if they are not certain: flags may add listeners if the file has none, and trusted
/// proxies may have received either.
fn schemes(
    file: &Section<'_, '_>,
    listen: &[Listener],
    forwarded: &Forwarded,
) -> Option<ListenerSchemes> {
    let is_known = file.has("listen") && forwarded.trust.is_empty();
    let of_listen = |listen: &Listener| {
        let schemes = match (&listen.tls, &listen.proxy_protocol) {
            (Some(_), _) => &[Scheme::Https][..],
            (None, None) => &[Scheme::Http][..],
            (None, Some(_)) => &[Scheme::Http, Scheme::Https][..],
        };
        (listen.name.clone(), schemes)
    };
    let listen = listen.iter().filter(|listen| listen.is_http());
    is_known.then(|| listen.map(of_listen).collect())
}

const THREADS: Kind<Threads> = Kind {
    expected: "\"auto\" or a number such as 4",
    parse: value::parse_threads,
};

const CPUS: Kind<Vec<usize>> = Kind {
    expected: "a list of CPUs such as \"0,2-3\"",
    parse: value::parse_cpus,
};

const IO: Kind<crate::plan::Io> = Kind {
    expected: "\"auto\", \"epoll\" or \"io_uring\"",
    parse: value::parse_io,
};

const ACCEPT: Kind<crate::plan::Accept> = Kind {
    expected: "\"auto\", \"cpu\" or \"hash\"",
    parse: value::parse_accept,
};

fn read_forwarded(file: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<Forwarded> {
    const EXPECTED: &str = "a table such as { trust = [\"10.0.0.0/8\"], send = \"both\" }";
    const SEND: Kind<(bool, bool)> = Kind {
        expected: "\"x-forwarded\", \"forwarded\", \"both\" or \"none\"",
        parse: |text| {
            let known = [
                ("x-forwarded", (true, false)),
                ("forwarded", (false, true)),
                ("both", (true, true)),
                ("none", (false, false)),
            ];
            value::parse_name("way to send", text, &known)
        },
    };
    const READ: Kind<ForwardingFields> = Kind {
        expected: "\"x-forwarded\" or \"forwarded\"",
        parse: |text| {
            let known = [
                ("x-forwarded", ForwardingFields::XForwarded),
                ("forwarded", ForwardingFields::Forwarded),
            ];
            value::parse_name("kind of fields", text, &known)
        },
    };
    let keys = Keys::new(&["trust", "read", "send"]);
    let value = file.value("forwarded")?;
    let section = Section::of("[forwarded]", value, EXPECTED, keys, findings)?;
    let mut forwarded = Forwarded::default();
    if let Some((x_forwarded, standard)) = section.read("send", SEND, findings) {
        forwarded.x_forwarded = x_forwarded;
        forwarded.forwarded = standard;
    }
    forwarded.read = section.read("read", READ, findings).unwrap_or_default();
    forwarded.trust = read_networks(&section, "trust", findings).unwrap_or_default();
    Some(forwarded)
}

fn warn_of_shared_cpus(file: &Section<'_, '_>, plan: &Plan, findings: &mut Diagnostics<'_>) {
    let (Threads::Count(threads), Some(cpus)) = (plan.threads, &plan.cpus) else {
        return;
    };
    if threads.get() > cpus.len() {
        let span = file.value("threads").map(Spanned::span).unwrap_or_default();
        findings.warning(
            span,
            format!(
                "{threads} threads share {} CPUs: one thread per CPU is fastest",
                cpus.len()
            ),
        );
    }
}

fn warn_of_taken_cpus(file: &Section<'_, '_>, plan: &Plan, findings: &mut Diagnostics<'_>) {
    if plan.busy_poll && plan.cpus.is_none() && plan.threads == Threads::Auto {
        let why = "busy_poll uses 100 % of every CPU that this process may use: expected cpus or threads as well, to leave CPUs for other programs";
        findings.warning(file.place("busy_poll"), why);
    }
}
