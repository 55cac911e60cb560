//! Connections that send one request and then stay idle, to measure a server's memory per connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::KERNEL_FILES_OPEN_MAX;

const RESPONSE_WAIT_MAX: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// File descriptors other than connections: for the sampler, and 256 for everything else.
const OTHER_FILES: u64 = 256 + KERNEL_FILES_OPEN_MAX as u64;

/// Open connections that received one response each. Dropping them resets them, so that no port stays in TIME_WAIT.
#[derive(Debug)]
pub(super) struct IdleConnections(Vec<TcpStream>);

impl IdleConnections {
    /// Opens `count` connections one after the other; stops if `go_on`, called before each, returns false.
    pub(super) fn open(
        port: u16,
        count: u32,
        mut go_on: impl FnMut(u32) -> bool,
    ) -> io::Result<IdleConnections> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let request = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        let mut connections = IdleConnections(Vec::with_capacity(count as usize));
        for number in 0..count {
            if !go_on(number) {
                return Err(ErrorKind::Interrupted.into());
            }
            let mut stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(RESPONSE_WAIT_MAX))?;
            // If this fails, the port only stays in TIME_WAIT for a minute.
            let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
            stream.write_all(request.as_bytes())?;
            read_response(&mut stream)?;
            connections.0.push(stream);
        }
        Ok(connections)
    }

    pub(super) fn closed(&self) -> usize {
        let is_closed = |stream: &&TcpStream| {
            let mut byte = [0];
            let waits = stream.set_nonblocking(true).is_ok()
                && matches!(stream.peek(&mut byte), Err(error) if error.kind() == ErrorKind::WouldBlock);
            !waits
        };
        self.0.iter().filter(is_closed).count()
    }
}

/// Reads one response with a Content-Length.
fn read_response(stream: &mut TcpStream) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..count]);
        match response_length(&bytes) {
            Some(length) if bytes.len() >= length => return Ok(()),
            None if bytes.len() > HEAD_BYTES_MAX => return Err(ErrorKind::InvalidData.into()),
            Some(_) | None => {}
        }
    }
}

fn response_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let body = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .and_then(|length| length.trim().parse::<usize>().ok())
        .unwrap_or(0);
    Some(end + body)
}

/// Raises the limit on open files to the hard limit, for this process and its children. Returns the resulting limit.
pub(super) fn raise_open_files_max() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Checks that the limit suffices for `connections`; the error contains a remedy.
pub(super) fn check_open_files(connections: u32, open_files_max: u64) -> Result<(), String> {
    let needed = u64::from(connections) + OTHER_FILES;
    if needed <= open_files_max {
        return Ok(());
    }
    Err(format!(
        "{connections} connections need {needed} open files, but the hard limit is {open_files_max}; raise it with \
         `ulimit -Hn {needed}` as root, or LimitNOFILE= of the service"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_length_follows_content_length() {
        assert_eq!(response_length(b"HTTP/1.1 200 OK\r\n"), None);
        assert_eq!(response_length(b"HTTP/1.1 200 OK\r\n\r\n"), Some(19));
        assert_eq!(
            response_length(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
            Some(43)
        );
    }

    #[test]
    fn low_open_file_limit_suggests_ulimit() {
        assert!(check_open_files(10_000, 20_000).is_ok());
        let message = check_open_files(10_000, 1_024).expect_err("too few");
        assert!(message.contains("ulimit -Hn 11024"), "{message}");
    }
}
