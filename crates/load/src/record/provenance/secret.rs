//! Hides the secrets of a command line: results are shared, so they must not contain credentials. Pure.

pub(crate) const HIDDEN: &str = "(not shown)";

/// Parts of field names and query parameter names whose values are secret.
const SECRET_PARTS: [&str; 12] = [
    "authorization",
    "cookie",
    "password",
    "passwd",
    "secret",
    "token",
    "api-key",
    "api_key",
    "apikey",
    "credential",
    "signature",
    "session",
];

/// Names of query parameters whose values are secret.
const SECRET_NAMES: [&str; 5] = ["key", "sig", "auth", "pwd", "pass"];

/// Flags without a value; another flag may follow in the same argument, such as `-ku`.
const SWITCHES: [char; 2] = ['k', 'q'];

#[derive(Clone, Copy, Default)]
enum Value {
    /// An argument that may be a URL.
    #[default]
    Word,
    /// `NAME: VALUE`.
    Field,
    /// `NAME:PASSWORD`.
    User,
    /// Secret in full.
    Secret,
    /// A body, or `@` and the file that it is read from.
    Body,
}

pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| name.contains(part))
}

/// Returns the arguments of `onrush load` with secrets hidden.
pub(crate) fn masked(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut of_next = Value::Word;
    words
        .map(|word| match std::mem::take(&mut of_next) {
            Value::Word => {
                let (flag, value, attached) = split(&word);
                match attached {
                    Some(attached) => format!("{flag}{}", value.masked(attached)),
                    None => {
                        of_next = value;
                        word
                    }
                }
            }
            value => value.masked(&word),
        })
        .collect()
}

/// Splits an argument into its flag (may be empty), the kind of the flag's value, and the value if attached.
fn split(word: &str) -> (&str, Value, Option<&str>) {
    if let Some(long) = word.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        let value = match name {
            "header" => Value::Field,
            "user" => Value::User,
            "bearer" => Value::Secret,
            "body" => Value::Body,
            _ => Value::Word,
        };
        let flag = &word[..word.find('=').map_or(word.len(), |at| at + 1)];
        return (
            flag,
            value,
            word.get(flag.len()..).filter(|_| flag.ends_with('=')),
        );
    }
    let letters = word.strip_prefix('-').unwrap_or_default();
    let letters = letters.trim_start_matches(SWITCHES);
    let value = match letters.chars().next() {
        Some('H') => Value::Field,
        Some('u') => Value::User,
        _ => return ("", Value::Word, Some(word)),
    };
    let (flag, attached) = word.split_at(word.len() - letters.len() + 1);
    (
        flag,
        value,
        Some(attached).filter(|attached| !attached.is_empty()),
    )
}

impl Value {
    fn masked(self, value: &str) -> String {
        match self {
            Value::Word => without_url_secrets(value),
            Value::Field => match value.split_once(':') {
                Some((name, _)) if is_secret(name) => format!("{name}: {HIDDEN}"),
                _ => without_url_secrets(value),
            },
            Value::User => match value.split_once(':') {
                Some((name, _)) => format!("{name}:{HIDDEN}"),
                None => HIDDEN.to_owned(),
            },
            Value::Body if value.starts_with('@') && !value.starts_with("@@") => value.to_owned(),
            Value::Body | Value::Secret => HIDDEN.to_owned(),
        }
    }
}

/// Returns a URL without user, password and the values of secret query parameters.
fn without_url_secrets(text: &str) -> String {
    let authority = text.find("://").map_or(0, |at| at + 3);
    let rest = &text[authority..];
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let is_url = authority > 0;
    let rest = match rest[..end].rfind('@').filter(|_| is_url) {
        Some(at) => format!("{HIDDEN}{}", &rest[at..]),
        None => rest.to_owned(),
    };
    let url = format!("{}{rest}", &text[..authority]);
    let Some((path, query)) = url.split_once('?') else {
        return url;
    };
    let parameters: Vec<String> = query.split('&').map(parameter).collect();
    format!("{path}?{}", parameters.join("&"))
}

/// Hides the value of `NAME=VALUE` if the name is that of a secret.
fn parameter(text: &str) -> String {
    let is_hidden = |name: &str| {
        let lower = name.to_ascii_lowercase();
        is_secret(name) || SECRET_NAMES.contains(&lower.as_str())
    };
    match text.split_once('=') {
        Some((name, _)) if is_hidden(name) => format!("{name}={HIDDEN}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_secrets_are_redacted() {
        for (words, expected) in [
            ("-H|Authorization: Basic x", "-H|Authorization: (not shown)"),
            ("-HCookie: a=b", "-HCookie: (not shown)"),
            ("-qkH|X-Api-Key: x", "-qkH|X-Api-Key: (not shown)"),
            (
                "--header=x-auth-token:x",
                "--header=x-auth-token: (not shown)",
            ),
            ("--header|Accept: */*", "--header|Accept: */*"),
            ("-u|me:x", "-u|me:(not shown)"),
            ("-kume:x", "-kume:(not shown)"),
            ("--user=me:x", "--user=me:(not shown)"),
            ("--bearer|x", "--bearer|(not shown)"),
            ("--bearer=x", "--bearer=(not shown)"),
            ("--body|{\"password\": 1}", "--body|(not shown)"),
            ("--body|@file", "--body|@file"),
            ("--body=@@x", "--body=(not shown)"),
            ("http://u:x@h/p?a=1", "http://(not shown)@h/p?a=1"),
            (
                "http://h/p@q?access_token=x&b=2",
                "http://h/p@q?access_token=(not shown)&b=2",
            ),
            ("h/?key=x", "h/?key=(not shown)"),
            ("-c|5|-n|3|--json|r.json", "-c|5|-n|3|--json|r.json"),
            (
                "--body-file|f|--user-agent|x",
                "--body-file|f|--user-agent|x",
            ),
        ] {
            let found = masked(words.split('|').map(str::to_owned));
            assert_eq!(found.join("|"), expected);
        }
    }
}
