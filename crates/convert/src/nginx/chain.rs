//! Steps of the rewrite module that depend on the steps before them: a `rewrite` without a flag continues with the new
//! path, which Onrush does not compare again, and a `break` skips the responses after it.

use super::destination::{Rewrite, has_access_rules, is_internal, refused, rewritten};
use super::guard::has_refusal;
use super::location::MatchExtent;
use super::map::Map;
use super::redirect::is_url;
use super::step::Step;
use super::variable::{canonical, names};
use super::work::State;
use crate::expression::condition::{Conjunction, Path};
use crate::source::directive::Directive;

/// Whether a step after this `rewrite` may refuse its new path.
pub(super) fn is_refused_later(
    state: &State<'_>,
    maps: &[Map<'_>],
    acts: &[Step<'_>],
    directive: &Directive,
) -> bool {
    let is_it = |act: &Step<'_>| matches!(act, Step::Lead(lead) if lead.number == directive.number);
    let Some(begin) = acts.iter().position(is_it) else {
        return false;
    };
    let mut waiting = vec![begin];
    let mut seen = waiting.clone();
    while let Some(at) = waiting.pop() {
        let Step::Lead(rewrite) = &acts[at] else {
            continue;
        };
        if !continues(rewrite) {
            continue;
        }
        let changed = Changed::by(rewrite);
        for (later, act) in acts.iter().enumerate().skip(at + 1) {
            match act {
                Step::If(condition, _) => {
                    if may_refuse(condition, &acts[later..])
                        && changed.concerns(&condition.arguments().join(" "), maps, acts)
                    {
                        return true;
                    }
                }
                Step::Lead(other) if !seen.contains(&later) && may_match(state, rewrite, other) => {
                    if refused(state, other).is_some() {
                        return true;
                    }
                    seen.push(later);
                    waiting.push(later);
                }
                Step::Lead(_) | Step::Do(_) | Step::EndIf | Step::Bind(..) => {}
            }
        }
    }
    false
}

/// Whether the steps after a `rewrite` are evaluated with its new path.
fn continues(rewrite: &Directive) -> bool {
    is_internal(rewrite) && rewrite.argument(2).is_empty()
}

/// Whether the new path of one `rewrite` may match the expression of another.
fn may_match(state: &State<'_>, one: &Directive, other: &Directive) -> bool {
    let new = Rewrite::new(state, one);
    let Ok(expected) = rewritten(other) else {
        return true;
    };
    match new.path.contains('$') {
        false => expected == Path::Any || expected.holds(&new.path),
        true if new.begin.starts_with('/') => {
            expected.and(&Path::Prefix(new.begin)) != Conjunction::Never
        }
        true => true,
    }
}

/// Whether an `if` decides, with the steps after it, about a refusal.
fn may_refuse(condition: &Directive, acts: &[Step<'_>]) -> bool {
    let is_refusal = |act: &Step<'_>| match act {
        Step::Do(directive) => is_return(directive, Answer::Refusal),
        Step::If(..) | Step::Lead(_) | Step::EndIf | Step::Bind(..) => false,
    };
    let mut inside = condition.inside().iter();
    let decides = inside.any(|rule| matches!(rule.name(), "return" | "break" | "set"));
    decides && acts.iter().any(is_refusal)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Refusal,
    Other,
}

/// Whether a directive ends the request with such a response.
fn is_return(directive: &Directive, answer: Answer) -> bool {
    let status = directive.argument(0).parse::<u16>();
    let is_refusal = matches!(status, Ok(400..=499));
    match directive.name() {
        "return" => is_refusal == (answer == Answer::Refusal),
        "rewrite" => {
            let (replacement, flag) = (directive.argument(1), directive.argument(2));
            let is_redirect = matches!(flag, "redirect" | "permanent") || is_url(replacement);
            answer == Answer::Other && is_redirect
        }
        _ => false,
    }
}

/// Variables that a `rewrite` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changed {
    Path,
    /// The path and the query.
    All,
}

impl Changed {
    fn by(rewrite: &Directive) -> Changed {
        match rewrite.argument(1).contains('?') {
            true => Changed::All,
            false => Changed::Path,
        }
    }

    /// Whether a text depends on a changed variable, directly or by a `map` or `set`.
    fn concerns(self, text: &str, maps: &[Map<'_>], acts: &[Step<'_>]) -> bool {
        let mut waiting = names(text);
        let mut seen: Vec<String> = Vec::new();
        while let Some(name) = waiting.pop() {
            if self.is_changed(&name) {
                return true;
            }
            if seen.contains(&name) {
                continue;
            }
            for act in acts {
                if let Step::Do(set) = act
                    && set.name() == "set"
                    && canonical(set.argument(0)) == name
                {
                    waiting.extend(names(set.argument(1)));
                }
            }
            let named = maps.iter().filter(|map| map.target() == name);
            waiting.extend(named.flat_map(|map| names(map.source())));
            seen.push(name);
        }
        false
    }

    fn is_changed(self, name: &str) -> bool {
        let is_query =
            name.starts_with("arg_") || matches!(name, "args" | "query_string" | "is_args");
        matches!(name, "uri" | "document_uri" | "request_filename")
            || self == Changed::All && is_query
    }
}

/// Whether a `break` in this step (an `if`, or a `rewrite` itself) keeps requests from a response that access rules do
/// not guard: without the `break`, they get that response.
pub(super) fn guards_by_break(state: &State<'_>, acts: &[Step<'_>], directive: &Directive) -> bool {
    let breaks = |rule: &Directive| match rule.name() {
        "break" => true,
        "rewrite" => rule.argument(2) == "break",
        _ => false,
    };
    if !breaks(directive) && !directive.inside().iter().any(breaks) {
        return false;
    }
    let is_it = |act: &Step<'_>| match act {
        Step::Do(step) | Step::If(step, _) => step.number == directive.number,
        Step::Lead(_) | Step::EndIf | Step::Bind(..) => false,
    };
    let after = acts.iter().skip_while(|act| !is_it(act)).skip(1);
    let mut after = after.filter_map(|act| match act {
        Step::Do(step) => Some(*step),
        Step::If(..) | Step::Lead(_) | Step::EndIf | Step::Bind(..) => None,
    });
    after.any(|step| is_return(step, Answer::Other)) && is_guarded(state)
}

/// Whether requests that reach the content may be refused there.
fn is_guarded(state: &State<'_>) -> bool {
    let is_server = state.at == state.locations.len();
    let mut locations = state.locations.iter();
    has_access_rules(&state.scope)
        || is_server
            && locations.any(|location| {
                location.asks == MatchExtent::Wider
                    || has_access_rules(&location.scope)
                    || has_refusal(location.directive)
            })
}
