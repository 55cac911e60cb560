//! The agent: Onrush on another machine, which starts, samples and stops programs of an experiment.
//!
//! It uses only its standard input and output ([`super::agent_protocol`]). When its input ends, nothing is received for a while,
//! or a signal arrives, it stops all programs, restores all settings, removes its directory, and exits. So a host that
//! loses the connection keeps no trace of a run.
//!
//! It has three threads: one receives requests and heartbeats, one responds and samples, and one (the warden) waits for
//! the end of either and then stops, restores and removes everything. The warden runs no other code that could hang.

mod saved_settings;
mod state;

use std::fs;
use std::io::{self, BufReader, Stdout, stdin, stdout};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use self::state::AgentState;
use super::agent_protocol::{
    AgentLine, Hello, PROTOCOL, Request, RequestLine, Response, parse_line, read_line, write_line,
};
use super::interrupt::Interrupt;
use super::scratch::{AGENT_PREFIX, remove_stale};
use crate::environment;
use crate::error::Error;
use crate::limits::{POLL, SILENCE_MAX};

/// Requests in the queue. The other end sends one request at a time.
const QUEUED_REQUESTS_MAX: usize = 4;
/// Interval at which the warden polls; its timeouts are seconds.
const WARDEN_EVERY: Duration = Duration::from_millis(100);

struct Shared {
    held: Mutex<AgentState>,
    output: Mutex<Stdout>,
    last_received: Mutex<Instant>,
    is_closed: AtomicBool,
}

/// Runs an agent until the connection ends. It owns `directory` and removes it.
///
/// # Errors
/// If it cannot start.
pub fn serve(directory: &Path) -> Result<(), Error> {
    let interrupt =
        Interrupt::listen().map_err(|source| Error::System("listen for signals", source))?;
    let write = |source| Error::Write(directory.to_owned(), source);
    let directory = directory.canonicalize().map_err(write)?;
    // Programs that drop their privileges must be able to reach their files in it; only the owner may list it.
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o711)).map_err(write)?;
    // Restores the settings of killed agents, in this directory and in others.
    saved_settings::restore_leftover(&directory);
    remove_stale(
        Path::new("/tmp"),
        AGENT_PREFIX,
        saved_settings::restore_leftover,
    );
    super::idle::raise_open_files_max();
    let shared = Arc::new(Shared {
        held: Mutex::new(AgentState::in_directory(&directory)),
        output: Mutex::new(stdout()),
        last_received: Mutex::new(Instant::now()),
        is_closed: AtomicBool::new(false),
    });
    let hello = AgentLine::Hello(Box::new(Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        directory: directory.display().to_string(),
        cpus: environment::usable_cpus(),
        machine: environment::machine_as_json(),
    }));
    shared.say(&hello);
    let (sender, receiver) = sync_channel(QUEUED_REQUESTS_MAX);
    let listening = Arc::clone(&shared);
    thread::spawn(move || listening.listen(&sender));
    let watching = Arc::clone(&shared);
    let warden = thread::spawn(move || watching.wait_and_clean_up(&interrupt));
    shared.answer(&receiver);
    // The kernel signals programs when the thread that started them exits, which is this one; the warden stops them
    // properly first.
    let _ = warden.join();
    Ok(())
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, AgentState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a line. If the other end is gone, the connection has ended.
    fn say(&self, said: &AgentLine) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if write_line(&mut *output, said).is_err() {
            self.end();
        }
    }

    fn end(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Receives requests until there are no more. Heartbeats are answered here, so that nothing delays them.
    fn listen(&self, sender: &SyncSender<RequestLine>) {
        let mut input = BufReader::new(stdin());
        while let Ok(Some(line)) = read_line(&mut input) {
            *self
                .last_received
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Instant::now();
            let Ok(asked) = parse_line::<RequestLine>(&line) else {
                break;
            };
            match asked.ask {
                Request::Beat => self.say(&AgentLine::Beat),
                Request::End => break,
                _ => {
                    if sender.send(asked).is_err() {
                        break;
                    }
                }
            }
        }
        self.end();
    }

    fn wait_and_clean_up(&self, interrupt: &Interrupt) {
        loop {
            let heard = *self
                .last_received
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let is_over = self.is_closed.load(Ordering::Relaxed);
            if is_over || heard.elapsed() > SILENCE_MAX || interrupt.is_requested() {
                break;
            }
            thread::sleep(WARDEN_EVERY);
        }
        self.held().end();
        // Another thread may be blocked on output without a reader.
        std::process::exit(0);
    }

    /// Responds to requests, and in between takes samples and reports programs that have ended.
    fn answer(&self, receiver: &Receiver<RequestLine>) {
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(RequestLine { id, ask }) => {
                    let answers = self.held().answer(ask);
                    self.answer_all(id, answers);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let ended = self.held().poll();
            for role in ended {
                self.say(&AgentLine::Ended(role));
            }
        }
    }

    fn answer_all(&self, id: u64, answers: io::Result<Vec<Response>>) {
        let answers = answers.unwrap_or_else(|error| vec![Response::Refused(error.to_string())]);
        let last = answers.len().saturating_sub(1);
        for (index, answer) in answers.into_iter().enumerate() {
            self.say(&AgentLine::Answer {
                id,
                answer,
                more: index < last,
            });
        }
    }
}
