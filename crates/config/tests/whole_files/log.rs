//! `[log]`: meaning, and error messages.

use std::time::Duration;

use onrush_config::plan::{
    AccessLog, ErrorFormat, ErrorLog, LogFilter, LogFormat, LogLevel, LogTarget,
};

use crate::support::{MessageCases, check_errors, parsed};

#[test]
fn access_log_settings_are_parsed() {
    let combined = |to| AccessLog {
        to,
        format: LogFormat::Combined,
        select: LogFilter::ALL,
    };
    let select = |keys: &str| {
        let text = format!("[log]\naccess = \"stdout\"\n{keys}\n[[route]]\nsynthetic = true\n");
        parsed(&text).plan.access_log.expect("there is one").select
    };
    for (text, log) in [
        ("", None),
        ("[log]\naccess = \"off\"\n", None),
        (
            "[log]\naccess = \"a.log\"\n",
            Some(combined(LogTarget::File("conf/a.log".into()))),
        ),
        (
            "[log]\naccess = \"stdout\"\n",
            Some(combined(LogTarget::StandardOutput)),
        ),
        (
            "[log]\naccess = \"-\"\n",
            Some(combined(LogTarget::StandardOutput)),
        ),
        (
            "[log]\naccess = \"./-\"\n",
            Some(combined(LogTarget::File("conf/./-".into()))),
        ),
        (
            "[log]\naccess = \"syslog:unix:/dev/log\"\n",
            Some(combined(LogTarget::SyslogUnix("/dev/log".into()))),
        ),
        (
            "[log]\naccess = \"syslog:udp:[::1]:514\"\n",
            Some(combined(LogTarget::SyslogUdp(
                "[::1]:514".parse().expect("an address"),
            ))),
        ),
    ] {
        let parsed = parsed(&format!("{text}[[route]]\nlog = false\nsynthetic = true\n"));
        assert_eq!(parsed.plan.access_log, log, "{text}");
        assert!(!parsed.plan.routes[0].log);
    }
    assert_eq!(select(""), LogFilter::ALL);
    let narrow = |errors, slower_than: Option<u64>, sample| LogFilter {
        errors,
        slower_than: slower_than.map(Duration::from_millis),
        sample,
    };
    assert_eq!(select("only = \"errors\""), narrow(true, None, 0));
    assert_eq!(
        select("slower_than = \"500ms\""),
        narrow(false, Some(500), 0)
    );
    assert_eq!(select("sample = \"1%\""), narrow(false, None, 100));
    let all = "only = \"errors\"\nslower_than = \"1s\"\nsample = \"50%\"";
    assert_eq!(select(all), narrow(true, Some(1000), 5000));
}

#[test]
fn invalid_log_settings_are_reported() {
    const BAD: &MessageCases = &[
        (
            "[log]\nformat = \"json\"",
            &[
                "1:1: [log] has no access: expected the path of a file, \"stdout\", \"syslog:unix:/dev/log\", \"syslog:udp:IP:PORT\" or \"off\"",
            ],
        ),
        (
            "[log]\naccess = \"syslog:tcp:h:1\"",
            &[
                "2:10: \"syslog:tcp:h:1\" is not a syslog address: expected \"syslog:unix:/dev/log\" or \"syslog:udp:IP:PORT\"",
            ],
        ),
        (
            "[log]\naccess = \"a\"\nformat = \"{stauts}\"",
            &["3:10: unknown field {stauts}; nearest: {status}"],
        ),
        (
            "[log]\naccess = \"a\"\nformt = \"json\"",
            &["3:1: unknown key \"formt\" in [log]; nearest: \"format\""],
        ),
        (
            "[log]\nerror_level = \"loud\"",
            &[
                "2:15: unknown level \"loud\": expected one of \"error\", \"warn\", \"info\", \"debug\"",
            ],
        ),
        (
            "[log]\nerror_level = \"warn\"\nonly = \"errors\"",
            &[
                "1:1: [log] has no access: expected the path of a file, \"stdout\", \"syslog:unix:/dev/log\", \"syslog:udp:IP:PORT\" or \"off\"",
            ],
        ),
    ];
    check_errors(BAD);
}

#[test]
fn error_log_works_without_access_log() {
    for (keys, format, level) in [
        ("", ErrorFormat::Text, LogLevel::Info),
        (
            "error_level = \"debug\"",
            ErrorFormat::Text,
            LogLevel::Debug,
        ),
        ("error_format = \"json\"", ErrorFormat::Json, LogLevel::Info),
        (
            "error_format = \"text\"\nerror_level = \"error\"",
            ErrorFormat::Text,
            LogLevel::Error,
        ),
    ] {
        let head = if keys.is_empty() { "" } else { "[log]\n" };
        let parsed = parsed(&format!("{head}{keys}\n[[route]]\nsynthetic = true\n"));
        assert_eq!(parsed.plan.error_log, ErrorLog { format, level }, "{keys}");
        assert_eq!(parsed.plan.access_log, None);
    }
}
