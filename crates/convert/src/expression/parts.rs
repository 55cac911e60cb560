//! Expressions for one part of a field, such as a value between commas or a cookie, as expressions for the whole field.

use crate::expression::pcre::{Letter, Letters};

/// How a part begins and ends in its field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'p> {
    /// Never in a part.
    pub(crate) separator: char,
    /// Expression before an expression that begins with `^`, and before others.
    pub(crate) begin: &'p str,
    pub(crate) before: &'p str,
    /// Expression that is appended to an expression with `$` at its end.
    pub(crate) end: &'p str,
}

impl Parts<'_> {
    /// The expression for the whole field; `pattern` has no flags before it. None where it cannot be told apart which part it is
    /// found in.
    pub(crate) fn pattern(self, pattern: &str) -> Option<String> {
        let choices = choices(pattern);
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
        let mut letters: Vec<Letter<'_>> = Letters::new(rest).collect();
        let is_end =
            |letter: &Letter<'_>| matches!(letter, Letter::Outside("$") | Letter::Escaped("\\z"));
        let end = match letters.pop_if(|letter| is_end(letter)) {
            Some(_) => self.end,
            None => "",
        };
        let mut part = String::new();
        let mut is_quantifier = false;
        for letter in letters {
            match letter {
                Letter::Outside("{") => is_quantifier = true,
                Letter::Outside("}") => is_quantifier = false,
                _ => {}
            }
            if !is_quantifier {
                part += &self.letter(letter)?;
            } else if let Letter::Outside(text) = letter {
                part += text;
            }
        }
        Some(format!("{begin}(?:{part}){end}"))
    }

    /// A letter that does not stand for the separator.
    fn letter(self, letter: Letter<'_>) -> Option<String> {
        let separator = self.separator;
        let text = match letter {
            Letter::Outside("^" | "$") | Letter::Escaped("\\z") => return None,
            Letter::Outside(".") => return Some(format!("[^{separator}\\n]")),
            Letter::Escaped("\\D") => return Some(format!("[^\\d{separator}]")),
            Letter::Escaped("\\S") => return Some(format!("[^\\s{separator}]")),
            Letter::Escaped("\\W") => return Some(format!("[^\\w{separator}]")),
            Letter::Class(text) => match text.strip_prefix("[^") {
                Some(inside) => return Some(format!("[^{separator}{inside}")),
                None => text,
            },
            Letter::Outside(text) | Letter::Escaped(text) => text,
        };
        let is_separator = match letter {
            Letter::Class(_) => {
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

/// The parts of an expression between each `|` that stands outside of all parentheses.
pub(crate) fn choices(pattern: &str) -> Vec<&str> {
    let mut choices = Vec::new();
    let (mut depth, mut begin, mut at) = (0_usize, 0, 0);
    for letter in Letters::new(pattern) {
        match letter {
            Letter::Outside("(") => depth += 1,
            Letter::Outside(")") => depth = depth.saturating_sub(1),
            Letter::Outside("|") if depth == 0 => {
                choices.push(&pattern[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        let (Letter::Outside(text) | Letter::Escaped(text) | Letter::Class(text)) = letter;
        at += text.len();
    }
    choices.push(&pattern[begin..]);
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: Parts<'static> = Parts {
        separator: ',',
        begin: "(?:^|,) *",
        before: "",
        end: " *(?:,|$)",
    };

    #[test]
    fn an_expression_is_found_in_one_part() {
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
