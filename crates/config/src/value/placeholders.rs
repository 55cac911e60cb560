//! Strings with names in braces, with `{{` and `}}` for a literal brace.

use super::Invalid;

/// Splits `text` into pieces: literal text is converted by `literal`, each `{NAME}` by `named`.
///
/// # Errors
/// If a brace has no partner; also the errors of `named`.
pub(super) fn split_placeholders<P>(
    text: &str,
    literal: impl Fn(String) -> P,
    named: impl Fn(&str) -> Result<P, Invalid>,
) -> Result<Vec<P>, Invalid> {
    let mut pieces = Vec::new();
    let mut between = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        between.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            between.push_str(brace);
            rest = after;
            continue;
        }
        if brace == "}" {
            return Err(Invalid::new(format!(
                "{text:?} has a \"}}\" without a matching \"{{\": a literal brace is written \"}}}}\""
            )));
        }
        let Some((name, after)) = after.split_once('}') else {
            return Err(Invalid::new(format!(
                "{text:?} has a \"{{\" without a matching \"}}\": a literal brace is written \"{{{{\""
            )));
        };
        if !between.is_empty() {
            pieces.push(literal(std::mem::take(&mut between)));
        }
        pieces.push(named(name)?);
        rest = after;
    }
    between.push_str(rest);
    if !between.is_empty() {
        pieces.push(literal(between));
    }
    Ok(pieces)
}
