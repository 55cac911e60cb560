//! Texts with variables of nginx, as templates of Onrush.

use crate::settings::route::escaped;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// Name without `$`.
    Variable(String),
}

/// Variables with known values, as texts that may contain other variables.
pub(super) type Constants = Vec<(String, String)>;

/// Constant that marks a scope in which Onrush takes the client address from proxies and nginx does not, so clients
/// could choose it. No variable of nginx has this name.
pub(super) const REPORTED: &str = "!reported";

/// Constant that marks a scope in which nginx accepts field names with underscores. No variable of nginx has this name.
pub(super) const UNDERSCORES: &str = "!underscores";

/// Variables that contain the client address.
const ADDRESSES: [&str; 3] = ["remote_addr", "remote_port", "proxy_add_x_forwarded_for"];

/// Splits a text into literals and variables.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, behind) = (&rest[..at], &rest[at + 1..]);
        let (name, after) = match behind.strip_prefix('{') {
            Some(braced) => braced.split_once('}').unwrap_or(("", behind)),
            None => {
                let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                let end = behind.find(|letter| !is_part(letter));
                // `$1` has one digit.
                let end = match behind.starts_with(|letter: char| letter.is_ascii_digit()) {
                    true => 1,
                    false => end.unwrap_or(behind.len()),
                };
                behind.split_at(end)
            }
        };
        if name.is_empty() {
            push_text(&mut pieces, &rest[..=at]);
            rest = behind;
            continue;
        }
        push_text(&mut pieces, before);
        pieces.push(Piece::Variable(canonical(name)));
        rest = after;
    }
    push_text(&mut pieces, rest);
    pieces
}

/// The name of a variable in lower case, because nginx ignores case. Names of parameters keep their case, because
/// Onrush compares it.
pub(super) fn canonical(name: &str) -> String {
    let name = name.trim_start_matches('$');
    match name.split_at_checked("arg_".len()) {
        Some((begin, parameter)) if begin.eq_ignore_ascii_case("arg_") => {
            format!("arg_{parameter}")
        }
        _ => name.to_ascii_lowercase(),
    }
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        Some(Piece::Text(before)) => before.push_str(text),
        _ if text.is_empty() => {}
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

/// The text with known variables replaced by their values.
pub(super) fn expanded(text: &str, constants: &Constants) -> String {
    let pieces = pieces(text).into_iter().map(|piece| match piece {
        Piece::Text(text) => text,
        Piece::Variable(name) => match value_of(&name, constants) {
            Some(value) => value.to_owned(),
            None => format!("${{{name}}}"),
        },
    });
    pieces.collect()
}

pub(super) fn value_of<'a>(name: &str, constants: &'a Constants) -> Option<&'a str> {
    let mut known = constants.iter().rev();
    known
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.as_str())
}

pub(super) fn names(text: &str) -> Vec<String> {
    let pieces = pieces(text).into_iter();
    pieces
        .filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Variable(name) => Some(name),
        })
        .collect()
}

/// The text without its variables.
pub(super) fn literal(text: &str) -> String {
    let literals = pieces(text).into_iter().map(|piece| match piece {
        Piece::Text(text) => text,
        Piece::Variable(_) => String::new(),
    });
    literals.collect()
}

/// The text as a template of Onrush, or the variable that has no equivalent.
pub(super) fn template(text: &str, constants: &Constants) -> Result<String, String> {
    let text = expanded(text, constants);
    let mut template = String::new();
    let pieces = pieces(&text);
    let mut rest = &pieces[..];
    let is_reported = value_of(REPORTED, constants).is_some();
    let variable = |piece: Option<&Piece>, name: &str| matches!(piece, Some(Piece::Variable(known)) if known == name);
    while let [piece, behind @ ..] = rest {
        rest = behind;
        // Path and query together are one variable of Onrush.
        let is_uri =
            matches!(piece, Piece::Variable(name) if name == "uri" || name == "document_uri");
        let has_query = |at: usize| {
            variable(behind.get(at), "is_args")
                && (variable(behind.get(at + 1), "args")
                    || variable(behind.get(at + 1), "query_string"))
        };
        if is_uri && has_query(0) {
            template += "{uri}";
            rest = &behind[2..];
            continue;
        }
        match piece {
            Piece::Text(text) => template += &escaped(text),
            Piece::Variable(name) if is_reported && ADDRESSES.contains(&name.as_str()) => {
                return Err(format!("${name}, which clients could choose here"));
            }
            Piece::Variable(name) => template += &known(name).ok_or_else(|| format!("${name}"))?,
        }
    }
    Ok(template)
}

/// Differences between the variables of a text and the variables of its template.
pub(super) fn template_differences(text: &str) -> impl Iterator<Item = &'static str> {
    let names = names(text);
    let has_path = names
        .iter()
        .any(|name| name == "uri" || name == "document_uri");
    let is_field = |name: &String| name.starts_with("http_") && name != "http_host";
    let has_field = names.iter().any(is_field);
    let path = "$uri is the path as the client sent it; nginx decodes it and resolves dot segments";
    let field = "the first value of a repeated field is used; nginx joins the values with commas";
    let has_senders = names.iter().any(|name| name == "proxy_add_x_forwarded_for");
    let senders = "the field contains only the client address; nginx puts the client's X-Forwarded-For before it";
    let has_subject = names.iter().any(|name| name == "ssl_client_s_dn");
    let subject = "the parts of a certificate's subject are joined differently";
    let found = [
        (has_path, path),
        (has_field, field),
        (has_senders, senders),
        (has_subject, subject),
    ];
    found
        .into_iter()
        .filter_map(|(applies, how)| applies.then_some(how))
}

/// Note on a field whose value may be empty.
pub(super) const EMPTY: &str = "if there is no value, the field is sent empty; nginx omits it";

/// Whether a template consists of variables that may all be empty in some requests.
pub(super) fn may_be_empty(template: &str) -> bool {
    const BEGINS: [&str; 3] = ["{header:", "{query}", "{tls."];
    let mut rest = template;
    while BEGINS.iter().any(|begin| rest.starts_with(begin)) {
        rest = rest.split_once('}').map_or("", |(_, behind)| behind);
    }
    rest.is_empty() && !template.is_empty()
}

/// Note on `$is_args`, which is empty in nginx for requests without a query.
pub(super) fn question_mark_difference(text: &str, template: &str) -> Option<&'static str> {
    let has_mark = names(text).iter().any(|name| name == "is_args") && template.contains('?');
    has_mark.then_some("the field has a ? even if the request has no query")
}

/// The variable of Onrush for a variable of nginx.
fn known(name: &str) -> Option<String> {
    if let Some(field) = name.strip_prefix("http_") {
        return Some(match field {
            "host" => "{host}".to_owned(),
            field => format!("{{header:{}}}", field_name(field)),
        });
    }
    let known = match name {
        "host" => "{host.name}",
        "scheme" => "{scheme}",
        "request_uri" => "{uri}",
        "uri" | "document_uri" => "{path}",
        "args" | "query_string" => "{query}",
        "is_args" => "?",
        "request_method" => "{method}",
        "remote_addr" | "proxy_add_x_forwarded_for" => "{client.address}",
        "remote_port" => "{client.port}",
        "request_id" => "{request_id}",
        "ssl_protocol" => "{tls.version}",
        "ssl_cipher" => "{tls.cipher}",
        "ssl_server_name" => "{tls.server_name}",
        "ssl_client_s_dn" => "{tls.client_subject}",
        "content_type" => "{header:Content-Type}",
        "content_length" => "{header:Content-Length}",
        "upstream_addr" => "{server}",
        _ => return None,
    };
    Some(known.to_owned())
}

/// Converts `user_agent` to `User-Agent`.
pub(super) fn field_name(variable: &str) -> String {
    let words = variable.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_with_variables_become_templates() {
        let constants = vec![("a".to_owned(), "1$uri".to_owned())];
        for (text, expected) in [
            ("https://$host$request_uri", Ok("https://{host.name}{uri}")),
            ("https://${http_host}x", Ok("https://{host}x")),
            ("$uri$is_args$args", Ok("{uri}")),
            ("$uri?$args", Ok("{path}?{query}")),
            ("{$a}", Ok("{{1{path}}}")),
            ("$http_user_agent", Ok("{header:User-Agent}")),
            ("$5 off$", Err("$5")),
            ("100$", Ok("100$")),
            ("$time_local", Err("$time_local")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(template(text, &constants), expected, "{text}");
        }
    }
}
