//! What we and an agent say to each other: one JSON value a line, within bounds.
//!
//! We ask and the agent answers, in the order of the questions. Two things come at any time: heartbeats, which are answered
//! at once, and the word that a program has ended.

use std::io::{self, BufRead, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::child::Ended;
use crate::collect::sampler::Window;
use crate::limits::LINE_BYTES_MAX;
use crate::outcome::Sample;
use crate::placement::Placement;
use crate::scenario::{Collect, Role};

/// The version of what is said; both ends are one program, so another one is a damaged copy.
pub(super) const PROTOCOL: u32 = 1;

/// What an agent is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Ask {
    /// Whether it is there.
    Beat,
    /// What its wall clock says.
    Clock,
    /// The file of a command.
    Find { command: String },
    /// A port on which nobody listens; not one of these.
    Port { taken: Vec<u16> },
    /// A fresh directory for a role.
    Directory { role: Role },
    /// A file in it.
    Text {
        role: Role,
        name: String,
        text: String,
    },
    /// A file of that size in it.
    Filling { role: Role, name: String, size: u64 },
    /// The agent goes to CPUs that disturb no role.
    StepAside {
        placement: Placement,
        under_test: Role,
    },
    /// A program is started in a role.
    Start { role: Role, line: Vec<String> },
    /// Whether a role's program runs and, with a port, whether it is listened at.
    Look { role: Role, port: Option<u16> },
    /// A window is opened over these roles.
    Open { roles: Vec<Role>, collect: Collect },
    /// A role that was just started belongs to the window.
    Join { role: Role },
    /// The window is closed.
    Close,
    /// What a role's program has printed.
    Output { role: Role },
    /// The report that it has written, if it has.
    Report { role: Role },
    /// A role's program is stopped.
    Stop { role: Role },
    /// A setting gets a value.
    Set { setting: Setting, value: String },
    /// All settings get back what they had, and what was tuned is undone.
    SetBack,
    /// The host is tuned (`onrush tune apply`) until all is set back.
    Tune { words: Vec<String> },
    /// Everything is stopped and undone, and the agent ends.
    End,
}

/// Something that is set on a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Setting {
    /// A file below `/proc/sys`, by its name with dots.
    Sysctl(String),
    /// Packet steering of all receive queues of an interface.
    Steering(String),
}

/// What an agent answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// It was done.
    Done,
    /// It could not be done, and why.
    Refused(String),
    /// Seconds since 1970.
    Clock(f64),
    /// A file, if there is one.
    Found(Option<String>),
    /// A port.
    Port(u16),
    /// A program as it is seen.
    Seen(Seen),
    /// A piece of a text, or nothing where there is none.
    Text(Option<String>),
    /// A row of a window.
    Row(Box<Sample>),
    /// The rest of it.
    Window(Box<Closed>),
    /// What a setting had before: one value for each of its files.
    Was(Vec<(String, String)>),
}

/// A program as an agent sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) has_ended: bool,
    pub(super) is_listening: bool,
    pub(super) last_words: String,
    /// How it ended, when that was not with success.
    pub(super) failure: Option<Ended>,
    /// Whether some of what it printed was cut off.
    pub(super) was_cut: bool,
}

/// A window of a host without its rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Closed {
    /// When it was opened, seconds since 1970 by the host's wall clock.
    pub(super) opened_at: f64,
    /// What each CPU's kernel thread for packets took, in the order of the CPUs.
    pub(super) ksoftirqd: Vec<f64>,
    pub(super) window: Window,
}

/// A line of ours.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) id: u64,
    pub(super) ask: Ask,
}

/// A line of an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// It is there, and what it is.
    Hello(Box<Hello>),
    /// It heard a heartbeat.
    Beat,
    /// The program of a role has ended.
    Ended(Role),
    /// An answer, or a part of one.
    Answer {
        id: u64,
        answer: Answer,
        /// Whether further parts follow.
        more: bool,
    },
}

/// The first line of an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    /// Of the program.
    pub(super) version: String,
    /// The directory that it may write in.
    pub(super) directory: String,
    /// CPUs that it may use, siblings of one core beside each other.
    pub(super) cpus: Vec<usize>,
    /// As in `environment.json`.
    pub(super) machine: serde_json::Value,
}

/// Writes a line.
///
/// # Errors
/// Those of the stream.
pub(super) fn say(stream: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    stream.flush()
}

/// Reads a line without its end; `None` where the stream ends, also within a line.
///
/// # Errors
/// Those of the stream, and a line beyond its bound.
pub(super) fn hear(stream: &mut impl BufRead) -> io::Result<Option<String>> {
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

/// Understands a line.
///
/// # Errors
/// What is wrong with it.
pub(super) fn understand<T: DeserializeOwned>(line: &str) -> io::Result<T> {
    serde_json::from_str(line).map_err(io::Error::other)
}

/// Hears any bytes as either end would: lines that are understood are said again and still are. What is said is ours
/// alone, so this is what tests and the fuzzer see of it.
pub fn hear_anything(bytes: &[u8]) {
    let mut stream = bytes;
    while let Ok(Some(line)) = hear(&mut stream) {
        if let Ok(asked) = understand::<Asked>(&line) {
            said_again(&asked);
        }
        if let Ok(said) = understand::<Said>(&line) {
            said_again(&said);
        }
    }
}

fn said_again<T: Serialize + DeserializeOwned>(value: &T) {
    let mut text = Vec::new();
    say(&mut text, value).expect("memory takes what was understood");
    let line = hear(&mut &text[..]);
    let line = line.expect("it fits where it came from").expect("a line");
    understand::<T>(&line).expect("what was understood once is understood again");
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn lines_are_read_one_by_one_and_half_a_line_is_the_end() {
        let mut stream = Vec::new();
        let ask = Ask::Find {
            command: "a\nb".into(),
        };
        say(&mut stream, &Asked { id: 7, ask }).expect("memory");
        stream.extend(b"{\"id\":8,");
        let mut stream = Cursor::new(stream);
        let line = hear(&mut stream).expect("memory").expect("a line");
        let asked: Asked = understand(&line).expect("ours");
        assert!(matches!(asked.ask, Ask::Find { command } if command == "a\nb"));
        assert_eq!(asked.id, 7);
        assert!(hear(&mut stream).expect("memory").is_none());
    }

    #[test]
    fn a_line_without_an_end_is_an_error_and_not_more_memory() {
        let mut stream = io::BufReader::new(io::repeat(b'x'));
        let error = hear(&mut stream).expect_err("it never ends");
        assert!(error.to_string().contains("more than"), "{error}");
    }

    #[test]
    fn what_is_no_question_is_refused() {
        for line in [
            "",
            "{}",
            "{\"id\":1,\"ask\":\"sing\"}",
            "{\"id\":-1,\"ask\":\"beat\"}",
        ] {
            assert!(understand::<Asked>(line).is_err(), "{line}");
        }
    }
}
