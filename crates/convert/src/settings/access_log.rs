//! Where a line for each request goes: `[log]`, which Onrush has once.

use crate::document::{Section, Value};
use crate::source::directive::Directive;
use crate::source::note::Notes;

/// What has been said of it.
#[derive(Debug, Default)]
pub(crate) struct AccessLog<'a>(Option<(String, &'a Directive)>);

impl<'a> AccessLog<'a> {
    /// `directive` has lines go to `place`, as Onrush writes it.
    pub(crate) fn say(&mut self, place: String, directive: &'a Directive, notes: &mut Notes) {
        let (known, first) = self.0.get_or_insert((place.clone(), directive));
        let how = match *known == place {
            true => "lines have the format combined; format may say another".to_owned(),
            false => format!("there is one log for all requests: that of {}", first.place),
        };
        notes.approximated(directive, how);
    }

    /// Whether there is any.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// `[log]`.
    pub(crate) fn written(&self) -> Section {
        let mut section = Section::new("[log]");
        if let Some((place, directive)) = &self.0 {
            section.put_with_comment("access", Value::text(place), directive.origin());
        }
        section
    }
}

/// A syslog's address, an IP address with or without a port or a Unix socket, as Onrush writes it.
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
    fn a_syslog_is_a_socket_or_an_address() {
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
