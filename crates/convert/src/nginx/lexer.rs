//! Splits nginx's language into words, braces and semicolons, with quotes, escapes and comments resolved.

use crate::limits;
use crate::source::InputError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word without its quotes, with escapes resolved.
    Word(String),
    /// `;`
    End,
    /// `{`
    Open,
    /// `}`
    Close,
}

/// Reads tokens and their lines.
pub(super) struct Lexer<'a> {
    file: &'a str,
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Lexer<'a> {
        // nginx also skips a byte order mark at the start.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Lexer {
            file,
            rest: text.chars().peekable(),
            line: 1,
        }
    }

    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// The next token and its line; none at the end of the text.
    pub(super) fn next(&mut self) -> Result<Option<(Token, usize)>, InputError> {
        loop {
            let line = self.line;
            let Some(letter) = self.take() else {
                return Ok(None);
            };
            let token = match letter {
                letter if letter.is_ascii_whitespace() => continue,
                '#' => {
                    self.pass_comment();
                    continue;
                }
                ';' => Token::End,
                '{' => Token::Open,
                '}' => Token::Close,
                '"' | '\'' => Token::Word(self.quoted(letter, line)?),
                letter => Token::Word(self.bare(letter)),
            };
            return Ok(Some((token, line)));
        }
    }

    /// Skips a block of Lua up to its closing brace.
    pub(super) fn pass_block(&mut self) -> Result<(), InputError> {
        let begin = self.line;
        let mut depth = 1_usize;
        while let Some(letter) = self.take() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                '\\' => drop(self.take()),
                '-' if self.rest.peek() == Some(&'-') => self.pass_comment(),
                '"' | '\'' => {
                    self.quoted_inside(letter, begin)?;
                }
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        let message = "unclosed block: expected \"}\"";
        Err(InputError::at(self.file, begin, message))
    }

    fn take(&mut self) -> Option<char> {
        let letter = self.rest.next()?;
        self.line += usize::from(letter == '\n');
        Some(letter)
    }

    fn pass_comment(&mut self) {
        while self.rest.peek().is_some_and(|letter| *letter != '\n') {
            self.take();
        }
    }

    fn quoted(&mut self, quote: char, begin: usize) -> Result<String, InputError> {
        let word = self.quoted_inside(quote, begin)?;
        match self.rest.peek() {
            None | Some(';' | '{' | ')') => Ok(word),
            Some(letter) if letter.is_ascii_whitespace() => Ok(word),
            Some(letter) => {
                let message =
                    format!("{letter:?} after a quoted word: expected a space, \";\" or \"{{\"");
                Err(InputError::at(self.file, self.line, message))
            }
        }
    }

    fn quoted_inside(&mut self, quote: char, begin: usize) -> Result<String, InputError> {
        let mut word = String::new();
        while let Some(letter) = self.take() {
            match letter {
                letter if letter == quote => return Ok(word),
                '\\' => self.escape(&mut word),
                letter => word.push(letter),
            }
        }
        let message = format!("unclosed quote: expected {quote}");
        Err(InputError::at(self.file, begin, message))
    }

    fn bare(&mut self, first: char) -> String {
        let mut word = String::new();
        let mut letter = first;
        loop {
            match letter {
                '\\' => self.escape(&mut word),
                letter => word.push(letter),
            }
            // `${name}` is a part of the word.
            let in_variable = word.ends_with('$');
            match self.rest.peek() {
                None | Some(';') => return word,
                Some('{') if !in_variable => return word,
                Some(next) if next.is_ascii_whitespace() => return word,
                Some(_) => {}
            }
            let Some(next) = self.take() else {
                return word;
            };
            letter = next;
        }
    }

    /// Resolves an escape. A backslash before other letters stays, because regular expressions need it.
    fn escape(&mut self, word: &mut String) {
        match self.take() {
            Some(letter @ ('"' | '\'' | '\\')) => word.push(letter),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(letter) => word.extend(['\\', letter]),
            None => word.push('\\'),
        }
    }
}

/// The error for a directive with too many words.
pub(super) fn too_many_words(file: &str, line: usize) -> InputError {
    let message = format!(
        "no end of the directive within {} words: expected \";\" or \"{{\"",
        limits::WORDS_MAX
    );
    InputError::at(file, line, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<String>, String> {
        let mut lexer = Lexer::new("f", text);
        let mut tokens = Vec::new();
        while let Some((token, line)) = lexer.next().map_err(|error| error.to_string())? {
            tokens.push(match token {
                Token::Word(word) => format!("{line}:{word}"),
                Token::End => ";".to_owned(),
                Token::Open => "{".to_owned(),
                Token::Close => "}".to_owned(),
            });
        }
        Ok(tokens)
    }

    #[test]
    fn text_splits_into_words_like_nginx() {
        for (text, expected) in [
            ("a b;", &["1:a", "1:b", ";"][..]),
            ("a{b;}", &["1:a", "{", "1:b", ";", "}"]),
            ("a # b {\nc;", &["1:a", "2:c", ";"]),
            ("a#b;", &["1:a#b", ";"]),
            ("a \"b c\" 'd;\"';", &["1:a", "1:b c", "1:d;\"", ";"]),
            ("a \"b\\\"c\\d\";", &["1:a", "1:b\"c\\d", ";"]),
            ("a ${b}c;", &["1:a", "1:${b}c", ";"]),
            ("a \\.php$ {", &["1:a", "1:\\.php$", "{"]),
            (
                "if ($a = \"b\") {",
                &["1:if", "1:($a", "1:=", "1:b", "1:)", "{"],
            ),
            ("a b\\ c;", &["1:a", "1:b\\ c", ";"]),
            ("\u{feff}a;", &["1:a", ";"]),
            ("a", &["1:a"]),
            ("a \"\";", &["1:a", "1:", ";"]),
        ] {
            let found = tokens(text).expect("they are words");
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn quotes_must_be_closed_and_followed_by_space() {
        assert_eq!(
            tokens("a\nb \"c"),
            Err("f:2: unclosed quote: expected \"".to_owned())
        );
        assert_eq!(
            tokens("a \"b\"c;"),
            Err("f:1: 'c' after a quoted word: expected a space, \";\" or \"{\"".to_owned())
        );
    }
}
