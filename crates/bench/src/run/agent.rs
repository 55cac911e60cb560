//! The agent: this program on another machine, where it starts, watches and ends the programs of an experiment for us.
//!
//! It speaks on its standard input and output ([`super::wire`]) and on nothing else. When its input ends, when nothing is
//! heard for a while, or when a signal comes, it ends all that it started, sets back what it set, removes its directory,
//! and ends: a host that is cut off has nothing left of a run.
//!
//! It has three threads: one receives questions and heartbeats, one answers and samples, and a third waits for the
//! end of both and then ends, undoes and removes everything. The third waits for no other code that could hang.

mod held;
mod undo;

use std::fs;
use std::io::{self, BufReader, Stdout, stdin, stdout};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use self::held::Held;
use super::interrupt::Interrupt;
use super::scratch::{AGENT_PREFIX, remove_stale};
use super::wire::{Answer, Ask, Asked, Hello, PROTOCOL, Said, hear, say, understand};
use crate::environment;
use crate::error::Error;
use crate::limits::{POLL, SILENCE_MAX};

/// Questions that wait: we ask the next one when the last one was answered.
const WAITING_MAX: usize = 4;
/// How often the warden looks: what it waits for takes seconds.
const WARDEN_EVERY: Duration = Duration::from_millis(100);

/// What the threads of an agent share.
struct Shared {
    held: Mutex<Held>,
    output: Mutex<Stdout>,
    /// When the other end was last heard.
    heard: Mutex<Instant>,
    /// Whether it will be heard no more.
    is_over: AtomicBool,
}

/// Is an agent until the other end is gone. `directory` is its own, and is removed.
///
/// # Errors
/// When it cannot begin.
pub fn serve(directory: &Path) -> Result<(), Error> {
    let interrupt =
        Interrupt::listen().map_err(|source| Error::System("listen for signals", source))?;
    let write = |source| Error::Write(directory.to_owned(), source);
    let directory = directory.canonicalize().map_err(write)?;
    // Programs that give up their privileges must get through it to their files; only its owner may list it.
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o711)).map_err(write)?;
    // What one that was killed in the same directory had set, and those whose shells were killed, too.
    undo::take_up(&directory);
    remove_stale(Path::new("/tmp"), AGENT_PREFIX, undo::take_up);
    super::idle::raise_open_files_max();
    let shared = Arc::new(Shared {
        held: Mutex::new(Held::in_directory(&directory)),
        output: Mutex::new(stdout()),
        heard: Mutex::new(Instant::now()),
        is_over: AtomicBool::new(false),
    });
    let hello = Said::Hello(Box::new(Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        directory: directory.display().to_string(),
        cpus: environment::usable_cpus(),
        machine: environment::machine_as_json(),
    }));
    shared.say(&hello);
    let (sender, receiver) = sync_channel(WAITING_MAX);
    let listening = Arc::clone(&shared);
    thread::spawn(move || listening.listen(&sender));
    let watching = Arc::clone(&shared);
    let warden = thread::spawn(move || watching.guard(&interrupt));
    shared.answer(&receiver);
    // Programs end with the thread that started them, which is this one: the warden ends them in good order first.
    let _ = warden.join();
    Ok(())
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something; when nobody is there to hear it, it is over.
    fn say(&self, said: &Said) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if say(&mut *output, said).is_err() {
            self.end();
        }
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Hears questions until there are no more; heartbeats are answered here, whatever else goes on.
    fn listen(&self, sender: &SyncSender<Asked>) {
        let mut input = BufReader::new(stdin());
        while let Ok(Some(line)) = hear(&mut input) {
            *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            let Ok(asked) = understand::<Asked>(&line) else {
                break;
            };
            match asked.ask {
                Ask::Beat => self.say(&Said::Beat),
                Ask::End => break,
                _ => {
                    if sender.send(asked).is_err() {
                        break;
                    }
                }
            }
        }
        self.end();
    }

    /// Waits for the end, whatever it is, and leaves nothing behind.
    fn guard(&self, interrupt: &Interrupt) {
        loop {
            let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            let is_over = self.is_over.load(Ordering::Relaxed);
            if is_over || heard.elapsed() > SILENCE_MAX || interrupt.is_asked() {
                break;
            }
            thread::sleep(WARDEN_EVERY);
        }
        self.held().end();
        // Another thread may wait for an output that nobody reads.
        std::process::exit(0);
    }

    /// Answers questions, and between them samples and says which programs have ended.
    fn answer(&self, receiver: &Receiver<Asked>) {
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(Asked { id, ask }) => {
                    let answers = self.held().answer(ask);
                    self.answer_all(id, answers);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let ended = self.held().poll();
            for role in ended {
                self.say(&Said::Ended(role));
            }
        }
    }

    fn answer_all(&self, id: u64, answers: io::Result<Vec<Answer>>) {
        let answers = answers.unwrap_or_else(|error| vec![Answer::Refused(error.to_string())]);
        let last = answers.len().saturating_sub(1);
        for (index, answer) in answers.into_iter().enumerate() {
            self.say(&Said::Answer {
                id,
                answer,
                more: index < last,
            });
        }
    }
}
