//! The result as TOML: sections, with comments that name the directives they come from.

use std::fmt;

/// A TOML value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Number(u64),
    Truth(bool),
    List(Vec<Value>),
    Table(Vec<(String, Value)>),
}

impl Value {
    pub(crate) fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    pub(crate) fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Value {
        Value::List(texts.into_iter().map(Value::text).collect())
    }

    /// A string for one text, a list for several.
    pub(crate) fn one_or_list(texts: &[String]) -> Value {
        match texts {
            [one] => Value::text(one),
            several => Value::texts(several),
        }
    }

    pub(crate) fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
        let entries = entries.into_iter();
        Value::Table(
            entries
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => write_text(text, out),
            Value::Number(number) => number.fmt(out),
            Value::Truth(truth) => truth.fmt(out),
            Value::List(values) => {
                out.write_str("[")?;
                for (at, value) in values.iter().enumerate() {
                    write!(out, "{}{value}", if at == 0 { "" } else { ", " })?;
                }
                out.write_str("]")
            }
            Value::Table(entries) if entries.is_empty() => out.write_str("{}"),
            Value::Table(entries) => {
                out.write_str("{ ")?;
                for (at, (key, value)) in entries.iter().enumerate() {
                    write!(out, "{}", if at == 0 { "" } else { ", " })?;
                    write!(out, "{} = {value}", Key(key))?;
                }
                out.write_str(" }")
            }
        }
    }
}

/// A key, quoted only where TOML requires it.
struct Key<'a>(&'a str);

impl fmt::Display for Key<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        match !self.0.is_empty() && self.0.bytes().all(is_bare) {
            true => out.write_str(self.0),
            false => write_text(self.0, out),
        }
    }
}

/// Writes a literal string if the text has a backslash or double quote and nothing that needs escaping (typically a
/// regular expression), otherwise a basic string.
fn write_text(text: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_literal = |letter: char| letter != '\'' && !letter.is_control();
    if text.contains(['\\', '"']) && text.chars().all(is_literal) {
        return write!(out, "'{text}'");
    }
    out.write_str("\"")?;
    for letter in text.chars() {
        match letter {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\t' => out.write_str("\\t")?,
            letter if letter.is_control() => write!(out, "\\u{:04X}", u32::from(letter))?,
            letter => write!(out, "{letter}")?,
        }
    }
    out.write_str("\"")
}

/// One section, or the keys before the first section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    /// Comment lines, without `#`.
    pub(crate) comments: Vec<String>,
    /// Header, such as `[[route]]`; empty before the first section.
    pub(crate) header: String,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    key: String,
    value: Value,
    comment: Option<String>,
}

impl Section {
    pub(crate) fn new(header: impl Into<String>) -> Section {
        Section {
            header: header.into(),
            ..Section::default()
        }
    }

    pub(crate) fn upstream(name: &str) -> Section {
        Section::new(format!("[upstream.{}]", Key(name)))
    }

    pub(crate) fn put(&mut self, key: &str, value: Value) {
        self.entries.push(Entry {
            key: key.to_owned(),
            value,
            comment: None,
        });
    }

    pub(crate) fn put_with_comment(&mut self, key: &str, value: Value, comment: String) {
        self.put(key, value);
        let entry = self.entries.last_mut().expect("an entry was pushed above");
        entry.comment = Some(comment);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl fmt::Display for Section {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for comment in &self.comments {
            writeln!(out, "# {}", on_one_line(comment))?;
        }
        if !self.header.is_empty() {
            writeln!(out, "{}", self.header)?;
        }
        for Entry {
            key,
            value,
            comment,
        } in &self.entries
        {
            match comment {
                Some(comment) => {
                    let comment = on_one_line(comment);
                    writeln!(out, "{} = {value}    # {comment}", Key(key))?;
                }
                None => writeln!(out, "{} = {value}", Key(key))?,
            }
        }
        Ok(())
    }
}

/// Replaces control characters, so that a file name with a line break cannot end the comment.
fn on_one_line(comment: &str) -> String {
    comment.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_is_written_as_toml() {
        let mut section = Section::upstream("a b");
        section.comments.push("from\nthere".to_owned());
        section.put("servers", Value::texts(["127.0.0.1:1", "a\"b"]));
        section.put_with_comment(
            "health",
            Value::table([("path", Value::text("/")), ("rise", Value::Number(2))]),
            "x".to_owned(),
        );
        section.put("X.Y", Value::text("~\\.php$"));
        section.put("both", Value::text("'\\\u{1}"));
        assert_eq!(
            section.to_string(),
            "# from there\n[upstream.\"a b\"]\nservers = [\"127.0.0.1:1\", 'a\"b']\n\
             health = { path = \"/\", rise = 2 }    # x\n\"X.Y\" = '~\\.php$'\nboth = \"'\\\\\\u0001\"\n"
        );
    }
}
