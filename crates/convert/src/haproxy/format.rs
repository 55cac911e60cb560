//! Texts with samples and the letters of log formats, and what they are in Onrush.

use super::fetch::split_outside;
use crate::route::escaped;

/// The text as a template of Onrush.
///
/// # Errors
/// With the sample that Onrush has nothing for.
pub(super) fn template(text: &str) -> Result<String, String> {
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
            out += &known(sample).ok_or_else(|| format!("%[{sample}]"))?;
            rest = after;
        } else {
            let is_part = |letter: char| letter.is_ascii_alphabetic();
            let end = behind
                .find(|letter| !is_part(letter))
                .unwrap_or(behind.len());
            let (name, after) = behind.split_at(end);
            out += letters(name).ok_or_else(|| format!("%{name}"))?;
            rest = after;
        }
    }
    out += &escaped(rest);
    Ok(out)
}

fn letters(name: &str) -> Option<&'static str> {
    Some(match name {
        "ci" => "{client.address}",
        "cp" => "{client.port}",
        "HM" => "{method}",
        "HP" => "{path}",
        "HU" | "HPO" => "{uri}",
        "b" => "{upstream}",
        "s" => "{server}",
        "ID" => "{request_id}",
        "sslv" => "{tls.version}",
        "sslc" => "{tls.cipher}",
        _ => return None,
    })
}

/// What a sample is in Onrush.
fn known(sample: &str) -> Option<String> {
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
        return Some("{host.name}".to_owned());
    }
    // What is the same in nearly all requests.
    converters.retain(|converter| !(is_host && *converter == "lower"));
    if !converters.is_empty() {
        return None;
    }
    Some(match name {
        "src" => "{client.address}".to_owned(),
        "src_port" => "{client.port}".to_owned(),
        "hdr" | "fhdr" if is_host => "{host}".to_owned(),
        "hdr" | "fhdr" if is_name(argument) => format!("{{header:{argument}}}"),
        "path" => "{path}".to_owned(),
        "query" => "{query}".to_owned(),
        "url" | "pathq" | "capture.req.uri" => "{uri}".to_owned(),
        "method" | "capture.req.method" => "{method}".to_owned(),
        "ssl_fc_sni" => "{tls.server_name}".to_owned(),
        "ssl_fc_protocol" => "{tls.version}".to_owned(),
        "ssl_fc_cipher" => "{tls.cipher}".to_owned(),
        "ssl_c_s_dn" if argument.is_empty() => "{tls.client_subject}".to_owned(),
        "unique-id" | "uuid" | "rand" if argument.is_empty() => "{request_id}".to_owned(),
        "be_name" => "{upstream}".to_owned(),
        "srv_name" => "{server}".to_owned(),
        "str" => escaped(argument),
        _ => return None,
    })
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_become_templates() {
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
            assert_eq!(template(text), expected, "{text}");
        }
    }
}
