//! Use of this machine's local ports, as the kernel reports it.

use std::fs;

use crate::plan::reach::local_ports;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ports {
    /// Size of the ephemeral port range.
    pub(crate) local: u64,
    /// Connections of all programs in TIME_WAIT, which keep their port.
    pub(crate) time_wait: u64,
}

impl Ports {
    /// Reads the current values; `None` if the kernel does not report them.
    pub(crate) fn now() -> Option<Ports> {
        let sockets = fs::read_to_string("/proc/net/sockstat").ok()?;
        Some(Ports {
            local: local_ports()?.len() as u64,
            time_wait: time_wait(&sockets)?,
        })
    }
}

/// Returns the number after `tw` in `TCP: inuse 5 orphan 0 tw 12 alloc 9 mem 2`; it includes IPv6.
fn time_wait(sockets: &str) -> Option<u64> {
    let line = sockets.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_ascii_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_wait_is_parsed() {
        let text =
            "sockets: used 200\nTCP: inuse 5 orphan 0 tw 12 alloc 9 mem 2\nUDP: inuse 1 mem 0\n";
        assert_eq!(time_wait(text), Some(12));
        assert_eq!(time_wait("TCP: inuse 5\n"), None);
        assert_eq!(time_wait(""), None);
        let here = Ports::now().expect("Linux says it");
        assert!(here.local > 0);
    }
}
