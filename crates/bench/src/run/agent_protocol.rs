//! Protocol between bench and an agent: one JSON value per line, of bounded length.
//!
//! Bench sends requests and the agent responds in order. Two kinds of lines may come at any time: heartbeats, which are
//! answered at once, and notices that a program has ended.

use std::io::{self, BufRead, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::child::UnsuccessfulExit;
use crate::collect::sampler::Window;
use crate::limits::LINE_BYTES_MAX;
use crate::outcome::Sample;
use crate::placement::Placement;
use crate::scenario::{Collect, Role};

/// Version of the protocol. Both ends are the same program, so a mismatch means a damaged copy.
pub(super) const PROTOCOL: u32 = 1;

/// A request to an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    Beat,
    /// Returns the wall clock.
    Clock,
    /// Finds the executable of a command.
    Find {
        command: String,
    },
    /// Returns a free port that is not in `taken`.
    Port {
        taken: Vec<u16>,
    },
    /// Creates an empty directory for a role.
    Directory {
        role: Role,
    },
    /// Writes a file to it.
    Text {
        role: Role,
        name: String,
        text: String,
    },
    /// Writes a file of this size to it.
    Filling {
        role: Role,
        name: String,
        size: u64,
    },
    /// Pins the agent to CPUs where it disturbs no role.
    StepAside {
        placement: Placement,
        under_test: Role,
    },
    Start {
        role: Role,
        line: Vec<String>,
    },
    /// Returns the state of a role's program and, with a port, whether it accepts connections.
    Look {
        role: Role,
        port: Option<u16>,
    },
    /// Opens a window over these roles.
    Open {
        roles: Vec<Role>,
        collect: Collect,
    },
    /// Adds a role that was just started to the window.
    Join {
        role: Role,
    },
    Close,
    Output {
        role: Role,
    },
    /// Returns its report file, if it wrote one.
    Report {
        role: Role,
    },
    Stop {
        role: Role,
    },
    Set {
        setting: Setting,
        value: String,
    },
    /// Restores all settings and reverts tuning.
    SetBack,
    /// Tunes the host (`onrush tune apply`) until `SetBack`.
    Tune {
        words: Vec<String>,
    },
    /// Stops and restores everything, and ends the agent.
    End,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Setting {
    /// A sysctl by its dotted name.
    Sysctl(String),
    /// RPS masks of all receive queues of an interface.
    Steering(String),
}

/// A response of an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Response {
    Done,
    /// Failure, with the reason.
    Refused(String),
    /// Seconds since 1970.
    Clock(f64),
    /// Path of an executable, if found.
    Found(Option<String>),
    Port(u16),
    Seen(ProgramStatus),
    /// A piece of text; `None` if there is no file.
    Text(Option<String>),
    Row(Box<Sample>),
    Window(Box<ClosedWindow>),
    /// Old values of a setting: path and value of each of its files.
    Was(Vec<(String, String)>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ProgramStatus {
    pub(super) has_ended: bool,
    pub(super) is_listening: bool,
    pub(super) last_words: String,
    pub(super) failure: Option<UnsuccessfulExit>,
    pub(super) was_cut: bool,
}

/// A window of a host without its rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ClosedWindow {
    /// Time at which it was opened, in seconds since 1970 by the host's wall clock.
    pub(super) opened_at: f64,
    /// CPU time of each CPU's `ksoftirqd` as a share, in the order of the CPUs.
    pub(super) ksoftirqd: Vec<f64>,
    pub(super) window: Window,
}

/// A line sent to an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RequestLine {
    pub(super) id: u64,
    pub(super) ask: Request,
}

/// A line sent by an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AgentLine {
    Hello(Box<Hello>),
    Beat,
    Ended(Role),
    /// A response or a part of one.
    Answer {
        id: u64,
        answer: Response,
        /// Whether further parts follow.
        more: bool,
    },
}

/// First line of an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) version: String,
    pub(super) directory: String,
    /// CPUs available to it, with SMT siblings adjacent.
    pub(super) cpus: Vec<usize>,
    pub(super) machine: serde_json::Value,
}

/// Writes a line.
///
/// # Errors
/// Returns an error of the stream.
pub(super) fn write_line(stream: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    stream.flush()
}

/// Reads a line without its end; `None` at the end of the stream, also within a line.
///
/// # Errors
/// Returns an error of the stream, and one for a line that is too long.
pub(super) fn read_line(stream: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    stream.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.pop() == Some(b'\n') {
        return String::from_utf8(line).map(Some).map_err(io::Error::other);
    }
    if line.len() as u64 + 1 >= LINE_BYTES_MAX {
        let said = format!("a line has more than {LINE_BYTES_MAX} bytes");
        return Err(io::Error::other(said));
    }
    Ok(None)
}

/// Parses a line.
///
/// # Errors
/// If it is not valid.
pub(super) fn parse_line<T: DeserializeOwned>(line: &str) -> io::Result<T> {
    serde_json::from_str(line).map_err(io::Error::other)
}

/// Reads arbitrary bytes as both ends would, and checks that valid lines survive a round trip. For tests and fuzzing,
/// which have no other access to the protocol.
pub fn check_any_bytes(bytes: &[u8]) {
    let mut stream = bytes;
    while let Ok(Some(line)) = read_line(&mut stream) {
        if let Ok(asked) = parse_line::<RequestLine>(&line) {
            said_again(&asked);
        }
        if let Ok(said) = parse_line::<AgentLine>(&line) {
            said_again(&said);
        }
    }
}

fn said_again<T: Serialize + DeserializeOwned>(value: &T) {
    let mut text = Vec::new();
    write_line(&mut text, value).expect("the buffer fits into memory");
    let line = read_line(&mut &text[..]);
    let line = line
        .expect("it fits into the message it came from")
        .expect("a line");
    parse_line::<T>(&line).expect("what was parsed once can be parsed again");
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn partial_line_is_end_of_stream() {
        let mut stream = Vec::new();
        let ask = Request::Find {
            command: "a\nb".into(),
        };
        write_line(&mut stream, &RequestLine { id: 7, ask }).expect("memory");
        stream.extend(b"{\"id\":8,");
        let mut stream = Cursor::new(stream);
        let line = read_line(&mut stream).expect("memory").expect("a line");
        let asked: RequestLine = parse_line(&line).expect("ours");
        assert!(matches!(asked.ask, Request::Find { command } if command == "a\nb"));
        assert_eq!(asked.id, 7);
        assert!(read_line(&mut stream).expect("memory").is_none());
    }

    #[test]
    fn overlong_line_is_an_error() {
        let mut stream = io::BufReader::new(io::repeat(b'x'));
        let error = read_line(&mut stream).expect_err("it never ends");
        assert!(error.to_string().contains("more than"), "{error}");
    }

    #[test]
    fn malformed_request_is_refused() {
        for line in [
            "",
            "{}",
            "{\"id\":1,\"ask\":\"sing\"}",
            "{\"id\":-1,\"ask\":\"beat\"}",
        ] {
            assert!(parse_line::<RequestLine>(line).is_err(), "{line}");
        }
    }
}
