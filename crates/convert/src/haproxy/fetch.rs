//! Samples by their names, such as `path_beg` or `req.hdr(host),lower`: what is looked at, and how it is compared.

/// What is looked at.
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

/// How it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Same,
    Begin,
    End,
    Part,
    Pattern,
    /// A whole part of a path.
    Directory,
    /// A whole part of a host.
    Domain,
    /// As an address, not by its letters.
    Address,
    /// As a truth value; HAProxy ignores the values beside it.
    Boolean,
    Number,
    Found,
}

/// A sample with its way of comparing, out of its name such as `path_beg` or `req.hdr(host),lower`.
pub(super) struct Fetch {
    pub(super) subject: Subject,
    pub(super) method: Method,
    pub(super) case: Case,
    pub(super) converted: Converted,
    /// Whether the sample itself is a number: how many there are.
    pub(super) counts: Counts,
    pub(super) values: Values,
    pub(super) of: Of,
}

/// The state of the request that a sample reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// With the changes of rules.
    Current,
    /// As received.
    Received,
}

/// How much of a field or of a request's target is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// All of it.
    Whole,
    /// Each part between commas (`req.hdr` of HAProxy's manual).
    Listed,
    /// Path and query together.
    WithQuery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Differs,
    Ignored,
}

/// The case to which a converter brings a sample before it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Converted {
    No,
    Lower,
    Upper,
}

impl Subject {
    /// Whether its value is compared by its letters.
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
    /// Ignores the case of letters where a converter makes them alike.
    ///
    /// # Errors
    /// When a value has letters of the other case, which the converted sample never has.
    pub(super) fn ignore_converted_case(&mut self, values: &[String]) -> Result<(), String> {
        let is_other = |letter: char| match self.converted {
            Converted::No => false,
            Converted::Lower => letter.is_ascii_uppercase(),
            Converted::Upper => letter.is_ascii_lowercase(),
        };
        if self.converted == Converted::No || self.case == Case::Ignored {
            return Ok(());
        }
        // Ranges and names of a class may have more letters than the ones in sight.
        let is_clear = |value: &String| {
            let bare = ["a-z", "A-Z", "0-9", "\\-"]
                .iter()
                .fold(value.clone(), |value, part| value.replace(part, ""));
            self.method != Method::Pattern || !bare.contains('[') || !bare.contains(['-', ':'])
        };
        if values.iter().any(|value| value.contains(is_other)) || !values.iter().all(is_clear) {
            return Err("a value has letters that the converter of the sample changes".to_owned());
        }
        self.case = Case::Ignored;
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    Value,
    Number,
}

/// A sample by its name.
pub(super) fn fetch(text: &str) -> Result<Fetch, String> {
    let mut parts = split_outside(text, ',').into_iter();
    let first = parts.next().unwrap_or_default();
    let (name, argument) = match first.split_once('(') {
        Some((name, rest)) => (name, rest.trim_end_matches(')')),
        None => (first, ""),
    };
    if argument.contains(',') {
        return Err(format!(
            "Onrush has no condition on one of several values, as in {first}"
        ));
    }
    let name = name.strip_prefix("req.").unwrap_or(name);
    let (base, method) = suffix(name);
    let header = |name: &str| match name.eq_ignore_ascii_case("host") {
        true => Subject::Host,
        false => Subject::Header(name.to_owned()),
    };
    let mut counts = Counts::Value;
    let of = match base {
        "capture.req.uri" | "capture.req.method" | "ssl_fc_sni" | "ssl_sni" => Of::Received,
        _ => Of::Current,
    };
    let subject = match base {
        "path" | "url" | "capture.req.uri" | "pathq" => Subject::Path,
        "hdr" | "fhdr" | "shdr" if !argument.is_empty() => header(argument),
        "hdr_cnt" | "fhdr_cnt" if !argument.is_empty() => {
            counts = Counts::Number;
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
        "hdr" | "shdr" => Values::Listed,
        "url" | "capture.req.uri" | "pathq" => Values::WithQuery,
        _ => Values::Whole,
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

/// The case to which the converters of a sample bring it.
///
/// # Errors
/// With a converter that changes more than that.
fn converted<'t>(
    converters: impl Iterator<Item = &'t str>,
    subject: &Subject,
    values: Values,
) -> Result<Converted, String> {
    // Paths without their query, and parameters, are decoded before they are compared.
    let is_decoded = match subject {
        Subject::Path => values == Values::Whole,
        Subject::Query(_) => true,
        _ => false,
    };
    let mut converted = Converted::No;
    for converter in converters {
        match converter {
            "lower" if subject.is_text() => converted = Converted::Lower,
            "upper" if subject.is_text() => converted = Converted::Upper,
            // The port of a host; Onrush does not compare it.
            "field(1,:)" | "host_only" | "word(1,:)" | "ltrim(.)" | "rtrim(.)"
                if matches!(subject, Subject::Host | Subject::ServerName) => {}
            "url_dec" if is_decoded => {}
            other => {
                return Err(format!(
                    "Onrush has no condition on what {other} makes of it"
                ));
            }
        }
    }
    Ok(converted)
}

/// Parts between commas that stand in no parentheses.
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

/// The name of a sample and how its suffix compares it.
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
        other => return Err(format!("Onrush does not compare by {other:?}")),
    })
}
