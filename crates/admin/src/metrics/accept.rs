//! Format of metrics by the `Accept` field (RFC 9110, 12.5.1).

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    Text,
    OpenMetrics,
    Protobuf,
}

impl Format {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// The first format with the highest weight. Without an acceptable one it is text, because a person may be reading.
    pub(super) fn negotiate(accept: &str) -> Format {
        let mut best = (Format::Text, 0);
        for range in accept.split(',') {
            let mut words = range.split(';').map(str::trim);
            let kind = words.next().unwrap_or_default().to_ascii_lowercase();
            let parameters = words.filter_map(|word| word.split_once('='));
            let parameters =
                parameters.map(|(name, value)| (name.trim(), value.trim().trim_matches('"')));
            let parameters: Vec<(&str, &str)> = parameters.collect();
            let parameter = |name: &str| {
                let its = parameters
                    .iter()
                    .find(|(it, _)| it.eq_ignore_ascii_case(name));
                its.map(|(_, value)| *value)
            };
            let is_or_missing = |name, text| parameter(name).is_none_or(|value| value == text);
            let format = match kind.as_str() {
                "application/vnd.google.protobuf"
                    if parameter("proto") == Some("io.prometheus.client.MetricFamily")
                        && parameter("encoding") == Some("delimited") =>
                {
                    Format::Protobuf
                }
                "application/openmetrics-text" if is_or_missing("version", "1.0.0") => {
                    Format::OpenMetrics
                }
                "text/plain" if is_or_missing("version", "0.0.4") => Format::Text,
                "text/*" | "*/*" => Format::Text,
                _ => continue,
            };
            let weight = parameter("q").map_or(Some(1000), parse_qvalue).unwrap_or(0);
            if weight > best.1 {
                best = (format, weight);
            }
        }
        best.0
    }
}

/// Parses a weight from 0 to 1, in thousandths.
fn parse_qvalue(text: &str) -> Option<u32> {
    let weight: f64 = text.parse().ok()?;
    (0.0..=1.0)
        .contains(&weight)
        .then(|| (weight * 1000.0).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_qvalue_selects_format() {
        let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let prometheus = |first: &str| {
            format!(
                "{first}application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
            )
        };
        for (accept, format) in [
            (String::new(), Format::Text),
            ("*/*".into(), Format::Text),
            (prometheus(""), Format::OpenMetrics),
            (prometheus(&format!("{protobuf},")), Format::Protobuf),
            (format!("{protobuf};q=0.4, text/plain;q=0.5"), Format::Text),
            (format!("{protobuf};q=0,text/plain;q=0.001"), Format::Text),
            // Other encodings and versions are not supported.
            ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text".into(), Format::Text),
            ("application/openmetrics-text;version=0.0.1".into(), Format::Text),
            ("application/OpenMetrics-text; charset=utf-8; Version=\"1.0.0\"".into(), Format::OpenMetrics),
            ("application/openmetrics-text;q=nonsense".into(), Format::Text),
            ("text/html,application/xml;q=0.9,*/*;q=0.8".into(), Format::Text),
        ] {
            assert_eq!(Format::negotiate(&accept), format, "{accept}");
        }
    }
}
