//! `[log]`: access log and error log.

use std::path::PathBuf;
use std::time::Duration;

use super::kinds::{TIMEOUT, place_of_value};
use crate::diagnostic::Diagnostics;
use crate::plan::{AccessLog, ErrorFormat, ErrorLog, LogFilter, LogFormat, LogLevel, LogTarget};
use crate::section::{Keys, Kind, Section};
use crate::value::{self, Invalid};

const KEYS: Keys = Keys::new(&[
    "access",
    "format",
    "only",
    "slower_than",
    "sample",
    "error_format",
    "error_level",
]);

const OF_ACCESS: [&str; 4] = ["format", "only", "slower_than", "sample"];

enum AddressValue {
    Off,
    To(LogTarget),
}

const WHERE: Kind<AddressValue> = Kind {
    expected: "the path of a file, \"stdout\", \"syslog:unix:/dev/log\", \"syslog:udp:IP:PORT\" or \"off\"",
    parse: parse_where,
};

fn parse_where(text: &str) -> Result<AddressValue, Invalid> {
    let target = match text {
        "off" => return Ok(AddressValue::Off),
        "stdout" | "-" => LogTarget::StandardOutput,
        _ => match text.strip_prefix("syslog:") {
            Some(place) => parse_syslog(place, text)?,
            None if text.is_empty() || text.contains('\0') => {
                return Err(Invalid::new(format!("{text:?} is not a path")));
            }
            None => LogTarget::File(text.into()),
        },
    };
    Ok(AddressValue::To(target))
}

fn parse_syslog(place: &str, text: &str) -> Result<LogTarget, Invalid> {
    if let Some(path) = place.strip_prefix("unix:").filter(|path| !path.is_empty()) {
        return Ok(LogTarget::SyslogUnix(PathBuf::from(path)));
    }
    let address = place
        .strip_prefix("udp:")
        .and_then(|address| address.parse().ok());
    address.map(LogTarget::SyslogUdp).ok_or_else(|| {
        Invalid::new(format!(
            "{text:?} is not a syslog address: expected \"syslog:unix:/dev/log\" or \"syslog:udp:IP:PORT\""
        ))
    })
}

const FORMAT: Kind<LogFormat> = Kind {
    expected: "\"json\", \"combined\", or text with fields such as \"{client} {target} {status}\"",
    parse: value::parse_log_format,
};

const ONLY: Kind<()> = Kind {
    expected: "\"errors\"",
    parse: |text| value::parse_name("choice of requests", text, &[("errors", ())]),
};

const SHARE: Kind<u16> = Kind {
    expected: "a share such as \"1%\"",
    parse: value::parse_share,
};

const ERROR_FORMAT: Kind<ErrorFormat> = Kind {
    expected: "\"text\" or \"json\"",
    parse: |text| {
        let known = [("text", ErrorFormat::Text), ("json", ErrorFormat::Json)];
        value::parse_name("format of the error log", text, &known)
    },
};

const ERROR_LEVEL: Kind<LogLevel> = Kind {
    expected: "\"error\", \"warn\", \"info\" or \"debug\"",
    parse: |text| value::parse_name("level", text, &LogLevel::ALL),
};

pub(super) fn read_log(
    file: &Section<'_, '_>,
    findings: &mut Diagnostics<'_>,
) -> (Option<AccessLog>, ErrorLog) {
    const EXPECTED: &str =
        "a table such as { access = \"/var/log/onrush/access.log\", format = \"json\" }";
    let Some(value) = file.value("log") else {
        return Default::default();
    };
    let Some(section) = Section::of("[log]", value, EXPECTED, KEYS, findings) else {
        return Default::default();
    };
    let format = section.read("error_format", ERROR_FORMAT, findings);
    let level = section.read("error_level", ERROR_LEVEL, findings);
    let error_log = ErrorLog {
        format: format.unwrap_or_default(),
        level: level.unwrap_or_default(),
    };
    (read_access_log(&section, findings), error_log)
}

fn read_access_log(section: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> Option<AccessLog> {
    let is_wanted = OF_ACCESS.iter().any(|key| section.value(key).is_some());
    if is_wanted
        || section
            .value("error_format")
            .or(section.value("error_level"))
            .is_none()
    {
        section.require("access", WHERE.expected, findings);
    }
    let target = section.read("access", WHERE, findings);
    let format = section.read("format", FORMAT, findings);
    let select = read_select(section, findings);
    let to = match target? {
        AddressValue::Off => return None,
        AddressValue::To(LogTarget::File(path)) => {
            LogTarget::File(findings.resolve(&path, &place_of_value(section, "access")))
        }
        AddressValue::To(other) => other,
    };
    Some(AccessLog {
        to,
        format: format.unwrap_or(LogFormat::Combined),
        select,
    })
}

fn read_select(section: &Section<'_, '_>, findings: &mut Diagnostics<'_>) -> LogFilter {
    let only = section.read("only", ONLY, findings);
    let slower_than: Option<Duration> = section.read("slower_than", TIMEOUT, findings);
    let sample = section.read("sample", SHARE, findings);
    let is_narrowed = only.is_some() || slower_than.is_some();
    LogFilter {
        // With only a sample, failed requests are not always logged.
        errors: only.is_some() || !is_narrowed && sample.is_none(),
        slower_than,
        sample: sample.unwrap_or(if is_narrowed { 0 } else { 10_000 }),
    }
}
