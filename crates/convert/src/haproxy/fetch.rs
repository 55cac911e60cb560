//! Parses samples such as `path_beg` or `req.hdr(host),lower`: the part of the request, and how it is compared.

/// Part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Path,
    Host,
    /// The server name of the TLS handshake.
    ServerName,
    Header(String),
    Query(String),
    Cookie(String),
    Method,
    Client,
    Scheme,
    Port,
    Truth(Truth),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    Always,
    Never,
}

/// Method of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Same,
    Begin,
    End,
    Part,
    Pattern,
    /// One or more whole segments of a path (`_dir`).
    Directory,
    /// One or more whole labels of a host (`_dom`).
    Domain,
    /// As an IP address, not as text.
    Address,
    /// As a Boolean; HAProxy ignores the values of the ACL.
    Boolean,
    Number,
    Found,
}

/// A parsed sample.
pub(super) struct Fetch {
    pub(super) subject: Subject,
    pub(super) method: Method,
    pub(super) case: Case,
    pub(super) converted: CaseConversion,
    /// Whether the sample is a number of values.
    pub(super) counts: SampleValue,
    pub(super) values: ComparedPart,
    pub(super) of: SampleState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleState {
    /// With the changes by earlier rules.
    Current,
    Received,
}

/// Extent of the compared text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparedPart {
    Whole,
    /// Each element of a comma-separated list (`req.hdr` in HAProxy's manual).
    Listed,
    /// Path and query together.
    WithQuery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Differs,
    Ignored,
}

/// Case of the letters after the converters of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaseConversion {
    No,
    Lower,
    Upper,
}

impl Subject {
    /// Whether its value is compared as text.
    fn is_text(&self) -> bool {
        matches!(
            self,
            Subject::Path
                | Subject::Host
                | Subject::ServerName
                | Subject::Header(_)
                | Subject::Query(_)
                | Subject::Cookie(_)
        )
    }
}

impl Fetch {
    /// Ignores case if a converter makes all letters lower or upper case. Fails if a value has letters of the other
    /// case, which the converted sample never contains.
    pub(super) fn ignore_converted_case(&mut self, values: &[String]) -> Result<(), String> {
        let is_other = |letter: char| match self.converted {
            CaseConversion::No => false,
            CaseConversion::Lower => letter.is_ascii_uppercase(),
            CaseConversion::Upper => letter.is_ascii_lowercase(),
        };
        if self.converted == CaseConversion::No || self.case == Case::Ignored {
            return Ok(());
        }
        // Ranges and named classes may include letters that are not written out.
        let is_clear = |value: &String| {
            let bare = ["a-z", "A-Z", "0-9", "\\-"]
                .iter()
                .fold(value.clone(), |value, part| value.replace(part, ""));
            self.method != Method::Pattern || !bare.contains('[') || !bare.contains(['-', ':'])
        };
        if values.iter().any(|value| value.contains(is_other)) || !values.iter().all(is_clear) {
            return Err("a value has letters that the converter of the sample (lower or upper) never produces".to_owned());
        }
        self.case = Case::Ignored;
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleValue {
    Value,
    Number,
}

pub(super) fn fetch(text: &str) -> Result<Fetch, String> {
    let mut parts = split_outside(text, ',').into_iter();
    let first = parts.next().unwrap_or_default();
    let (name, argument) = match first.split_once('(') {
        Some((name, rest)) => (name, rest.trim_end_matches(')')),
        None => (first, ""),
    };
    if argument.contains(',') {
        return Err(format!(
            "Onrush has no condition on a single value of several, as in {first}"
        ));
    }
    let name = name.strip_prefix("req.").unwrap_or(name);
    let (base, method) = suffix(name);
    let header = |name: &str| match name.eq_ignore_ascii_case("host") {
        true => Subject::Host,
        false => Subject::Header(name.to_owned()),
    };
    let mut counts = SampleValue::Value;
    let of = match base {
        "capture.req.uri" | "capture.req.method" | "ssl_fc_sni" | "ssl_sni" => {
            SampleState::Received
        }
        _ => SampleState::Current,
    };
    let subject = match base {
        "path" | "url" | "capture.req.uri" | "pathq" => Subject::Path,
        "hdr" | "fhdr" | "shdr" if !argument.is_empty() => header(argument),
        "hdr_cnt" | "fhdr_cnt" if !argument.is_empty() => {
            counts = SampleValue::Number;
            header(argument)
        }
        "ssl_fc_sni" | "ssl_sni" => Subject::ServerName,
        "urlp" | "url_param" if !argument.is_empty() => Subject::Query(argument.to_owned()),
        "cook" if !argument.is_empty() => Subject::Cookie(argument.to_owned()),
        "method" | "capture.req.method" => Subject::Method,
        "src" => Subject::Client,
        "ssl_fc" => Subject::Scheme,
        "dst_port" => Subject::Port,
        "always_true" => Subject::Truth(Truth::Always),
        "always_false" => Subject::Truth(Truth::Never),
        _ => return Err(format!("Onrush has no condition on {text}")),
    };
    let values = match base {
        "hdr" | "shdr" => ComparedPart::Listed,
        "url" | "capture.req.uri" | "pathq" => ComparedPart::WithQuery,
        _ => ComparedPart::Whole,
    };
    let converted = converted(parts, &subject, values)?;
    Ok(Fetch {
        values,
        of,
        subject,
        method,
        case: Case::Differs,
        converted,
        counts,
    })
}

/// The case of letters after the converters. Fails if a converter changes anything else.
fn converted<'t>(
    converters: impl Iterator<Item = &'t str>,
    subject: &Subject,
    values: ComparedPart,
) -> Result<CaseConversion, String> {
    // Onrush decodes paths and parameters before it compares them.
    let is_decoded = match subject {
        Subject::Path => values == ComparedPart::Whole,
        Subject::Query(_) => true,
        _ => false,
    };
    let mut converted = CaseConversion::No;
    for converter in converters {
        match converter {
            "lower" if subject.is_text() => converted = CaseConversion::Lower,
            "upper" if subject.is_text() => converted = CaseConversion::Upper,
            // These remove the port or dots at the ends, which Onrush does not compare.
            "field(1,:)" | "host_only" | "word(1,:)" | "ltrim(.)" | "rtrim(.)"
                if matches!(subject, Subject::Host | Subject::ServerName) => {}
            "url_dec" if is_decoded => {}
            other => {
                return Err(format!("Onrush has no condition on the result of {other}"));
            }
        }
    }
    Ok(converted)
}

/// Splits a text at separators outside of parentheses.
pub(super) fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut begin) = (0_usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            letter if letter == separator && depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// Splits a sample's name from the suffix for the method of comparison.
fn suffix(name: &str) -> (&str, Method) {
    const SUFFIXES: [(&str, Method); 8] = [
        ("_beg", Method::Begin),
        ("_end", Method::End),
        ("_sub", Method::Part),
        ("_reg", Method::Pattern),
        ("_dir", Method::Directory),
        ("_dom", Method::Domain),
        ("_str", Method::Same),
        ("_ip", Method::Address),
    ];
    for (suffix, method) in SUFFIXES {
        if let Some(base) = name.strip_suffix(suffix) {
            return (base, method);
        }
    }
    (name, Method::Same)
}

pub(super) fn method(name: &str) -> Result<Method, String> {
    Ok(match name {
        "str" => Method::Same,
        "ip" => Method::Address,
        "bool" => Method::Boolean,
        "int" => Method::Number,
        "beg" => Method::Begin,
        "end" => Method::End,
        "sub" => Method::Part,
        "reg" => Method::Pattern,
        "dir" => Method::Directory,
        "dom" => Method::Domain,
        "found" => Method::Found,
        other => return Err(format!("Onrush has no comparison {other:?}")),
    })
}
