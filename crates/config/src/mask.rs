//! Configuration text with secrets masked.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::changes::{SECRET_KEYS, has_secret};
use crate::diagnostic::Span;

const MASK: &str = "\"(hidden)\"";

/// Masks the values of keys that may contain secrets: password hashes, and fields that may carry credentials. Comments
/// stay. Returns an empty string if `text` is not valid TOML.
pub fn mask(text: &str) -> String {
    let Ok(table) = DeTable::parse(text) else {
        return String::new();
    };
    let mut secrets = Vec::new();
    look_through(table.get_ref(), &mut secrets);
    secrets.sort_unstable_by_key(|span| span.start);
    let mut masked = String::with_capacity(text.len());
    let mut end = 0;
    for secret in secrets {
        masked += &text[end..secret.start];
        masked += MASK;
        end = secret.end;
    }
    masked + &text[end..]
}

fn look_through(table: &DeTable<'_>, secrets: &mut Vec<Span>) {
    for (key, value) in table {
        match SECRET_KEYS.contains(&&**key.get_ref()) {
            true => hide(value, secrets),
            false => look_into(value, secrets),
        }
    }
}

fn look_into(value: &Spanned<DeValue<'_>>, secrets: &mut Vec<Span>) {
    match value.get_ref() {
        DeValue::Table(table) => look_through(table, secrets),
        DeValue::Array(array) => array.iter().for_each(|value| look_into(value, secrets)),
        DeValue::String(text) if has_secret(text) => secrets.push(value.span()),
        _ => {}
    }
}

/// Collects the places of all values, including nested ones.
fn hide(value: &Spanned<DeValue<'_>>, secrets: &mut Vec<Span>) {
    match value.get_ref() {
        DeValue::Table(table) => table.iter().for_each(|(_, value)| hide(value, secrets)),
        DeValue::Array(array) => array.iter().for_each(|value| hide(value, secrets)),
        _ => secrets.push(value.span()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_mask_hides_only_secrets() {
        let text = r#"# A site.
io = "epoll"
[[route]]
respond = { status = 200, body = "users" }
basic_auth = { realm = "r", users = { alice = "$2y$10$x", "b" = 'y' } }
[route.request_headers]
set = { Authorization = "Basic eDp5" } # for the server
remove = ["X-A"]
[route.response_headers.add]
X-Key = """
two lines"""
[[route]]
redirect = "https://u:p@h/"
headers = { X-Api-Key = "k" }
query = { key = "k" }
[tracing]
endpoint = "https://collector/v1/traces?api_key=k"
"#;
        let expected = r#"# A site.
io = "epoll"
[[route]]
respond = { status = 200, body = "users" }
basic_auth = { realm = "r", users = { alice = "(hidden)", "b" = "(hidden)" } }
[route.request_headers]
set = { Authorization = "(hidden)" } # for the server
remove = ["X-A"]
[route.response_headers.add]
X-Key = "(hidden)"
[[route]]
redirect = "(hidden)"
headers = { X-Api-Key = "(hidden)" }
query = { key = "(hidden)" }
[tracing]
endpoint = "(hidden)"
"#;
        assert_eq!(mask(text), expected);
        assert_eq!(mask("users = \""), "");
    }
}
