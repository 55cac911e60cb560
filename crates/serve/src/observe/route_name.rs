//! What routes are called, where there is one line for each.

use std::collections::HashMap;

use onrush_config::plan::{Host, PathMatch, Route, Scheme, When};

/// The longest name; longer ones are cut.
const NAME_MAX: usize = 120;

/// Their names, in their order: host and path as they are conditions, with the methods and the scheme in front and listeners behind. Of routes that
/// these do not tell apart the second one ends with `#2`, and so on.
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

fn name(when: &When) -> String {
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
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::plan::Action;

    #[test]
    fn names_tell_routes_apart() {
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
