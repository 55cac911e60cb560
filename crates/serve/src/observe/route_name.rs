//! Names of routes in metrics and logs.

use std::collections::HashMap;

use onrush_config::plan::{Host, PathMatch, Route, RouteMatch, Scheme, ValueMatch};

/// Maximum length; longer names are cut.
const NAME_MAX: usize = 120;

/// The names of all routes, in order: host and path of the conditions, preceded by methods and scheme, followed by
/// listeners. Other conditions appear without their values, which may be secrets, but with a hash of them, so that a
/// name does not depend on the neighbouring routes. Routes with equal conditions get the suffixes `#2`, `#3` and so on.
pub(crate) fn route_names(routes: &[Route]) -> Vec<String> {
    let mut counts: HashMap<String, u32> = HashMap::new();
    let named = |route: &Route| {
        let name = name(&route.when);
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        match *count {
            1 => name,
            count => format!("{name} #{count}"),
        }
    };
    routes.iter().map(named).collect()
}

fn name(when: &RouteMatch) -> String {
    let methods = match when.methods.is_empty() {
        true => String::new(),
        false => format!("{} ", when.methods.join(",")),
    };
    let scheme = when.scheme.map_or(String::new(), |scheme| {
        format!("{}://", Scheme::text(scheme))
    });
    let hosts: Vec<String> = when.hosts.iter().map(Host::to_string).collect();
    let path = match &when.path {
        PathMatch::Any => "/*".to_owned(),
        PathMatch::Prefix(prefix) => format!("{prefix}*"),
        PathMatch::Exact(exact) => exact.clone(),
        PathMatch::Regex(pattern) => format!(" ~{}", pattern.as_str()),
    };
    let listeners = match when.listeners.is_empty() {
        true => String::new(),
        false => format!(" on {}", when.listeners.join(",")),
    };
    let name = format!("{methods}{scheme}{}{path}{listeners}", hosts.join(","));
    let name = match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    };
    format!("{name}{}", further(when))
}

/// Names of the conditions on headers, query, networks and negations, with a hash of their values.
fn further(when: &RouteMatch) -> String {
    let kinds = [
        ("header", names(&when.headers)),
        ("query", names(&when.query)),
        ("from", String::new()),
        ("not", String::new()),
    ];
    let is_there = [
        !when.headers.is_empty(),
        !when.query.is_empty(),
        when.from.is_some(),
        !when.not.is_empty(),
    ];
    let kinds = kinds.iter().zip(is_there).filter(|(_, is_there)| *is_there);
    let kinds: Vec<String> = kinds
        .map(|((kind, names), _)| format!("{kind} {names}").trim_end().to_owned())
        .collect();
    if kinds.is_empty() {
        return String::new();
    }
    let said = (&when.headers, &when.query, &when.from, &when.not);
    let mut kinds = kinds.join(", ");
    if let Some((end, _)) = kinds.char_indices().nth(NAME_MAX) {
        kinds.truncate(end);
        kinds.push('…');
    }
    format!(" [{kinds}: {:06x}]", number(&format!("{said:?}")))
}

fn names(conditions: &[(String, ValueMatch)]) -> String {
    let names: Vec<&str> = conditions.iter().map(|(name, _)| &**name).collect();
    names.join("+")
}

/// A 24-bit hash that is the same in every process: FNV-1a, folded.
fn number(text: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = text.bytes().fold(0x811c_9dc5, step);
    (hash >> 24) ^ (hash & 0x00ff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::plan::Action;

    #[test]
    fn route_name_is_independent_of_other_routes() {
        let with = |version: &str| {
            let mut route = Route::to(Action::Synthetic);
            let value = ValueMatch::Exact(version.to_owned());
            route.when.headers = vec![("x-token".to_owned(), value)];
            route.when.query = vec![("v".to_owned(), ValueMatch::Present)];
            route
        };
        let (one, two) = (with("secret one"), with("secret two"));
        let names = route_names(&[one.clone(), two.clone()]);
        assert!(
            names[0].starts_with("/* [header x-token, query v: "),
            "{names:?}"
        );
        assert_ne!(names[0], names[1]);
        assert!(!names.concat().contains("secret"), "{names:?}");
        let mut without = with("");
        without.when.headers.clear();
        let around = route_names(&[without, two.clone(), one.clone()]);
        assert_eq!(around[1..], [names[1].clone(), names[0].clone()]);
        // The second of two routes with the same conditions never matches.
        let same = route_names(&[two.clone(), two]);
        assert_eq!(same[1], format!("{} #2", same[0]));
    }

    #[test]
    fn route_names_are_distinct() {
        let route = |hosts: &[&str], path: PathMatch, methods: &[&str]| {
            let mut route = Route::to(Action::Synthetic);
            let host = |name: &&str| Host::Exact((*name).to_owned());
            route.when.hosts = hosts.iter().map(host).collect();
            route.when.path = path;
            route.when.methods = methods.iter().map(|&method| method.to_owned()).collect();
            route
        };
        let mut on_admin = route(&[], PathMatch::Exact("/".into()), &[]);
        on_admin.when.listeners = vec!["admin".to_owned()];
        let long = "x".repeat(200);
        let routes = [
            route(&[], PathMatch::Any, &[]),
            route(
                &["a.example", "b.example"],
                PathMatch::Prefix("/api".into()),
                &["GET", "POST"],
            ),
            route(&[], PathMatch::Exact("/".into()), &[]),
            route(&[], PathMatch::Any, &[]),
            route(&[], PathMatch::Exact(format!("/{long}")), &[]),
            on_admin,
        ];
        assert_eq!(
            route_names(&routes),
            [
                "/*",
                "GET,POST a.example,b.example/api*",
                "/",
                "/* #2",
                &format!("/{}…", &long[..NAME_MAX - 1]),
                "/ on admin",
            ]
        );
    }
}
