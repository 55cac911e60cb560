//! Templates: text with variables, such as `https://{host}{uri}`.

use super::placeholders::split_placeholders;
use super::{Invalid, is_token};
use crate::plan::{Piece, Template, Variable};
use onrush_measure::suggestion::suggestion;

const VARIABLES: [(&str, Variable); 17] = [
    ("client.address", Variable::ClientAddress),
    ("client.port", Variable::ClientPort),
    ("scheme", Variable::Scheme),
    ("method", Variable::Method),
    ("host", Variable::Host),
    ("host.name", Variable::HostName),
    ("path", Variable::Path),
    ("path.rest", Variable::PathRest),
    ("query", Variable::Query),
    ("uri", Variable::Uri),
    ("tls.version", Variable::TlsVersion),
    ("tls.cipher", Variable::TlsCipher),
    ("tls.server_name", Variable::TlsServerName),
    ("tls.client_subject", Variable::TlsClientSubject),
    ("upstream", Variable::Upstream),
    ("server", Variable::Server),
    ("request_id", Variable::RequestId),
];

/// Parses a template, in which `{name}` is a [`Variable`]; `{{` and `}}` are literal braces.
pub fn parse_template(text: &str) -> Result<Template, Invalid> {
    let variable = |name: &str| parse_variable(name).map(Piece::Variable);
    split_placeholders(text, Piece::Text, variable).map(Template)
}

fn parse_variable(name: &str) -> Result<Variable, Invalid> {
    if let Some(field) = name.strip_prefix("header:") {
        if !is_token(field) {
            return Err(Invalid::new(format!(
                "{{{name}}}: {field:?} is not a header name"
            )));
        }
        return Ok(Variable::Header(field.to_owned()));
    }
    if let Some((_, variable)) = VARIABLES.iter().find(|(known, _)| *known == name) {
        return Ok(variable.clone());
    }
    let names = || VARIABLES.iter().map(|(known, _)| *known);
    Err(Invalid::new(match suggestion(name, names()) {
        Some(near) => format!("unknown variable {{{name}}}; nearest: {{{near}}}"),
        None => {
            let known: Vec<&str> = names().chain(["header:NAME"]).collect();
            format!(
                "unknown variable {{{name}}}; expected one of: {}; a literal brace is written \"{{{{\"",
                known.join(", ")
            )
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    #[test]
    fn template_is_split_into_text_and_variables() {
        for (written, pieces) in [
            ("", vec![]),
            ("plain", vec![text("plain")]),
            (
                "https://{host.name}{uri}",
                vec![
                    text("https://"),
                    Piece::Variable(Variable::HostName),
                    Piece::Variable(Variable::Uri),
                ],
            ),
            (
                "{header:X-Id}!",
                vec![
                    Piece::Variable(Variable::Header("X-Id".to_owned())),
                    text("!"),
                ],
            ),
            (
                "{{{path}}}",
                vec![text("{"), Piece::Variable(Variable::Path), text("}")],
            ),
            ("{{host}}", vec![text("{host}")]),
        ] {
            assert_eq!(
                parse_template(written),
                Ok(Template(pieces)),
                "of {written:?}"
            );
        }
    }

    #[test]
    fn all_variable_names_are_parsed() {
        for (name, variable) in VARIABLES {
            assert_eq!(
                parse_template(&format!("{{{name}}}")),
                Ok(Template(vec![Piece::Variable(variable)]))
            );
        }
    }

    #[test]
    fn unknown_variable_error_suggests_nearest() {
        for (written, part) in [
            ("{hots}", "unknown variable {hots}; nearest: {host}"),
            ("{}", "unknown variable {}; expected one of: client.address"),
            ("{header:}", "\"\" is not a header name"),
            ("{host", "without a matching \"}\""),
            ("host}", "without a matching \"{\""),
        ] {
            let error = parse_template(written).expect_err(written).to_string();
            assert!(error.contains(part), "{written}: {error}");
        }
    }
}
