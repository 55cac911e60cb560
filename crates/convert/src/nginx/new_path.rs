//! The path of forwarded requests after a `rewrite`.

use super::variable::names;
use super::work::{Context, State};
use crate::expression::condition::Path;
use crate::expression::decide::Flow;
use crate::expression::dialect::translate;
use crate::expression::pattern::{PrefixPattern, prefix_pattern};
use crate::expression::pcre::with_pcre_semantics;
use crate::source::directive::Directive;

/// Handles `rewrite /a(.*) $1` in `location /a/`, which removes the start of the path.
fn without_beginning(directive: &Directive, state: &State<'_>) -> Option<(String, String)> {
    let Path::Prefix(location) = &state.captured.as_ref()?.path else {
        return None;
    };
    let pattern = directive.argument(0).trim_start_matches('^');
    let begin = match prefix_pattern(&format!("^{pattern}"))? {
        PrefixPattern {
            path: Path::Prefix(begin),
            captured: Some(captured),
        } if captured.is_empty() => begin,
        _ => return None,
    };
    // All paths of the location start with this, and the rest starts with a slash.
    let rest = location.strip_prefix(begin.as_str())?;
    let is_whole = directive.argument(1) == "$1" && rest.starts_with('/');
    is_whole.then(|| (location.clone(), rest.to_owned()))
}

/// Applies a `rewrite` to the path of forwarded requests.
pub(super) fn moved<'a>(
    work: &mut Context<'a>,
    directive: &'a Directive,
    state: &mut State<'a>,
) -> Flow {
    let replacement = directive.argument(1);
    state.rewrites = Some(directive);
    let target = replacement.strip_suffix("$1");
    let is_plain = |text: &&str| text.starts_with('/') && !text.contains(['$', '?', '#', ' ']);
    let found = prefix_pattern(directive.argument(0)).zip(target.filter(is_plain));
    let found = found.and_then(|(simple, target)| match (simple.path, simple.captured) {
        (Path::Prefix(prefix), Some(begin)) => Some((prefix, format!("{target}{begin}"))),
        _ => None,
    });
    let found = found.or_else(|| without_beginning(directive, state));
    match found {
        Some((prefix, target)) => {
            work.notes.carried(directive);
            state.moved = Some((prefix, target.replace("//", "/")));
            Flow::SkipRest
        }
        None => {
            let is_known = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
            let is_path = replacement.starts_with('/')
                && !replacement.contains(['?', '#', ' '])
                && names(replacement).iter().all(is_known);
            let pattern = match is_path {
                true => translate(directive.argument(0)),
                false => {
                    Err("Onrush can only build a path from groups, without a query".to_owned())
                }
            };
            match pattern {
                Ok(pattern) => {
                    state.rewritten = Some((with_pcre_semantics(&pattern), replacement.to_owned()));
                    work.notes.carried(directive);
                }
                Err(why) => work.notes.left_out(directive, why),
            }
            Flow::SkipRest
        }
    }
}
