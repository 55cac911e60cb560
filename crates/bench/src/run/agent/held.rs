//! State of an agent: its directory, programs, open window, and changed settings.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::super::child::{Child, file_of, nap};
use super::super::ports::free_port;
use super::super::prepare::{REPORT, create_open_directory, filling, write_file};
use super::super::step_aside::step_aside;
use super::super::strays::{self, run_name};
use super::super::wire::{Answer, Ask, Closed, Seen};
use super::undo::Undo;
use crate::collect::sampler::{Sampler, Window};
use crate::collect::source::Root;
use crate::limits::{COMMAND_WAIT_MAX, OUTPUT_BYTES_MAX, PIECE_BYTES_MAX, POLL, SIZED_FILE_MAX};
use crate::scenario::{Collect, Role};

/// Time for a local listener to accept a connection.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(1);

/// Printed by the command that runs once a host is tuned.
const IN_FORCE: &str = "onrush-in-force";

/// Everything that the agent must clean up.
pub(super) struct Held {
    directory: PathBuf,
    programs: BTreeMap<Role, Program>,
    window: Option<Open>,
    undo: Undo,
    /// `onrush tune`, which restores its changes when it is stopped.
    tuning: Option<Child>,
}

struct Program {
    child: Child,
    /// Whether its end was reported.
    is_told: bool,
}

struct Open {
    opened_at: SystemTime,
    sampler: Sampler,
}

fn refused<T>(why: impl Into<String>) -> io::Result<T> {
    Err(io::Error::other(why.into()))
}

impl Held {
    /// The initial state, with only a directory.
    pub(super) fn in_directory(directory: &Path) -> Held {
        Held {
            directory: directory.to_owned(),
            programs: BTreeMap::new(),
            window: None,
            undo: Undo::in_directory(directory),
            tuning: None,
        }
    }

    /// Executes a request; the response has one or more parts.
    pub(super) fn answer(&mut self, ask: Ask) -> io::Result<Vec<Answer>> {
        let answer = match ask {
            // These two are handled by the receiving thread.
            Ask::Beat | Ask::End => Answer::Done,
            Ask::Clock => Answer::Clock(seconds(SystemTime::now())),
            Ask::Find { command } => {
                Answer::Found(file_of(&command).map(|file| file.display().to_string()))
            }
            Ask::Port { taken } => Answer::Port(free_port(&taken)?),
            Ask::Directory { role } => {
                let directory = self.directory_of(role);
                let _ = fs::remove_dir_all(&directory);
                create_open_directory(&directory)?;
                Answer::Done
            }
            Ask::Text { role, name, text } => {
                write_file(&self.directory_of(role), below(&name)?, text.as_bytes())?;
                Answer::Done
            }
            Ask::Filling { role, name, size } => {
                if size > SIZED_FILE_MAX {
                    return refused(format!("a file has {SIZED_FILE_MAX} bytes at most"));
                }
                write_file(&self.directory_of(role), below(&name)?, &filling(size))?;
                Answer::Done
            }
            Ask::StepAside {
                placement,
                under_test,
            } => {
                step_aside(&placement, under_test);
                Answer::Done
            }
            Ask::Start { role, line } => self.start(role, &line)?,
            Ask::Look { role, port } => self.look(role, port)?,
            Ask::Open { roles, collect } => self.open(&roles, collect)?,
            Ask::Join { role } => self.join(role)?,
            Ask::Close => return self.close(),
            Ask::Output { role } => {
                let output = self.program(role)?.child.output();
                return Ok(pieces(Some(output)));
            }
            Ask::Report { role } => {
                let path = self.directory_of(role).join(REPORT);
                if !path.exists() {
                    return Ok(pieces(None));
                }
                let text = onrush_file::read_text(&path, OUTPUT_BYTES_MAX);
                return text
                    .map(|text| pieces(Some(text)))
                    .map_err(io::Error::other);
            }
            Ask::Stop { role } => {
                if let Some(mut program) = self.programs.remove(&role) {
                    program.child.stop();
                }
                Answer::Done
            }
            Ask::Set { setting, value } => Answer::Was(self.undo.set(&setting, &value)?),
            Ask::SetBack => match self.set_back() {
                failures if failures.is_empty() => Answer::Done,
                failures => Answer::Refused(failures.join("; ")),
            },
            Ask::Tune { words } => return self.tune(words),
        };
        Ok(vec![answer])
    }

    fn directory_of(&self, role: Role) -> PathBuf {
        self.directory.join(role.name())
    }

    fn program(&self, role: Role) -> io::Result<&Program> {
        let program = self.programs.get(&role);
        program.ok_or_else(|| io::Error::other(format!("there is no {}", role.name())))
    }

    fn start(&mut self, role: Role, line: &[String]) -> io::Result<Answer> {
        if self.programs.contains_key(&role) {
            return refused(format!("there is a {} already", role.name()));
        }
        let child = Child::start(line, &self.directory_of(role), &run_name(&self.directory))?;
        let program = Program {
            child,
            is_told: false,
        };
        self.programs.insert(role, program);
        Ok(Answer::Done)
    }

    fn look(&self, role: Role, port: Option<u16>) -> io::Result<Answer> {
        let child = &self.program(role)?.child;
        let has_ended = child.has_ended();
        Ok(Answer::Seen(Seen {
            has_ended,
            is_listening: port.is_some_and(|port| !has_ended && is_listening(port)),
            last_words: child.last_words(),
            failure: child.failure(),
            was_cut: child.was_cut(),
        }))
    }

    fn open(&mut self, roles: &[Role], collect: Collect) -> io::Result<Answer> {
        let mut pids = BTreeMap::new();
        for role in roles {
            pids.insert(*role, self.program(*role)?.child.id());
        }
        let opened_at = SystemTime::now();
        self.window = Some(Open {
            opened_at,
            sampler: Sampler::start(&Root::of_machine(), &pids, collect),
        });
        Ok(Answer::Done)
    }

    fn join(&mut self, role: Role) -> io::Result<Answer> {
        let pid = self.program(role)?.child.id();
        let Some(open) = &mut self.window else {
            return refused("no window is open");
        };
        open.sampler.join(role, pid);
        Ok(Answer::Done)
    }

    /// Returns the rows one by one, so that no line is too long, and then the rest.
    fn close(&mut self) -> io::Result<Vec<Answer>> {
        let Some(open) = self.window.take() else {
            return refused("no window is open");
        };
        let window = open.sampler.finish();
        let rows = window.samples.into_iter();
        let mut answers: Vec<Answer> = rows.map(|row| Answer::Row(Box::new(row))).collect();
        answers.push(Answer::Window(Box::new(Closed {
            opened_at: seconds(open.opened_at),
            ksoftirqd: window.cpus.iter().map(|cpu| cpu.ksoftirqd).collect(),
            window: Window {
                samples: Vec::new(),
                ..window
            },
        })));
        Ok(answers)
    }

    /// Takes a sample if one is due, and returns the roles whose programs have ended since the last call.
    pub(super) fn poll(&mut self) -> Vec<Role> {
        if let Some(open) = &mut self.window {
            open.sampler.poll();
        }
        let mut ended = Vec::new();
        for (role, program) in &mut self.programs {
            program.child.bound_output();
            if !program.is_told && program.child.has_ended() {
                program.is_told = true;
                ended.push(*role);
            }
        }
        ended
    }

    /// Starts `onrush tune apply`, which keeps the host tuned while its command runs. The command prints a word once
    /// all changes are in effect.
    fn tune(&mut self, words: Vec<String>) -> io::Result<Vec<Answer>> {
        if self.tuning.is_some() {
            return refused("the host is tuned already");
        }
        let directory = self.directory.join("tune");
        create_open_directory(&directory)?;
        let program = std::env::current_exe()?.display().to_string();
        let mut line = vec![program, "tune".into(), "apply".into()];
        line.extend(words);
        line.extend([
            "--for".into(),
            format!("echo {IN_FORCE}; exec sleep infinity"),
        ]);
        let child = Child::start(&line, &directory, &run_name(&self.directory))?;
        let deadline = Instant::now() + COMMAND_WAIT_MAX;
        while !child.output().contains(IN_FORCE) {
            if child.has_ended() || Instant::now() > deadline {
                return refused(format!("tuning failed; {}", child.last_words()));
            }
            nap(POLL, deadline);
        }
        let output = child.output().replace(IN_FORCE, "");
        self.tuning = Some(child);
        Ok(pieces(Some(output)))
    }

    /// Restores all settings and tuning changes in reverse order, and returns those that failed.
    fn set_back(&mut self) -> Vec<String> {
        let mut failures = self.undo.set_back();
        if let Some(mut tuning) = self.tuning.take() {
            tuning.stop();
            if tuning.output().contains("onrush tune revert") {
                failures.push(format!(
                    "not all changes were undone; {}",
                    tuning.last_words()
                ));
            }
        }
        failures
    }

    /// Stops all programs and restores everything.
    pub(super) fn end(&mut self) {
        self.window = None;
        for program in self.programs.values_mut() {
            program.child.stop();
        }
        self.programs.clear();
        // The other end is gone, so failures cannot be reported.
        let _ = self.set_back();
        let run = run_name(&self.directory);
        strays::end(|name| name == run);
        // The next agent removes what remains.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Whether a local port accepts connections.
fn is_listening(port: u16) -> bool {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    TcpStream::connect_timeout(&address, CONNECT_WAIT_MAX).is_ok()
}

fn seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

/// Checks that a file name stays below its directory.
fn below(name: &str) -> io::Result<&str> {
    let mut parts = Path::new(name).components();
    let is_below = !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)));
    match is_below {
        true => Ok(name),
        false => refused(format!(
            "the file `{name}` is outside of its directory: expected a relative path without `..`"
        )),
    }
}

/// Splits text into pieces that fit a line.
fn pieces(text: Option<String>) -> Vec<Answer> {
    let Some(text) = text else {
        return vec![Answer::Text(None)];
    };
    let mut answers = Vec::new();
    let mut rest = &*text;
    loop {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
        answers.push(Answer::Text(Some(piece.to_owned())));
        if more.is_empty() {
            return answers;
        }
        rest = more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_below_their_directory() {
        assert!(below("www/1k.txt").is_ok());
        for name in ["", "/etc/passwd", "../x", "a/../../x", "."] {
            assert!(below(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_text_is_cut_between_letters_and_put_together_again() {
        let text = "ä".repeat(PIECE_BYTES_MAX);
        let answers = pieces(Some(text.clone()));
        assert!(answers.len() >= 2);
        let together: String = answers
            .iter()
            .filter_map(|answer| match answer {
                Answer::Text(piece) => piece.clone(),
                _ => None,
            })
            .collect();
        assert_eq!(together, text);
    }

    #[test]
    fn what_is_held_is_gone_in_the_end() {
        let parent = tempfile::tempdir().expect("a directory");
        let directory = parent.path().join("agent");
        fs::create_dir(&directory).expect("a new name");
        let mut held = Held::in_directory(&directory);
        let role = Role::Server;
        held.answer(Ask::Directory { role }).expect("room");
        let line = ["sleep", "1000"].map(String::from).into();
        held.answer(Ask::Start { role, line }).expect("it starts");
        let pid = held.programs[&role].child.id();
        assert!(held.poll().is_empty());
        held.end();
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        assert!(!directory.exists());
    }
}
