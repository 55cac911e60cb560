//! State of an agent: its directory, programs, open window, and changed settings.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::super::agent_protocol::{ClosedWindow, ProgramStatus, Request, Response};
use super::super::child::{Child, file_of, sleep_until_at_most};
use super::super::leftover_processes::{self, run_name};
use super::super::ports::free_port;
use super::super::prepare::{REPORT, create_open_directory, filling, write_file};
use super::super::self_placement::pin_self;
use super::saved_settings::SavedSettings;
use crate::collect::sampler::{Sampler, Window};
use crate::collect::source::Root;
use crate::limits::{COMMAND_WAIT_MAX, OUTPUT_BYTES_MAX, PIECE_BYTES_MAX, POLL, SIZED_FILE_MAX};
use crate::scenario::{Collect, Role};

/// Time for a local listener to accept a connection.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(1);

/// Printed by the command that runs once a host is tuned.
const TUNED_MARKER: &str = "onrush-in-force";

/// Everything that the agent must clean up.
pub(super) struct AgentState {
    directory: PathBuf,
    programs: BTreeMap<Role, Program>,
    window: Option<Open>,
    undo: SavedSettings,
    /// `onrush tune`, which restores its changes when it is stopped.
    tuning: Option<Child>,
}

struct Program {
    child: Child,
    /// Whether its end was reported.
    is_reported: bool,
}

struct Open {
    opened_at: SystemTime,
    sampler: Sampler,
}

fn refused<T>(why: impl Into<String>) -> io::Result<T> {
    Err(io::Error::other(why.into()))
}

impl AgentState {
    /// The initial state, with only a directory.
    pub(super) fn in_directory(directory: &Path) -> AgentState {
        AgentState {
            directory: directory.to_owned(),
            programs: BTreeMap::new(),
            window: None,
            undo: SavedSettings::in_directory(directory),
            tuning: None,
        }
    }

    /// Executes a request; the response has one or more parts.
    pub(super) fn answer(&mut self, ask: Request) -> io::Result<Vec<Response>> {
        let answer = match ask {
            // These two are handled by the receiving thread.
            Request::Beat | Request::End => Response::Done,
            Request::Clock => Response::Clock(seconds(SystemTime::now())),
            Request::Find { command } => {
                Response::Found(file_of(&command).map(|file| file.display().to_string()))
            }
            Request::Port { taken } => Response::Port(free_port(&taken)?),
            Request::Directory { role } => {
                let directory = self.directory_of(role);
                let _ = fs::remove_dir_all(&directory);
                create_open_directory(&directory)?;
                Response::Done
            }
            Request::Text { role, name, text } => {
                write_file(&self.directory_of(role), below(&name)?, text.as_bytes())?;
                Response::Done
            }
            Request::Filling { role, name, size } => {
                if size > SIZED_FILE_MAX {
                    return refused(format!("expected a file of at most {SIZED_FILE_MAX} bytes"));
                }
                write_file(&self.directory_of(role), below(&name)?, &filling(size))?;
                Response::Done
            }
            Request::StepAside {
                placement,
                under_test,
            } => {
                pin_self(&placement, under_test);
                Response::Done
            }
            Request::Start { role, line } => self.start(role, &line)?,
            Request::Look { role, port } => self.look(role, port)?,
            Request::Open { roles, collect } => self.open(&roles, collect)?,
            Request::Join { role } => self.join(role)?,
            Request::Close => return self.close(),
            Request::Output { role } => {
                let output = self.program(role)?.child.output();
                return Ok(pieces(Some(output)));
            }
            Request::Report { role } => {
                let path = self.directory_of(role).join(REPORT);
                if !path.exists() {
                    return Ok(pieces(None));
                }
                let text = onrush_file::read_text(&path, OUTPUT_BYTES_MAX);
                return text
                    .map(|text| pieces(Some(text)))
                    .map_err(io::Error::other);
            }
            Request::Stop { role } => {
                if let Some(mut program) = self.programs.remove(&role) {
                    program.child.stop();
                }
                Response::Done
            }
            Request::Set { setting, value } => Response::Was(self.undo.set(&setting, &value)?),
            Request::SetBack => match self.restore() {
                failures if failures.is_empty() => Response::Done,
                failures => Response::Refused(failures.join("; ")),
            },
            Request::Tune { words } => return self.tune(words),
        };
        Ok(vec![answer])
    }

    fn directory_of(&self, role: Role) -> PathBuf {
        self.directory.join(role.name())
    }

    fn program(&self, role: Role) -> io::Result<&Program> {
        let program = self.programs.get(&role);
        program.ok_or_else(|| io::Error::other(format!("no {} is running", role.name())))
    }

    fn start(&mut self, role: Role, line: &[String]) -> io::Result<Response> {
        if self.programs.contains_key(&role) {
            return refused(format!("a {} is already running", role.name()));
        }
        let child = Child::start(line, &self.directory_of(role), &run_name(&self.directory))?;
        let program = Program {
            child,
            is_reported: false,
        };
        self.programs.insert(role, program);
        Ok(Response::Done)
    }

    fn look(&self, role: Role, port: Option<u16>) -> io::Result<Response> {
        let child = &self.program(role)?.child;
        let has_ended = child.has_ended();
        Ok(Response::Seen(ProgramStatus {
            has_ended,
            is_listening: port.is_some_and(|port| !has_ended && is_listening(port)),
            last_words: child.output_tail(),
            failure: child.failure(),
            was_cut: child.was_truncated(),
        }))
    }

    fn open(&mut self, roles: &[Role], collect: Collect) -> io::Result<Response> {
        let mut pids = BTreeMap::new();
        for role in roles {
            pids.insert(*role, self.program(*role)?.child.id());
        }
        let opened_at = SystemTime::now();
        self.window = Some(Open {
            opened_at,
            sampler: Sampler::start(&Root::of_machine(), &pids, collect),
        });
        Ok(Response::Done)
    }

    fn join(&mut self, role: Role) -> io::Result<Response> {
        let pid = self.program(role)?.child.id();
        let Some(open) = &mut self.window else {
            return refused("no measurement window is open");
        };
        open.sampler.join(role, pid);
        Ok(Response::Done)
    }

    /// Returns the rows one by one, so that no line is too long, and then the rest.
    fn close(&mut self) -> io::Result<Vec<Response>> {
        let Some(open) = self.window.take() else {
            return refused("no measurement window is open");
        };
        let window = open.sampler.finish();
        let rows = window.samples.into_iter();
        let mut answers: Vec<Response> = rows.map(|row| Response::Row(Box::new(row))).collect();
        answers.push(Response::Window(Box::new(ClosedWindow {
            opened_at: seconds(open.opened_at),
            ksoftirqd: window.cpus.iter().map(|cpu| cpu.ksoftirqd).collect(),
            window: Window {
                samples: Vec::new(),
                ..window
            },
        })));
        Ok(answers)
    }

    /// Takes a sample if the interval has passed, and returns the roles whose programs have ended since the last call.
    pub(super) fn poll(&mut self) -> Vec<Role> {
        if let Some(open) = &mut self.window {
            open.sampler.poll();
        }
        let mut ended = Vec::new();
        for (role, program) in &mut self.programs {
            program.child.truncate_output();
            if !program.is_reported && program.child.has_ended() {
                program.is_reported = true;
                ended.push(*role);
            }
        }
        ended
    }

    /// Starts `onrush tune apply`, which keeps the host tuned while its command runs. The command prints a word once
    /// all changes are in effect.
    fn tune(&mut self, words: Vec<String>) -> io::Result<Vec<Response>> {
        if self.tuning.is_some() {
            return refused("the host is already tuned");
        }
        let directory = self.directory.join("tune");
        create_open_directory(&directory)?;
        let program = std::env::current_exe()?.display().to_string();
        let mut line = vec![program, "tune".into(), "apply".into()];
        line.extend(words);
        line.extend([
            "--for".into(),
            format!("echo {TUNED_MARKER}; exec sleep infinity"),
        ]);
        let child = Child::start(&line, &directory, &run_name(&self.directory))?;
        let deadline = Instant::now() + COMMAND_WAIT_MAX;
        while !child.output().contains(TUNED_MARKER) {
            if child.has_ended() || Instant::now() > deadline {
                return refused(format!("tuning failed; {}", child.output_tail()));
            }
            sleep_until_at_most(POLL, deadline);
        }
        let output = child.output().replace(TUNED_MARKER, "");
        self.tuning = Some(child);
        Ok(pieces(Some(output)))
    }

    /// Restores all settings and tuning changes in reverse order, and returns the failures.
    fn restore(&mut self) -> Vec<String> {
        let mut failures = self.undo.restore();
        if let Some(mut tuning) = self.tuning.take() {
            tuning.stop();
            if tuning.output().contains("onrush tune revert") {
                failures.push(format!(
                    "not all changes were undone; {}",
                    tuning.output_tail()
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
        let _ = self.restore();
        let run = run_name(&self.directory);
        leftover_processes::end(|name| name == run);
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
fn pieces(text: Option<String>) -> Vec<Response> {
    let Some(text) = text else {
        return vec![Response::Text(None)];
    };
    let mut answers = Vec::new();
    let mut rest = &*text;
    loop {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
        answers.push(Response::Text(Some(piece.to_owned())));
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
    fn file_names_cannot_escape_directory() {
        assert!(below("www/1k.txt").is_ok());
        for name in ["", "/etc/passwd", "../x", "a/../../x", "."] {
            assert!(below(name).is_err(), "{name}");
        }
    }

    #[test]
    fn text_is_split_at_char_boundaries() {
        let text = "ä".repeat(PIECE_BYTES_MAX);
        let answers = pieces(Some(text.clone()));
        assert!(answers.len() >= 2);
        let together: String = answers
            .iter()
            .filter_map(|answer| match answer {
                Response::Text(piece) => piece.clone(),
                _ => None,
            })
            .collect();
        assert_eq!(together, text);
    }

    #[test]
    fn agent_cleans_up_on_exit() {
        let parent = tempfile::tempdir().expect("a directory");
        let directory = parent.path().join("agent");
        fs::create_dir(&directory).expect("a new name");
        let mut held = AgentState::in_directory(&directory);
        let role = Role::Server;
        held.answer(Request::Directory { role }).expect("room");
        let line = ["sleep", "1000"].map(String::from).into();
        held.answer(Request::Start { role, line })
            .expect("it starts");
        let pid = held.programs[&role].child.id();
        assert!(held.poll().is_empty());
        held.end();
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        assert!(!directory.exists());
    }
}
