//! Turns an expression for one part of a field, such as a list element or a cookie, into an expression for the whole
//! field.

use crate::expression::pcre::{PatternToken, PatternTokens};

/// Delimiters of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElementDelimiters<'p> {
    /// Never occurs in a part.
    pub(crate) separator: char,
    /// Put before an expression that starts with `^`; other expressions get `before`.
    pub(crate) begin: &'p str,
    pub(crate) before: &'p str,
    /// Replaces `$` at the end of an expression.
    pub(crate) end: &'p str,
}

impl ElementDelimiters<'_> {
    /// The expression for the whole field; `pattern` must not start with flags. None if a match could extend over more
    /// than one part.
    pub(crate) fn pattern(self, pattern: &str) -> Option<String> {
        let choices = alternatives(pattern);
        let choices = choices.into_iter().map(|choice| self.choice(choice));
        choices
            .collect::<Option<Vec<String>>>()
            .map(|all| all.join("|"))
    }

    fn choice(self, choice: &str) -> Option<String> {
        let (begin, rest) = match choice.strip_prefix('^') {
            Some(rest) => (self.begin, rest),
            None => (self.before, choice),
        };
        let mut letters: Vec<PatternToken<'_>> = PatternTokens::new(rest).collect();
        let is_end = |letter: &PatternToken<'_>| {
            matches!(
                letter,
                PatternToken::Outside("$") | PatternToken::Escaped("\\z")
            )
        };
        let end = match letters.pop_if(|letter| is_end(letter)) {
            Some(_) => self.end,
            None => "",
        };
        let mut part = String::new();
        let mut is_quantifier = false;
        for letter in letters {
            match letter {
                PatternToken::Outside("{") => is_quantifier = true,
                PatternToken::Outside("}") => is_quantifier = false,
                _ => {}
            }
            if !is_quantifier {
                part += &self.letter(letter)?;
            } else if let PatternToken::Outside(text) = letter {
                part += text;
            }
        }
        Some(format!("{begin}(?:{part}){end}"))
    }

    /// A letter of the expression that does not match the separator.
    fn letter(self, letter: PatternToken<'_>) -> Option<String> {
        let separator = self.separator;
        let text = match letter {
            PatternToken::Outside("^" | "$") | PatternToken::Escaped("\\z") => return None,
            PatternToken::Outside(".") => return Some(format!("[^{separator}\\n]")),
            PatternToken::Escaped("\\D") => return Some(format!("[^\\d{separator}]")),
            PatternToken::Escaped("\\S") => return Some(format!("[^\\s{separator}]")),
            PatternToken::Escaped("\\W") => return Some(format!("[^\\w{separator}]")),
            PatternToken::Class(text) => match text.strip_prefix("[^") {
                Some(inside) => return Some(format!("[^{separator}{inside}")),
                None => text,
            },
            PatternToken::Outside(text) | PatternToken::Escaped(text) => text,
        };
        let is_separator = match letter {
            PatternToken::Class(_) => {
                let class = regex::bytes::Regex::new(&format!("(?-u){text}"));
                class
                    .ok()?
                    .is_match(separator.encode_utf8(&mut [0; 4]).as_bytes())
            }
            _ => text.ends_with(separator),
        };
        (!is_separator).then(|| text.to_owned())
    }
}

/// Alternatives of an expression: its parts between each `|` outside of parentheses.
pub(crate) fn alternatives(pattern: &str) -> Vec<&str> {
    let mut choices = Vec::new();
    let (mut depth, mut begin, mut at) = (0_usize, 0, 0);
    for letter in PatternTokens::new(pattern) {
        match letter {
            PatternToken::Outside("(") => depth += 1,
            PatternToken::Outside(")") => depth = depth.saturating_sub(1),
            PatternToken::Outside("|") if depth == 0 => {
                choices.push(&pattern[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        let (PatternToken::Outside(text) | PatternToken::Escaped(text) | PatternToken::Class(text)) =
            letter;
        at += text.len();
    }
    choices.push(&pattern[begin..]);
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: ElementDelimiters<'static> = ElementDelimiters {
        separator: ',',
        begin: "(?:^|,) *",
        before: "",
        end: " *(?:,|$)",
    };

    #[test]
    fn expression_matches_single_list_element() {
        for (pattern, found, others) in [
            (
                "^a.c$",
                &["abc", "x, abc", "abc , x"][..],
                &["a,c", "xabc"][..],
            ),
            ("^a|b$", &["ab", "x,a", "ab,x"], &["xa", "bx"]),
            (r"^a\Wb$", &["a-b"], &["a,b"]),
            ("^a[^x]b$", &["a-b"], &["a,b"]),
            (r"^[(]a|^b{1,2}$", &["(a", "x, bb"], &["b(a"]),
        ] {
            let pattern = LIST.pattern(pattern).expect(pattern);
            let regex = regex::bytes::Regex::new(&pattern).expect(&pattern);
            for text in found {
                assert!(regex.is_match(text.as_bytes()), "{pattern} {text}");
            }
            for text in others {
                assert!(!regex.is_match(text.as_bytes()), "{pattern} {text}");
            }
        }
        for pattern in ["a,b", "(^a|b)", "a$b", "[!-~]", r"a\,"] {
            assert_eq!(LIST.pattern(pattern), None, "{pattern}");
        }
    }
}
