//! Gives expressions of Rust's `regex` the meaning that they have in nginx's PCRE.
//!
//! PCRE matches bytes, its `$` also matches before a final line break, and it has look-ahead; `regex` differs in all
//! three.

/// Literals of a look-ahead after all of its alternatives are multiplied out.
const LITERALS_MAX: usize = 64;

/// The expression with the meaning of PCRE: it matches bytes, and `$` also matches before a final line break.
pub(crate) fn with_pcre_semantics(pattern: &str) -> String {
    in_bytes(&with_last_line_break(pattern))
}

/// The expression in which `$` also matches before a final line break.
fn with_last_line_break(pattern: &str) -> String {
    with_end(pattern, &["$"], "\\n?$")
}

/// Turns an expression for a host name into one for the field `Host`: a trailing dot and a port may follow the name.
pub(crate) fn of_host(pattern: &str) -> String {
    with_end(pattern, &["$", "\\z"], "\\.?(:[0-9]+)?$")
}

/// [`of_host`], ignoring case.
pub(crate) fn of_caseless_host(pattern: &str) -> String {
    let pattern = pattern.trim_start_matches("(?i)");
    format!("(?i){}", of_host(pattern))
}

/// Replaces the anchors in `ends` by `end`.
fn with_end(pattern: &str, ends: &[&str], end: &str) -> String {
    let mut out = String::new();
    let mut letters = PatternTokens::new(pattern);
    while let Some(letter) = letters.next() {
        match letter {
            PatternToken::Outside(text) | PatternToken::Escaped(text) if ends.contains(&text) => {
                match letters.rest().starts_with(['*', '+', '?', '{']) {
                    true => out += &format!("(?:{end})"),
                    false => out += end,
                }
            }
            PatternToken::Outside(text)
            | PatternToken::Escaped(text)
            | PatternToken::Class(text) => out += text,
        }
    }
    out
}

/// The expression that matches bytes, as PCRE does without UTF mode.
pub(crate) fn in_bytes(pattern: &str) -> String {
    let (flags, bare) = match pattern.strip_prefix("(?i)") {
        Some(bare) => ("i", bare),
        None => ("", pattern),
    };
    let counts_bytes = ["(?-u)", "(?i-u)"]
        .iter()
        .any(|flags| pattern.starts_with(flags));
    if counts_bytes || !depends_on_bytes(flags, bare) {
        return pattern.to_owned();
    }
    let mut out = format!("(?{flags}-u)");
    for letter in PatternTokens::new(bare) {
        match letter {
            PatternToken::Outside(text) if !text.is_ascii() => {
                out.extend(text.bytes().map(|byte| format!("\\x{byte:02X}")));
            }
            PatternToken::Outside(text)
            | PatternToken::Escaped(text)
            | PatternToken::Class(text) => out += text,
        }
    }
    out
}

/// Whether the expression matches these bytes.
pub(crate) fn find(pattern: &str, text: &str) -> Result<bool, String> {
    let regex = regex::bytes::Regex::new(&in_bytes(pattern)).map_err(|error| error.to_string())?;
    Ok(regex.is_match(text.as_bytes()))
}

/// Whether the expression is valid and matches these bytes.
pub(crate) fn is_found(pattern: &str, text: &str) -> bool {
    find(pattern, text).unwrap_or(false)
}

/// Whether the result may depend on bytes that are not ASCII.
fn depends_on_bytes(flags: &str, bare: &str) -> bool {
    // The part that `path.rs` writes between a prefix and an expression already matches bytes.
    let bare = bare.replace("(?s-u:.*)", "");
    let is_wide = |escape: &str| {
        let letter = escape.chars().nth(1);
        letter.is_some_and(|letter| matches!(letter, 'b' | 'B' | 'd' | 'D' | 's' | 'S' | 'w' | 'W'))
    };
    let mut groups = bare.match_indices("(?");
    let ignores_case = |(at, _): (usize, &str)| {
        let end = bare[at..].find([')', ':', '<']);
        bare[at..at + end.unwrap_or(0)].contains('i')
    };
    !flags.is_empty()
        || groups.any(ignores_case)
        || PatternTokens::new(&bare).any(|letter| match letter {
            PatternToken::Outside(text) => text == ".",
            PatternToken::Escaped(text) => is_wide(text),
            PatternToken::Class(text) => text.starts_with("[^") || text.contains('\\'),
        })
}

/// The text that may follow a look-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterLookAhead {
    Anything,
    /// The rest of the last line.
    LastLine,
}

/// The same expression with a negative look-ahead at its end, such as `/\.(?!well-known/)`, replaced by alternatives.
/// None if there is none, or if it contains more than literals.
pub(crate) fn without_look_ahead(pattern: &str) -> Option<String> {
    if pattern.contains("\\Q") || pattern.contains("(?#") {
        return None;
    }
    let mut letters = PatternTokens::new(pattern);
    let is_begin = |letter: PatternToken<'_>, letters: &PatternTokens<'_>| {
        letter == PatternToken::Outside("(") && letters.rest().starts_with("?!")
    };
    while let Some(letter) = letters.next() {
        if is_begin(letter, &letters) {
            break;
        }
    }
    let behind = letters.rest().strip_prefix("?!")?;
    let before = &pattern[..pattern.len() - behind.len() - 3];
    let length = group_length(behind)?;
    let rest = &behind[length + 1..];
    let literals = literals_of(&behind[..length])?;
    let literals: Vec<&[char]> = literals.iter().map(Vec::as_slice).collect();
    let literals = starting_with_none(&literals, after_look_ahead(rest)?);
    Some(format!("{before}{literals}{rest}"))
}

/// The text that the rest of an expression accepts after a look-ahead; none if it is neither any text nor any line.
fn after_look_ahead(rest: &str) -> Option<AfterLookAhead> {
    let rest = rest.trim_start_matches(')');
    let (rest, has_line) = match rest.strip_prefix(".*") {
        Some(rest) => (rest.trim_start_matches(')'), true),
        None => (rest, false),
    };
    match rest {
        "" => Some(AfterLookAhead::Anything),
        "$" if has_line => Some(AfterLookAhead::LastLine),
        _ => None,
    }
}

/// Length of a group up to its closing parenthesis.
pub(crate) fn group_length(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut length = 0;
    for letter in PatternTokens::new(text) {
        match letter {
            PatternToken::Outside("(") => depth += 1,
            PatternToken::Outside(")") if depth == 0 => return Some(length),
            PatternToken::Outside(")") => depth -= 1,
            _ => {}
        }
        let (PatternToken::Outside(text) | PatternToken::Escaped(text) | PatternToken::Class(text)) =
            letter;
        length += text.len();
    }
    None
}

/// All texts that an expression of literals, alternatives and groups matches; none if it has other syntax.
pub(crate) fn literals_of(pattern: &str) -> Option<Vec<Vec<char>>> {
    let mut all = Vec::new();
    let mut current: Vec<Vec<char>> = vec![Vec::new()];
    let mut letters = PatternTokens::new(pattern);
    while let Some(letter) = letters.next() {
        let more: Vec<Vec<char>> = match letter {
            PatternToken::Outside("|") => {
                all.append(&mut current);
                current.push(Vec::new());
                continue;
            }
            PatternToken::Outside("(") => {
                let rest = letters.rest();
                let length = group_length(rest)?;
                let inside = &rest[..length];
                letters = PatternTokens::new(&rest[length + 1..]);
                literals_of(inside.strip_prefix("?:").unwrap_or(inside))?
            }
            PatternToken::Outside("." | "*" | "+" | "?" | "{" | "^" | "$" | ")")
            | PatternToken::Class(_) => {
                return None;
            }
            PatternToken::Outside(text) => vec![text.chars().collect()],
            PatternToken::Escaped(text) => {
                let letter = text.chars().nth(1)?;
                (!letter.is_ascii_alphanumeric()).then(|| vec![vec![letter]])?
            }
        };
        let both = current.iter().flat_map(|begin| {
            let ends = more.iter();
            ends.map(|end| [begin.as_slice(), end].concat())
        });
        current = both.collect();
        if current.len() + all.len() > LITERALS_MAX {
            return None;
        }
    }
    all.append(&mut current);
    let is_text = |text: &Vec<char>| !text.is_empty() && text.iter().all(char::is_ascii);
    all.iter().all(is_text).then_some(all)
}

/// An expression for the start of every text that does not start with this one.
pub(crate) fn not_starting_with(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    starting_with_none(&[&letters], AfterLookAhead::Anything)
}

/// An expression for the start of every text that starts with none of these.
fn starting_with_none(literals: &[&[char]], rest: AfterLookAhead) -> String {
    let mut firsts: Vec<char> = literals.iter().map(|literal| literal[0]).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let class: String = firsts
        .iter()
        .map(|first| regex::escape(&first.to_string()))
        .collect();
    let mut ways = match rest {
        AfterLookAhead::Anything => vec!["\\z".to_owned(), format!("[^{class}]")],
        AfterLookAhead::LastLine => vec!["$".to_owned(), format!("[^{class}\\n]")],
    };
    for first in firsts {
        let behind = literals.iter().filter(|literal| literal[0] == first);
        let behind: Vec<&[char]> = behind.map(|literal| &literal[1..]).collect();
        if behind.iter().all(|literal| !literal.is_empty()) {
            ways.push(format!(
                "{}{}",
                regex::escape(&first.to_string()),
                starting_with_none(&behind, rest)
            ));
        }
    }
    format!("(?:{})", ways.join("|"))
}

/// Iterator over the letters, escapes and classes of an expression.
pub(crate) struct PatternTokens<'p> {
    rest: &'p str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatternToken<'p> {
    /// A character outside of escapes and classes.
    Outside(&'p str),
    /// A backslash and the character after it.
    Escaped(&'p str),
    /// A whole class with its brackets.
    Class(&'p str),
}

impl<'p> PatternTokens<'p> {
    pub(crate) fn new(pattern: &'p str) -> PatternTokens<'p> {
        PatternTokens { rest: pattern }
    }

    fn rest(&self) -> &'p str {
        self.rest
    }
}

impl<'p> Iterator for PatternTokens<'p> {
    type Item = PatternToken<'p>;

    fn next(&mut self) -> Option<PatternToken<'p>> {
        let first = self.rest.chars().next()?;
        let second = self.rest[first.len_utf8()..]
            .chars()
            .next()
            .map_or(0, char::len_utf8);
        let length = match first {
            '\\' => 1 + second,
            '[' => class_length(self.rest),
            other => other.len_utf8(),
        };
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(match first {
            '\\' => PatternToken::Escaped(text),
            '[' => PatternToken::Class(text),
            _ => PatternToken::Outside(text),
        })
    }
}

/// Length of the class at the start of a text; the whole text if the class is not closed.
fn class_length(text: &str) -> usize {
    let begin = if text.starts_with("[^") { 2 } else { 1 };
    // A closing bracket at the start is a literal.
    let begin = begin + usize::from(text[begin..].starts_with(']'));
    let mut letters = text[begin..].char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '[' if text[begin + at..].starts_with("[:") => {
                let end = text[begin + at..].find(":]").unwrap_or(0);
                letters.nth(end);
            }
            ']' => return begin + at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(pattern: &str, path: &[u8]) -> bool {
        let regex = regex::bytes::Regex::new(pattern).expect(pattern);
        regex.is_match(path)
    }

    #[test]
    fn host_end_anchor_allows_port() {
        const END: &str = "\\.?(:[0-9]+)?$";
        for (pattern, expected) in [
            ("^a\\.org$", format!("(?i)^a\\.org{END}")),
            ("(?i)^a$|^b$", format!("(?i)^a{END}|^b{END}")),
            ("^(a$|b)", format!("(?i)^(a{END}|b)")),
            ("a\\$[]$][^]$]x\\z", format!("(?i)a\\$[]$][^]$]x{END}")),
            ("^a", "(?i)^a".to_owned()),
        ] {
            assert_eq!(of_caseless_host(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn dollar_matches_before_final_newline() {
        for (pattern, expected) in [
            (r"\.php$", r"\.php\n?$"),
            (r"(?i)\.php$", r"(?i-u)\.php\n?$"),
            (r"^/a", r"^/a"),
            (r"^/a.b", r"(?-u)^/a.b"),
            (r"^/[$]\$", r"^/[$]\$"),
            (r"(/|$)", r"(/|\n?$)"),
            (r"^/[^/]+$", r"(?-u)^/[^/]+\n?$"),
            (r"a$?", r"a(?:\n?$)?"),
            (r"^/a/(?s-u:.*)(?:b$)", r"^/a/(?s-u:.*)(?:b\n?$)"),
            ("^/ü.$", r"(?-u)^/\xC3\xBC.\n?$"),
        ] {
            let written = with_pcre_semantics(pattern);
            assert_eq!(written, expected);
            is_in(&written, b"");
        }
        assert!(is_in(&with_pcre_semantics(r"\.php$"), b"/x.php\n"));
        assert!(!is_in(&with_pcre_semantics(r"\.php$"), b"/x.php\n\n"));
        assert!(is_in(&with_pcre_semantics(r"^/.$"), b"/\xff"));
        assert!(!is_in(&with_pcre_semantics(r"^/.$"), b"/\n"));
        assert!(!is_in(&with_pcre_semantics(r"^/\d$"), "/٣".as_bytes()));
    }

    #[test]
    fn negative_look_ahead_becomes_alternatives() {
        for (pattern, taken, left) in [
            (
                r"/\.(?!well-known/)",
                &["/.git", "/.", "/.well", "/.well-knowx", "/a/.ht"][..],
                &["/.well-known/x", "/a"][..],
            ),
            (r"(?i)/\.(?!WELL-known\/).*", &["/.git"], &["/.Well-Known/"]),
            (
                r"^/(?!api|static/(?:a|b))",
                &["/", "/ap", "/static/c", "/x"],
                &["/api", "/apix", "/static/a"],
            ),
            (
                r"^/(?!(a|ab)c).*$",
                &["/a", "/abd", "/b"],
                &["/ac", "/abc/"],
            ),
            (r"(^|/)\.(?!x)", &["/.y", "/a/."], &["/.x"]),
        ] {
            let written = without_look_ahead(pattern).expect(pattern);
            for path in taken {
                assert!(is_in(&written, path.as_bytes()), "{written} {path}");
            }
            for path in left {
                assert!(!is_in(&written, path.as_bytes()), "{written} {path}");
            }
        }
        for pattern in [
            "^/(?!a)b",
            "^/(?!a.b)",
            "^/(?=a)",
            "^/(?!)",
            "^/(?!a",
            "^/(?!a*)",
            "/(?!a)$",
            r"^/[(?!a)]",
            r"^/\(?!a)",
        ] {
            assert_eq!(without_look_ahead(pattern), None, "{pattern}");
        }
    }
}
