//! The locations that a `rewrite` leads to. nginx looks for a location again, and Onrush does not: the request stays in its route.
//! Where such a location refuses requests, the route has to refuse them.

use super::guard::has_refusal;
use super::internal_redirect::{has_same_access, is_open, matching_location};
use super::location::{Location, MatchExtent};
use super::redirect::is_url;
use super::scope::Scope;
use super::variable::expanded;
use super::work::State;
use crate::expression::automaton::matches_same_after;
use crate::expression::condition::{Conjunction, Path};
use crate::expression::decide::Formula;
use crate::expression::dialect;
use crate::expression::pattern::{PrefixPattern, prefix_pattern};
use crate::expression::pcre::with_pcre_semantics;
use crate::source::directive::Directive;

/// A chain of rewrites ends here: nginx responds with 500 after ten.
const CHAIN_MAX: usize = 10;

/// The requests for which a `rewrite` may lead to a location that refuses them. None if no such location refuses more than the
/// route of the request does.
pub(super) fn refused(state: &State<'_>, directive: &Directive) -> Option<Formula> {
    let is_server = state.at == state.locations.len();
    let leads = is_internal(directive) || is_server && directive.argument(2) == "break";
    if !leads {
        return None;
    }
    let rewrite = Rewrite::new(state, directive);
    let from = rewritten_or_more(directive);
    let mut refused = Vec::new();
    for target in rewrite.targets(state) {
        let same = |location: &Location<'_>| rewrite.is_found_before(state, location, &from);
        if refuses(state, target.location, &from, 0) && !target.location.is_some_and(same) {
            refused.push(target.from);
        }
    }
    match &refused[..] {
        [] => None,
        some if some.contains(&None) => Some(Formula::of_path(from)),
        _ => {
            let paths = refused.into_iter().flatten();
            Some(Formula::Any(paths.map(Formula::of_path).collect()))
        }
    }
}

/// The requests that a `rewrite` changes, or more if its expression cannot be matched.
pub(super) fn rewritten_or_more(directive: &Directive) -> Path {
    rewritten(directive).unwrap_or_else(|_| match dialect::wider(directive.argument(0)) {
        Some(wider) => Path::pattern(&wider).unwrap_or(Path::Any),
        None => Path::Any,
    })
}

/// Whether a `rewrite` has nginx look for another location, or for files of another name.
pub(super) fn is_internal(directive: &Directive) -> bool {
    let (replacement, flag) = (directive.argument(1), directive.argument(2));
    !matches!(flag, "break" | "permanent" | "redirect") && !is_url(replacement)
}

/// The paths that a `rewrite` is for.
pub(super) fn rewritten(directive: &Directive) -> Result<Path, String> {
    let pattern = directive.argument(0);
    match prefix_pattern(pattern).map(|simple| simple.path) {
        Some(Path::Prefix(path)) if path == "/" => Ok(Path::Any),
        Some(path) => Ok(path),
        None => Path::from_pcre(pattern),
    }
}

/// Result of a `rewrite`.
pub(super) struct Rewrite {
    /// The new path, without its query; with the variables that are not known.
    pub(super) path: String,
    /// How every new path begins.
    pub(super) begin: String,
    /// The prefix that is replaced by `begin`, if that is all that changes.
    replaced: Option<String>,
}

/// A location that a new path may come to; the server if none takes it.
struct Target<'s, 'a> {
    location: Option<&'s Location<'a>>,
    /// The original paths from which it is reached; all that are rewritten if that is not known.
    from: Option<Path>,
}

impl Rewrite {
    pub(super) fn new(state: &State<'_>, directive: &Directive) -> Rewrite {
        let replacement = expanded(directive.argument(1), &state.constants);
        let path = replacement.split('?').next().unwrap_or_default();
        let literal = path.split('$').next().unwrap_or_default();
        let (mut begin, mut replaced) = (literal.to_owned(), None);
        let group = path.strip_prefix(literal).unwrap_or_default();
        if let Some(PrefixPattern {
            path: Path::Prefix(prefix),
            captured: Some(captured),
        }) = prefix_pattern(directive.argument(0))
            && group == "${1}"
        {
            begin += &captured;
            replaced = Some(prefix);
        }
        Rewrite {
            path: path.to_owned(),
            begin,
            replaced,
        }
    }

    fn targets<'s, 'a>(&self, state: &'s State<'a>) -> Vec<Target<'s, 'a>> {
        if !self.path.contains('$') {
            let taker = matching_location(state, &self.path).map(|(_, location)| location);
            return vec![Target {
                location: taker,
                from: None,
            }];
        }
        let mut targets = Vec::new();
        let mut around: Option<(usize, &Location<'_>)> = None;
        for location in state.locations.iter() {
            match &location.path.path {
                Path::Prefix(path) | Path::Exact(path)
                    if !location.is_expression() && path.starts_with(&self.begin) =>
                {
                    targets.push(self.target(location));
                }
                Path::Prefix(path)
                    if !location.is_expression() && self.begin.starts_with(path.as_str()) =>
                {
                    let length = path.len();
                    around = around.filter(|(longest, _)| *longest >= length);
                    around = around.or(Some((length, location)));
                }
                _ if !location.is_expression() => {}
                path if path.and(&Path::Prefix(self.begin.clone())) == Conjunction::Never => {}
                _ => targets.push(Target {
                    location: Some(location),
                    from: None,
                }),
            }
        }
        let is_whole = |target: &Target<'_, '_>| {
            let path = target.location.map(|location| &location.path.path);
            matches!(path, Some(Path::Prefix(path)) if *path == self.begin)
        };
        if !targets.iter().any(is_whole) {
            targets.push(Target {
                location: around.map(|(_, location)| location),
                from: None,
            });
        }
        targets
    }

    /// A location whose path begins as the new one does.
    fn target<'s, 'a>(&self, location: &'s Location<'a>) -> Target<'s, 'a> {
        let original = |path: &String| {
            let rest = path.strip_prefix(self.begin.as_str())?;
            Some(format!("{}{rest}", self.replaced.as_ref()?))
        };
        let from = match &location.path.path {
            Path::Prefix(path) => original(path).map(Path::Prefix),
            Path::Exact(path) => original(path).map(Path::Exact),
            _ => None,
        };
        Target {
            location: Some(location),
            from,
        }
    }

    /// Whether a location with an expression takes the original path if it takes the new one.
    fn is_found_before(&self, state: &State<'_>, location: &Location<'_>, from: &Path) -> bool {
        if !location.is_expression() || location.asks == MatchExtent::Wider {
            return false;
        }
        let is_it = |other: &Location<'_>| other.directive.number == location.directive.number;
        let at = state.locations.iter().position(is_it);
        let before = &state.locations[..at.unwrap_or_default()];
        let is_earlier = |other: &Location<'_>| other.path.path.and(from) != Conjunction::Never;
        let is_passed = match state.at == state.locations.len() {
            true => !before.iter().any(is_earlier),
            false => at.is_some_and(|at| at < state.at),
        };
        let pattern = with_pcre_semantics(&location.path.path.as_pattern());
        let is_same = match &self.replaced {
            Some(prefix) => matches_same_after(&pattern, prefix, &self.begin),
            // The new path is a part of the original one.
            None => {
                let group = self.path.strip_prefix("${");
                let group = group.and_then(|name| name.strip_suffix('}'));
                let is_group = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
                group.is_some_and(is_group)
                    && is_open(&pattern)
                    && !pattern.contains('^')
                    && !pattern.contains("\\A")
            }
        };
        is_passed && is_same
    }
}

/// Whether a location may refuse requests that the route of the original path lets in.
fn refuses(state: &State<'_>, location: Option<&Location<'_>>, from: &Path, depth: usize) -> bool {
    let Some(location) = location else {
        return is_stricter(state, &state.server, from);
    };
    if location.asks == MatchExtent::Wider
        || has_refusal(location.directive)
        || is_stricter(state, &location.scope, from)
    {
        return true;
    }
    let inside = location.directive.inside().iter();
    let conditional = inside
        .clone()
        .filter(|rule| rule.name() == "if")
        .flat_map(|rule| rule.inside());
    let mut rewrites = inside
        .chain(conditional)
        .filter(|rule| rule.name() == "rewrite" && is_internal(rule));
    depth < CHAIN_MAX
        && rewrites.any(|rule| {
            let targets = Rewrite::new(state, rule).targets(state);
            let mut others = targets.iter().filter_map(|target| target.location);
            others.any(|other| {
                other.directive.number != location.directive.number
                    && refuses(state, Some(other), from, depth + 1)
            })
        })
}

/// Whether the target has access rules and the original path has different ones.
fn is_stricter(state: &State<'_>, target: &Scope<'_>, from: &Path) -> bool {
    if !has_access_rules(target) {
        return false;
    }
    let is_same = |scope: &Scope<'_>| has_same_access(scope, target);
    let is_server = state.at == state.locations.len();
    let mut others = state.locations.iter();
    let is_other = |location: &Location<'_>| {
        location.path.path.and(from) != Conjunction::Never && !is_same(&location.scope)
    };
    !is_same(&state.scope) || is_server && others.any(is_other)
}

/// Whether access rules may refuse requests.
pub(super) fn has_access_rules(scope: &Scope<'_>) -> bool {
    let denies = scope.all_of(&["allow", "deny"]);
    let has_password = !matches!(scope.value("auth_basic"), "" | "off");
    let modules = scope.matching(super::guard::is_access_module);
    has_password
        || denies.iter().any(|rule| rule.name() == "deny")
        || modules.iter().any(|rule| rule.argument(0) != "off")
}
