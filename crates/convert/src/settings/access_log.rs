//! `[log]`: the access log. Onrush has one for all requests.

use crate::document::{Section, Value};
use crate::source::directive::Directive;
use crate::source::note::Notes;

/// The destination, and the directive that set it first.
#[derive(Debug, Default)]
pub(crate) struct AccessLog<'a>(Option<(String, &'a Directive)>);

impl<'a> AccessLog<'a> {
    /// Logs to `place`, a destination in the syntax of Onrush. The first destination counts;
    /// a directive with another one gets a note.
    pub(crate) fn set_destination(
        &mut self,
        place: String,
        directive: &'a Directive,
        notes: &mut Notes,
    ) {
        let (known, first) = self.0.get_or_insert((place.clone(), directive));
        let how = match *known == place {
            true => "lines have the format combined; set format to change it".to_owned(),
            false => format!(
                "there is one access log for all requests: the one of {}",
                first.place
            ),
        };
        notes.approximated(directive, how);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn written(&self) -> Section {
        let mut section = Section::new("[log]");
        if let Some((place, directive)) = &self.0 {
            section.put_with_comment("access", Value::text(place), directive.origin());
        }
        section
    }
}

/// The destination of a syslog server in the syntax of Onrush: a Unix socket, or an IP address with an optional port.
/// None for host names.
pub(crate) fn syslog(server: &str) -> Option<String> {
    if let Some(path) = server.strip_prefix("unix:") {
        return Some(format!("syslog:unix:{path}"));
    }
    if server.starts_with('/') {
        return Some(format!("syslog:unix:{server}"));
    }
    let address = match server.parse::<std::net::IpAddr>() {
        Ok(address) => std::net::SocketAddr::new(address, 514),
        Err(_) => server.parse().ok()?,
    };
    Some(format!("syslog:udp:{address}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syslog_target_is_socket_or_address() {
        for (text, expected) in [
            ("unix:/dev/log", Some("syslog:unix:/dev/log")),
            ("/dev/log", Some("syslog:unix:/dev/log")),
            ("127.0.0.1", Some("syslog:udp:127.0.0.1:514")),
            ("192.0.2.1:5514", Some("syslog:udp:192.0.2.1:5514")),
            ("loghost", None),
        ] {
            assert_eq!(syslog(text).as_deref(), expected, "{text}");
        }
    }
}
