//! Destinations of the access log.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use onrush_config::plan::LogTarget;
use onrush_engine::clock::unix_time;

use super::clock::rfc3339;
use super::lines::count;

/// An open destination.
pub(super) enum Output {
    File {
        path: PathBuf,
        file: File,
        /// The last written line is incomplete.
        is_torn: bool,
    },
    /// Standard output.
    Stream,
    SyslogUnix {
        path: PathBuf,
        socket: UnixDatagram,
        host: String,
    },
    SyslogUdp {
        address: SocketAddr,
        socket: UdpSocket,
        host: String,
    },
}

/// Timeout of one message to a syslog, after which the thread checks whether the log is being closed. Until then lines
/// wait for a stalled syslog; afterwards they are lost, because no thread remains to write them.
const SYSLOG_PATIENCE: Duration = Duration::from_secs(1);

/// Facility local0, severity informational (RFC 5424 6.2.1).
const PRIORITY: u8 = 16 * 8 + 6;

impl Output {
    /// # Errors
    /// If it cannot be opened. A syslog may be absent until something is sent.
    pub(super) fn open(target: &LogTarget) -> io::Result<Output> {
        Ok(match target {
            LogTarget::File(path) => Output::File {
                file: append_to(path)?,
                path: path.clone(),
                is_torn: false,
            },
            LogTarget::StandardOutput => Output::Stream,
            LogTarget::SyslogUnix(path) => {
                let socket = UnixDatagram::unbound()?;
                // While the syslog's queue is full (10 messages by default, net.unix.max_dgram_qlen), lines wait in the
                // cores.
                socket.set_write_timeout(Some(SYSLOG_PATIENCE))?;
                Output::SyslogUnix {
                    path: path.clone(),
                    socket,
                    host: host(),
                }
            }
            LogTarget::SyslogUdp(address) => {
                let any: SocketAddr = match address {
                    SocketAddr::V4(_) => ([0; 4], 0).into(),
                    SocketAddr::V6(_) => ([0; 16], 0).into(),
                };
                Output::SyslogUdp {
                    address: *address,
                    socket: UdpSocket::bind(any)?,
                    host: host(),
                }
            }
        })
    }

    /// Reopens a file; no effect on other destinations. Fails if it cannot be opened. The previous file stays open.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        if let Output::File {
            path,
            file,
            is_torn,
        } = self
        {
            *file = append_to(path)?;
            *is_torn = false;
        }
        Ok(())
    }

    /// Writes complete lines. Waits for a syslog that does not read, until `ends` returns true.
    ///
    /// # Errors
    /// The number of lost lines, and the reason.
    pub(super) fn write(
        &mut self,
        lines: &[u8],
        ends: impl Fn() -> bool,
    ) -> Result<(), (u64, io::Error)> {
        match self {
            Output::File { file, is_torn, .. } => write_lines(file, lines, is_torn),
            Output::Stream => {
                let mut out = io::stdout().lock();
                let written = out.write_all(lines).and_then(|()| out.flush());
                written.map_err(|error| (count(lines), error))
            }
            Output::SyslogUnix { path, socket, host } => send_each(lines, host, |message| {
                loop {
                    match socket.send_to(message, &*path) {
                        Err(error) if error.kind() == ErrorKind::WouldBlock && !ends() => {}
                        sent => return sent,
                    }
                }
            }),
            Output::SyslogUdp {
                address,
                socket,
                host,
            } => send_each(lines, host, |message| socket.send_to(message, *address)),
        }
    }
}

/// The host name for messages; `-` if it is not valid there (RFC 5424 6.2.4).
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim_end();
    let is_valid =
        !name.is_empty() && name.len() <= 255 && name.bytes().all(|byte| byte.is_ascii_graphic());
    if is_valid {
        name.to_owned()
    } else {
        "-".to_owned()
    }
}

/// Opens with O_NONBLOCK for the sake of FIFOs: without a reader the open fails with ENXIO (fifo(7)), and lines that a
/// full pipe does not accept are lost. It has no effect on files.
fn append_to(path: &PathBuf) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    options.open(path)
}

/// Appends lines. If a line could be written only in part, the next ones start on a new line.
fn write_lines(
    file: &mut impl Write,
    lines: &[u8],
    is_torn: &mut bool,
) -> Result<(), (u64, io::Error)> {
    let mut left = lines;
    loop {
        let written = match *is_torn && left.len() == lines.len() {
            true => file.write(b"\n").map(|_| 0),
            false => file.write(left),
        };
        match written {
            Ok(0) if *is_torn && left.len() == lines.len() => *is_torn = false,
            Ok(0) => return Err((count(left), ErrorKind::WriteZero.into())),
            Ok(written) => left = &left[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let done = &lines[..lines.len() - left.len()];
                *is_torn |= !done.is_empty() && !done.ends_with(b"\n");
                return Err((count(left), error));
            }
        }
        if left.is_empty() {
            return Ok(());
        }
    }
}

/// Sends one message per line (RFC 5424 6).
fn send_each(
    lines: &[u8],
    host: &str,
    mut send: impl FnMut(&[u8]) -> io::Result<usize>,
) -> Result<(), (u64, io::Error)> {
    let mut failed = (0, None);
    let mut message = Vec::new();
    let process = std::process::id();
    let mut moment = Vec::new();
    rfc3339(unix_time(), &mut moment);
    let mut left = lines
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    while let Some(line) = left.next() {
        message.clear();
        // Writing to a `Vec` cannot fail.
        let _ = write!(message, "<{PRIORITY}>1 ");
        message.extend_from_slice(&moment);
        let _ = write!(message, " {host} onrush {process} access - ");
        message.extend_from_slice(line);
        let Err(error) = send(&message) else {
            continue;
        };
        let has_stopped = error.kind() == ErrorKind::WouldBlock;
        failed = (failed.0 + 1, Some(error));
        if has_stopped {
            // Each of the others would wait as long.
            failed.0 += left.count() as u64;
            break;
        }
    }
    match failed {
        (_, None) => Ok(()),
        (lost, Some(error)) => Err((lost, error)),
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the access log ")?;
        match self {
            Output::File { path, .. } => write!(f, "{}", path.display()),
            Output::Stream => f.write_str("on standard output"),
            Output::SyslogUnix { path, .. } => write!(f, "syslog:unix:{}", path.display()),
            Output::SyslogUdp { address, .. } => write!(f, "syslog:udp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    struct Disk {
        room: usize,
        written: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.room);
            self.room -= taken;
            self.written.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn log_lines_wait_for_stalled_syslog_until_close() {
        const LINES: usize = 1000;
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log");
        let syslog = UnixDatagram::bind(&path).expect("a socket");
        syslog.set_nonblocking(true).expect("an option");
        let socket = UnixDatagram::unbound().expect("a socket");
        let patience = Some(Duration::from_millis(1));
        socket.set_write_timeout(patience).expect("an option");
        let mut output = Output::SyslogUnix {
            path,
            socket,
            host: host(),
        };
        let text: String = (0..LINES).map(|line| format!("{line}\n")).collect();
        let (read, refused) = (Cell::new(0), Cell::new(0));
        let read_all = || {
            let mut message = [0; 200];
            while let Ok(bytes) = syslog.recv(&mut message) {
                let expected = format!(" {}", read.get());
                assert!(message[..bytes].ends_with(expected.as_bytes()));
                read.set(read.get() + 1);
            }
        };
        // The receiver empties its socket only at every third call of `ends`.
        let ends = || {
            refused.set(refused.get() + 1);
            if refused.get() % 3 == 0 {
                read_all();
            }
            false
        };
        assert!(output.write(text.as_bytes(), ends).is_ok());
        read_all();
        assert_eq!(read.get(), LINES);
        assert!(refused.get() >= 3, "it was never full");
        let (lost, _) = output.write(text.as_bytes(), || true).unwrap_err();
        let before = read.replace(0);
        read_all();
        assert_eq!((before, lost as usize + read.get()), (LINES, LINES));
    }

    #[test]
    fn full_disk_leaves_at_most_one_partial_line() {
        for room in 0..20 {
            let mut disk = Disk {
                room,
                written: Vec::new(),
            };
            let mut is_torn = false;
            let outcome = write_lines(&mut disk, b"one\ntwo\nthree\n", &mut is_torn);
            let whole = disk.written.iter().filter(|&&byte| byte == b'\n').count() as u64;
            match room {
                14.. => outcome.expect("there is room"),
                _ => assert_eq!(outcome.expect_err("it is full").0, 3 - whole),
            }
            assert_eq!(is_torn, ![0, 4, 8].contains(&room) && room < 14, "{room}");
            disk.room = 100;
            write_lines(&mut disk, b"four\n", &mut is_torn).expect("there is room");
            assert!(!is_torn);
            assert!(disk.written == b"four\n" || disk.written.ends_with(b"\nfour\n"));
        }
    }

    #[test]
    fn slow_unix_syslog_receives_all_lines() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log");
        let syslog = UnixDatagram::bind(&path).expect("a socket");
        let mut output = Output::open(&LogTarget::SyslogUnix(path)).expect("a socket");
        let lines: Vec<u8> = (0..1000)
            .flat_map(|line| format!("line {line}\n").into_bytes())
            .collect();
        std::thread::scope(|scope| {
            let written = scope.spawn(move || output.write(&lines, || false));
            let mut buffer = [0; 1024];
            for line in 0..1000 {
                let bytes = syslog.recv(&mut buffer).expect("a message");
                let message = String::from_utf8_lossy(&buffer[..bytes]);
                assert!(message.ends_with(&format!(" line {line}")), "{message}");
            }
            written.join().expect("no panic").expect("nothing is lost");
        });
    }
}
