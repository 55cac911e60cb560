//! `rewrite`: rewriting of paths by regular expressions.

use toml::Spanned;
use toml::de::DeValue;

use crate::diagnostic::Diagnostics;
use crate::plan::{Pattern, Rewrite, RewritePiece};
use crate::section::{Keys, Kind, Section};
use crate::toml_values::{one_or_list, parsed};
use crate::value::{self, Invalid};

const EXPECTED: &str = "a table such as { match = \"^/users/([0-9]+)$\", to = \"/u/$1\" }";

pub(super) fn read_rewrites(
    route: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> Option<Vec<Rewrite>> {
    let value = route.value("rewrite")?;
    route.refuse_empty("rewrite", EXPECTED, findings);
    let rules = one_or_list(value).into_iter();
    Some(rules.filter_map(|rule| read_rule(rule, findings)).collect())
}

fn read_rule(rule: &Spanned<DeValue<'_>>, findings: &mut Diagnostics<'_>) -> Option<Rewrite> {
    const MATCH: Kind<Pattern> = Kind {
        expected: "a regular expression such as \"^/users/([0-9]+)$\"",
        parse: value::parse_pattern,
    };
    const TO: &str = "a path such as \"/u/$1\"";
    let keys = Keys::new(&["match", "to"]);
    let section = Section::of("rewrite", rule, EXPECTED, keys, findings)?;
    section.require("match", MATCH.expected, findings);
    section.require("to", TO, findings);
    let pattern = section.read("match", MATCH, findings);
    let to = section.text("to", TO, findings)?;
    let pattern = pattern?;
    let target = parsed(&to, |text| parse_target(text, &pattern), findings)?;
    Some(Rewrite {
        path: target.0,
        query: target.1,
        pattern,
    })
}

type Target = (Vec<RewritePiece>, Option<Vec<RewritePiece>>);

/// Parses a path with an optional query, in which `$1` and `${name}` are groups of `pattern`, and `$$` is a `$`.
fn parse_target(text: &str, pattern: &Pattern) -> Result<Target, Invalid> {
    let is_bad = |letter: char| !letter.is_ascii_graphic() || letter == '#';
    if !text.starts_with('/') || text.starts_with("//") || text.contains(is_bad) {
        return Err(Invalid::new(format!(
            "{text:?} is not a path: expected one such as \"/u/$1\", in ASCII and without spaces"
        )));
    }
    value::refuse_dot_segments(text.split('?').next().unwrap_or(text))?;
    match text.split_once('?') {
        None => Ok((parse_pieces(text, pattern)?, None)),
        Some((path, query)) => Ok((
            parse_pieces(path, pattern)?,
            Some(parse_pieces(query, pattern)?),
        )),
    }
}

fn parse_pieces(text: &str, pattern: &Pattern) -> Result<Vec<RewritePiece>, Invalid> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            plain.push('$');
            rest = after;
            continue;
        }
        let (name, after) = split_name(rest).ok_or_else(|| {
            Invalid::new(format!(
                "a \"$\" in {text:?} does not name a group: expected \"$1\" or \"${{name}}\", or \"$$\" for the character"
            ))
        })?;
        let group = pattern.group(name).ok_or_else(|| {
            Invalid::new(format!(
                "no group {name:?} in {:?}: groups are numbered from 1, or named as in \"(?<name>…)\"",
                pattern.as_str()
            ))
        })?;
        if !plain.is_empty() {
            pieces.push(RewritePiece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(RewritePiece::Group(group));
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(RewritePiece::Text(plain));
    }
    Ok(pieces)
}

/// Splits `1/x` or `{name}/x` into the name of the group and the rest.
fn split_name(text: &str) -> Option<(&str, &str)> {
    if let Some(braced) = text.strip_prefix('{') {
        return braced.split_once('}').filter(|(name, _)| !name.is_empty());
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| text.split_at(digits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::TargetPart;

    #[test]
    fn rewrite_substitutes_capture_groups() {
        let pattern = value::parse_pattern("^/(?<kind>[a-z]+)/([^/]*)(/x)?$").expect("a pattern");
        for (to, path, becomes) in [
            ("/fixed", "/a/b", "/fixed"),
            ("/$2/${kind}0", "/a/b", "/b/a0"),
            ("/$1/$2$3", "/a/b/x", "/a/b/x"),
            ("/$1/$2$3", "/a/b", "/a/b"),
            ("/${1}?$$=${2}&y", "/a/b", "/a?$=[b]&y"),
            ("/x?", "/a/b", "/x?"),
            ("/x", "/A/b", "-"),
        ] {
            let (written, query) = parse_target(to, &pattern).expect(to);
            let rule = Rewrite {
                pattern: pattern.clone(),
                path: written,
                query,
            };
            let mut found = String::new();
            let is_found = rule.apply(
                path.as_bytes(),
                |part| path.as_bytes()[part].into(),
                &mut |part, bytes| {
                    let text = str::from_utf8(bytes).expect("it was text");
                    match part {
                        TargetPart::Path | TargetPart::Query => found.push_str(text),
                        TargetPart::QueryValue => found.push_str(&format!("[{text}]")),
                    }
                },
            );
            assert_eq!(
                if is_found { &found } else { "-" },
                becomes,
                "{to} of {path}"
            );
        }
    }
}
