//! Steps of the rewrite module (`set`, `if`, `return`, `rewrite`, `break`) and the values of maps that they need.

use super::variable::names;
use super::work::Context;
use crate::source::directive::Directive;

#[derive(Clone, Debug)]
pub(super) enum Step<'a> {
    Do(&'a Directive),
    /// A `rewrite` that may lead to a location that refuses requests.
    Lead(&'a Directive),
    /// An `if`, with the number of acts in its block including its `EndIf`.
    If(&'a Directive, usize),
    EndIf,
    /// A value of a map: index of the map, and index of the value.
    Bind(usize, usize),
}

/// Directives whose arguments may need values of maps.
const BOUND: [&str; 7] = [
    "auth_basic",
    "proxy_pass",
    "grpc_pass",
    "return",
    "rewrite",
    "root",
    "alias",
];

/// Appends the steps of a level to `acts`.
pub(super) fn gather<'a>(level: &'a [Directive], work: &Context<'a>, acts: &mut Vec<Step<'a>>) {
    for directive in level {
        let name = directive.name();
        if BOUND.contains(&name) || name == "set" {
            bind(&directive.arguments().join(" "), work, acts);
        }
        match name {
            "rewrite" => acts.extend([Step::Lead(directive), Step::Do(directive)]),
            "set" | "return" | "break" => acts.push(Step::Do(directive)),
            "if" => {
                let at = acts.len();
                acts.push(Step::If(directive, 0));
                gather(directive.inside(), work, acts);
                acts.push(Step::EndIf);
                acts[at] = Step::If(directive, acts.len() - at - 1);
            }
            _ => {}
        }
    }
}

/// Appends the values of all maps that `text` needs; a map comes before the maps that its values need.
fn bind(text: &str, work: &Context<'_>, acts: &mut Vec<Step<'_>>) {
    for name in names(text) {
        let found = work.maps.iter().position(|map| map.target() == name);
        let is_there = |at: usize| {
            acts.iter()
                .any(|act| matches!(act, Step::Bind(map, _) if *map == at))
        };
        let Some(at) = found.filter(|at| !is_there(*at)) else {
            continue;
        };
        let entries = 0..work.maps[at].len();
        acts.extend(entries.clone().map(|entry| Step::Bind(at, entry)));
        for entry in entries {
            bind(work.maps[at].value(entry), work, acts);
        }
    }
}
