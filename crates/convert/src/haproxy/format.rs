//! Log-format strings and samples in texts, as templates of Onrush.

use super::fetch::split_outside;
use super::request_changes::{Part, PathState, RequestChanges};
use crate::settings::route::escaped;

/// The message into which a text is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side<'s> {
    /// A request with its changes, and the name of the proxy.
    Request(&'s RequestChanges, &'s str),
    Response,
}

/// The text as a template of Onrush, or the sample that has no equivalent.
pub(super) fn template(text: &str, side: Side<'_>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out += &escaped(&rest[..at]);
        let behind = &rest[at + 1..];
        if let Some(after) = behind.strip_prefix('%') {
            out.push('%');
            rest = after;
        } else if let Some(inside) = behind.strip_prefix('[') {
            let (sample, after) = inside.split_once(']').ok_or_else(|| "%[".to_owned())?;
            out += &known(sample, side).ok_or_else(|| format!("%[{sample}]"))?;
            rest = after;
        } else {
            let is_part = |letter: char| letter.is_ascii_alphabetic();
            let end = behind
                .find(|letter| !is_part(letter))
                .unwrap_or(behind.len());
            let (name, after) = behind.split_at(end);
            out += &letters(name, side).ok_or_else(|| format!("%{name}"))?;
            rest = after;
        }
    }
    out += &escaped(rest);
    Ok(out)
}

/// A difference between the value in HAProxy and that of the template.
pub(super) fn difference(text: &str) -> Option<&'static str> {
    let is_server = ["%s", "srv_name"].iter().any(|name| text.contains(name));
    if is_server && !text.contains("%sslv") && !text.contains("%sslc") {
        return Some(
            "the value is the address of the server; in HAProxy it is the name of the server",
        );
    }
    if ["unique-id", "uuid", "%ID"]
        .iter()
        .any(|name| text.contains(name))
    {
        return Some(
            "a request ID has 32 hexadecimal digits; in HAProxy it has the format of unique-id-format, or is missing",
        );
    }
    if text.contains("ssl_c_s_dn") {
        return Some("the parts of a certificate's subject are joined differently");
    }
    let mut rest = text;
    while let Some(at) = rest.find("hdr(") {
        rest = &rest[at + 4..];
        if !rest.to_ascii_lowercase().starts_with("host)") {
            return Some(
                "for repeated fields and lists the first line is used; HAProxy uses the last value",
            );
        }
    }
    None
}

fn letters(name: &str, side: Side<'_>) -> Option<String> {
    let template = match (name, side) {
        ("ci" | "cp", Side::Request(changed, _)) if changed.is_unclear(Part::Client) => {
            return None;
        }
        ("ci", _) => "{client.address}",
        ("cp", _) => "{client.port}",
        ("HM", _) => "{method}",
        ("HP", _) => "{path}",
        ("HU" | "HPO", _) => "{uri}",
        ("b", Side::Request(_, proxy)) => return Some(escaped(proxy)),
        ("b", Side::Response) => "{upstream}",
        // No server has been chosen yet.
        ("s", Side::Request(..)) => "<NOSRV>",
        ("s", Side::Response) => "{server}",
        ("ID", _) => "{request_id}",
        ("sslv", _) => "{tls.version}",
        ("sslc", _) => "{tls.cipher}",
        _ => return None,
    };
    Some(template.to_owned())
}

/// A sample as a variable of Onrush.
fn known(sample: &str, side: Side<'_>) -> Option<String> {
    let mut parts = split_outside(sample, ',').into_iter();
    let first = parts.next()?.trim();
    let (name, argument) = match first.split_once('(') {
        Some((name, argument)) => (name, argument.trim_end_matches(')')),
        None => (first, ""),
    };
    let mut converters: Vec<&str> = parts.collect();
    let name = name.strip_prefix("req.").unwrap_or(name);
    if name == "ssl_fc" && converters == ["iif(https,http)"] {
        return Some("{scheme}".to_owned());
    }
    let is_host = matches!(name, "hdr" | "fhdr") && argument.eq_ignore_ascii_case("host");
    if is_host
        && converters
            .iter()
            .any(|converter| *converter == "field(1,:)" || *converter == "host_only")
    {
        return of_field("host", "{host.name}", side);
    }
    // Host names rarely have capital letters.
    converters.retain(|converter| !(is_host && *converter == "lower"));
    if !converters.is_empty() {
        return None;
    }
    let is_received = |part: Part| match side {
        Side::Request(changed, _) => !changed.is_unclear(part),
        Side::Response => true,
    };
    Some(match name {
        "src" if is_received(Part::Client) => "{client.address}".to_owned(),
        "src_port" if is_received(Part::Client) => "{client.port}".to_owned(),
        "hdr" | "fhdr" if is_host => of_field("host", "{host}", side)?,
        "hdr" | "fhdr" if is_name(argument) => {
            of_field(argument, &format!("{{header:{argument}}}"), side)?
        }
        "path" => path(side)?,
        "query" if is_received(Part::Query) => "{query}".to_owned(),
        "url" | "pathq" if is_received(Part::Query) && path(side)? == "{path}" => {
            "{uri}".to_owned()
        }
        "capture.req.uri" => "{uri}".to_owned(),
        "method" if is_received(Part::Method) => "{method}".to_owned(),
        "capture.req.method" => "{method}".to_owned(),
        "ssl_fc_sni" => "{tls.server_name}".to_owned(),
        "ssl_fc_protocol" => "{tls.version}".to_owned(),
        "ssl_fc_cipher" => "{tls.cipher}".to_owned(),
        "ssl_c_s_dn" if argument.is_empty() => "{tls.client_subject}".to_owned(),
        "unique-id" | "uuid" if argument.is_empty() => "{request_id}".to_owned(),
        "be_name" if matches!(side, Side::Response) => "{upstream}".to_owned(),
        "srv_name" if matches!(side, Side::Response) => "{server}".to_owned(),
        "str" => escaped(argument),
        _ => return None,
    })
}

/// Current value of a field.
fn of_field(name: &str, original: &str, side: Side<'_>) -> Option<String> {
    match side {
        Side::Request(changed, _) => changed.value(name, original),
        Side::Response => Some(original.to_owned()),
    }
}

/// Current value of the path.
fn path(side: Side<'_>) -> Option<String> {
    let Side::Request(changed, _) = side else {
        return Some("{path}".to_owned());
    };
    match &changed.path {
        PathState::Original => Some("{path}".to_owned()),
        PathState::Constant(path) => Some(escaped(path)),
        PathState::Moved { .. } | PathState::Unclear => None,
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::super::request_changes::{FieldChange, Names};
    use super::*;

    #[test]
    fn formats_are_converted_to_templates() {
        for (text, expected) in [
            (
                "https://%[hdr(host)]%[capture.req.uri]",
                Ok("https://{host}{uri}"),
            ),
            ("%[ssl_fc,iif(https,http)]", Ok("{scheme}")),
            ("%[req.hdr(X-A)]{}", Ok("{header:X-A}{{}}")),
            ("%ci:%cp 100%%", Ok("{client.address}:{client.port} 100%")),
            ("%[src,ipmask(24)]", Err("%[src,ipmask(24)]")),
            ("%Tq", Err("%Tq")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            let changed = RequestChanges::default();
            let side = Side::Request(&changed, "front");
            assert_eq!(template(text, side), expected, "{text}");
        }
    }

    #[test]
    fn formats_use_changed_request() {
        let mut changed = RequestChanges::default();
        let is = |name: &str| Names::One(name.to_owned());
        changed.change(is("X-A"), FieldChange::Set("{client.address}".to_owned()));
        changed.change(is("X-B"), FieldChange::Removed);
        changed.move_path("/a/", "/");
        let side = Side::Request(&changed, "front");
        for (text, expected) in [
            ("%[req.hdr(x-a)]", Some("{client.address}")),
            ("<%[req.hdr(X-B)]>", Some("<>")),
            ("%[req.hdr(X-C)]", Some("{header:X-C}")),
            ("%[path]", None),
            ("%[url]", None),
            ("%[capture.req.uri]", Some("{uri}")),
            ("%b %s", Some("front <NOSRV>")),
        ] {
            assert_eq!(template(text, side).ok().as_deref(), expected, "{text}");
        }
    }
}
