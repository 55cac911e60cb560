//! Environment variables in double quotes: `"${NAME}"`, `"$NAME"`, `"${NAME-default}"`.

use std::iter::Peekable;
use std::str::Chars;

use crate::source::Files;

/// Environment variables at one line of a file.
pub(super) struct Environment<'f> {
    files: &'f dyn Files,
    /// Changes by `global`, in order; none for a variable that it removes.
    said: Vec<(String, Option<String>)>,
    /// Variables of the current line whose values do not come from the file.
    foreign: Vec<String>,
}

impl<'f> Environment<'f> {
    pub(super) fn new(files: &'f dyn Files) -> Environment<'f> {
        Environment {
            files,
            said: Vec::new(),
            foreign: Vec::new(),
        }
    }

    /// Reads `setenv`, `presetenv` and `unsetenv` of `global`.
    pub(super) fn read(&mut self, section: Option<&str>, words: &[String]) {
        if section != Some("global") {
            return;
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let names = match words[..] {
            ["setenv", name, value] => return self.say(name, Some(value)),
            ["presetenv", name, value] if self.value(name).is_none() => {
                return self.say(name, Some(value));
            }
            ["unsetenv", ref names @ ..] => names,
            _ => return,
        };
        for name in names {
            self.say(name, None);
        }
    }

    fn say(&mut self, name: &str, value: Option<&str>) {
        self.said.push((name.to_owned(), value.map(str::to_owned)));
    }

    fn value(&self, name: &str) -> Option<String> {
        let mut said = self.said.iter().rev();
        match said.find(|(known, _)| known == name) {
            Some((_, value)) => value.clone(),
            None => self.files.variable(name),
        }
    }

    /// Reads the name after a dollar sign and returns the value of the variable.
    pub(super) fn expand(&mut self, letters: &mut Peekable<Chars<'_>>) -> Result<String, String> {
        const EXPECTED: &str =
            "expected the name of a variable after $, as in \"${NAME}\" or \"${NAME-default}\"";
        let has_brace = letters.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(letter) =
            letters.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
        {
            name.push(letter);
        }
        if name.is_empty() {
            return Err(EXPECTED.to_owned());
        }
        let mut default = None;
        if has_brace {
            let rest: String = letters
                .by_ref()
                .take_while(|letter| *letter != '}')
                .collect();
            default = match rest.strip_prefix('-') {
                Some(default) => Some(default.to_owned()),
                None if rest.is_empty() || rest == "[*]" => None,
                None => return Err(EXPECTED.to_owned()),
            };
        }
        if !self.said.iter().any(|(known, _)| *known == name) {
            self.foreign.push(name.clone());
        }
        Ok(self.value(&name).or(default).unwrap_or_default())
    }

    /// Note for the current line; none if all values come from the file.
    pub(super) fn difference(&mut self) -> Option<String> {
        let names = std::mem::take(&mut self.foreign);
        let how = "is the one in the environment of the converter; if it is not set there, its default, or nothing";
        (!names.is_empty()).then(|| {
            format!(
                "{}: the value of the environment variable {how}",
                names.join(", ")
            )
        })
    }
}
