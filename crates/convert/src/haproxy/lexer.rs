//! Splits HAProxy's files into sections of lines, with quotes, escapes and comments resolved.

use std::iter::Peekable;
use std::path::Path;
use std::rc::Rc;
use std::str::Chars;

use super::environment::Environment;
use crate::limits;
use crate::source::directive::{Directive, Place};
use crate::source::{Files, InputError};

/// Keywords that start a section.
const SECTIONS: [&str; 20] = [
    "acme",
    "backend",
    "cache",
    "crt-store",
    "defaults",
    "fcgi-app",
    "frontend",
    "global",
    "http-errors",
    "listen",
    "log-forward",
    "log-profile",
    "mailers",
    "peers",
    "program",
    "resolvers",
    "ring",
    "traces",
    "userlist",
    "crt-list",
];

pub(super) struct Text {
    /// Sections; their lines are in their blocks.
    pub(super) sections: Vec<Directive>,
    /// Notes on lines that depend on the environment, by number of the line's directive.
    pub(super) differences: Vec<(usize, String)>,
}

/// Parses a file.
pub(super) fn read(files: &dyn Files, path: &Path) -> Result<Text, InputError> {
    let whole = |message: String| InputError {
        file: path.to_owned(),
        line: None,
        message,
    };
    let text = files.read(path).map_err(whole)?;
    if text.len() > limits::BYTES_MAX {
        let most = limits::BYTES_MAX >> 20;
        let message = format!("it is too long: expected at most {most} MiB");
        return Err(whole(message));
    }
    let file: Rc<str> = path.to_string_lossy().into();
    let mut sections: Vec<Directive> = Vec::new();
    let mut number = 0;
    let mut environment = Environment::new(files);
    let mut differences = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let place = Place {
            file: Rc::clone(&file),
            line: at + 1,
        };
        let words = words(line, &mut environment);
        let words = words.map_err(|message| InputError::at(&file, at + 1, message))?;
        let Some(first) = words.first() else {
            continue;
        };
        number += 1;
        if number > limits::DIRECTIVES_MAX {
            let most = limits::DIRECTIVES_MAX;
            let message = format!("the configuration is too long: expected at most {most} lines");
            return Err(InputError::at(&file, at + 1, message));
        }
        differences.extend(environment.difference().map(|how| (number, how)));
        environment.read(sections.last().map(Directive::name), &words);
        let is_section = SECTIONS.contains(&first.as_str());
        let directive = Directive {
            number,
            place,
            block: is_section.then(Vec::new),
            words,
        };
        match sections.last_mut() {
            _ if is_section => sections.push(directive),
            Some(section) => section.block.get_or_insert_default().push(directive),
            // Conditional blocks (`.if`) may come before all sections.
            None if directive.name().starts_with('.') => sections.push(directive),
            None => {
                let message = format!(
                    "{:?} is outside of a section: expected a section such as global, defaults, frontend, backend or listen before it",
                    directive.name()
                );
                return Err(InputError::at(&file, at + 1, message));
            }
        }
    }
    if sections.is_empty() {
        let message =
            "not a configuration of HAProxy: expected sections such as frontend and backend";
        return Err(whole(message.to_owned()));
    }
    Ok(Text {
        sections,
        differences,
    })
}

/// The words of a line without its comment.
fn words(line: &str, environment: &mut Environment<'_>) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('#', None) => break,
            (letter, None) if letter.is_ascii_whitespace() => words.extend(word.take()),
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, Some(open)) if letter == open => quote = None,
            ('\\', None | Some('"')) => {
                let word = word.get_or_insert_default();
                match letters.next() {
                    Some('n') => word.push('\n'),
                    Some('r') => word.push('\r'),
                    Some('t') => word.push('\t'),
                    Some(escaped @ ('\\' | ' ' | '#' | '"' | '\'' | '$')) => word.push(escaped),
                    Some('x') => word.push_str(&bytes(&mut letters)),
                    Some(other) => word.extend(['\\', other]),
                    None => word.push('\\'),
                }
            }
            ('$', Some('"')) => {
                let value = environment.expand(&mut letters)?;
                word.get_or_insert_default().push_str(&value);
            }
            (letter, _) => word.get_or_insert_default().push(letter),
        }
        if words.len() > limits::WORDS_MAX {
            let most = limits::WORDS_MAX;
            return Err(format!(
                "too many words in this line: expected at most {most}"
            ));
        }
    }
    if let Some(quote) = quote {
        return Err(format!("unclosed quote in this line: expected {quote}"));
    }
    words.extend(word);
    Ok(words)
}

/// Reads bytes written as `\xHH\xHH…` after the first `\x`. Returns `\x` if no number follows.
fn bytes(letters: &mut Peekable<Chars<'_>>) -> String {
    let number = |rest: &str| {
        let digits = rest.get(..2).filter(|digits| !digits.starts_with('+'))?;
        u8::from_str_radix(digits, 16).ok()
    };
    let mut bytes = Vec::new();
    loop {
        let rest: String = letters.clone().take(4).collect();
        let digits = match bytes.is_empty() {
            true => Some(&*rest),
            false => rest.strip_prefix("\\x"),
        };
        let Some(byte) = digits.and_then(number) else {
            break;
        };
        letters.nth(if bytes.is_empty() { 1 } else { 3 });
        bytes.push(byte);
    }
    match bytes.is_empty() {
        true => "\\x".to_owned(),
        false => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Disk;

    #[test]
    fn lines_split_into_words_like_haproxy() {
        for (line, expected) in [
            ("  bind :80 # all", &["bind", ":80"][..]),
            ("a \"b c\" 'd \"e'", &["a", "b c", "d \"e"]),
            ("a b\\ c\\#d", &["a", "b c#d"]),
            ("a ^/x\\.y$", &["a", "^/x\\.y$"]),
            ("a \"\"", &["a", ""]),
            (
                r"a \x2e\xc3\xa9z '\x2e' \xg",
                &["a", ".éz", r"\x2e", r"\xg"],
            ),
            (r"a \xe9", &["a", "\u{FFFD}"]),
            ("a x\"y z\"w", &["a", "xy zw"]),
            ("# a", &[]),
            ("", &[]),
            ("a '\\n'", &["a", "\\n"]),
            ("${A} '${A}' \"\\${A}\"", &["${A}", "${A}", "${A}"]),
            ("\"$A/${NONE-5s}/${NONE}/${B}$A-x\"", &["1/5s//2 21-x"]),
        ] {
            let mut environment = environment();
            let words = words(line, &mut environment);
            assert_eq!(words.expect("they are words"), expected, "{line}");
        }
        for line in ["a 'b", "\"$\"", "\"${A,}\""] {
            assert!(words(line, &mut environment()).is_err(), "{line}");
        }
    }

    /// An environment with variables that `global` has set.
    fn environment() -> Environment<'static> {
        let mut environment = Environment::new(&Disk);
        for line in [["setenv", "A", "1"], ["setenv", "B", "2 2"]] {
            environment.read(Some("global"), &line.map(str::to_owned));
        }
        environment
    }
}
