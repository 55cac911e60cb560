//! Connection to an agent: requests and responses, heartbeats, and detection of a lost connection.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::super::agent_protocol::{
    AgentLine, Hello, Request, RequestLine, Response, parse_line, read_line, write_line,
};
use super::super::child::last_lines;
use super::super::failure::{Failure, Try, failed};
use crate::limits::{
    HEARTBEAT_EVERY, OUTPUT_TAIL_BYTES, RESPONSE_LINES_MAX, SILENCE_MAX, STOP_WAIT_MAX,
};
use crate::scenario::Role;

/// Interval at which a waiting caller checks the connection.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Connection to an agent. Dropping it ends the agent.
pub(in crate::run) struct Connection {
    /// Name of the host, with a number if it has several nodes.
    pub(in crate::run) name: String,
    pub(in crate::run) hello: Hello,
    next: AtomicU64,
    shared: Arc<Shared>,
}

struct Shared {
    heard: Mutex<ReceivedState>,
    news: Condvar,
    input: Mutex<Option<ChildStdin>>,
    process: Mutex<Child>,
    /// Standard error of the connection's process.
    errors: PathBuf,
}

struct ReceivedState {
    last: Instant,
    answers: BTreeMap<u64, Vec<Response>>,
    /// Ids of complete responses.
    whole: BTreeSet<u64>,
    /// Roles whose programs have ended and were not restarted.
    ended: BTreeSet<Role>,
    lost: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// Uses the standard streams of a process that leads to an agent; `hello` was received.
    pub(super) fn new(
        name: String,
        hello: Hello,
        (process, input, output): (Child, ChildStdin, BufReader<ChildStdout>),
        errors: PathBuf,
    ) -> Connection {
        let shared = Arc::new(Shared {
            heard: Mutex::new(ReceivedState {
                last: Instant::now(),
                answers: BTreeMap::new(),
                whole: BTreeSet::new(),
                ended: BTreeSet::new(),
                lost: None,
            }),
            news: Condvar::new(),
            input: Mutex::new(Some(input)),
            process: Mutex::new(process),
            errors,
        });
        let listening = Arc::clone(&shared);
        thread::spawn(move || listening.listen(output));
        let beating = Arc::clone(&shared);
        thread::spawn(move || beating.beat());
        Connection {
            name,
            hello,
            next: AtomicU64::new(1),
            shared,
        }
    }

    pub(in crate::run) fn lost(&self) -> Option<String> {
        let lost = lock(&self.shared.heard).lost.clone()?;
        Some(format!("host `{}` is lost: {lost}", self.name))
    }

    pub(in crate::run) fn has_ended(&self, role: Role) -> bool {
        lock(&self.shared.heard).ended.contains(&role)
    }

    /// Resets the state of a role before a new program is started.
    pub(in crate::run) fn forget(&self, role: Role) {
        lock(&self.shared.heard).ended.remove(&role);
    }

    /// Sends a request and waits for the complete response.
    pub(in crate::run) fn request(&self, ask: Request) -> Try<Vec<Response>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        {
            let mut input = lock(&self.shared.input);
            if let Some(input) = &mut *input
                && let Err(error) = write_line(input, &RequestLine { id, ask })
            {
                self.shared
                    .lose(&format!("its connection was closed ({error})"));
            }
        }
        let mut heard = lock(&self.shared.heard);
        loop {
            if heard.whole.remove(&id) {
                let answers = heard.answers.remove(&id).unwrap_or_default();
                drop(heard);
                return self.checked(answers);
            }
            if heard.lost.is_some() {
                drop(heard);
                return Err(Failure::Lost(self.lost().unwrap_or_default()));
            }
            let waited = self.shared.news.wait_timeout(heard, LOOK_EVERY);
            heard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends a request whose response has one part.
    pub(in crate::run) fn request_one(&self, ask: Request) -> Try<Response> {
        let answer = self.request(ask)?.pop();
        answer.map_or_else(|| failed(self.unexpected_response()), Ok)
    }

    /// Sends a request whose response has no content.
    pub(in crate::run) fn request_done(&self, ask: Request) -> Try<()> {
        match self.request_one(ask)? {
            Response::Done => Ok(()),
            _ => failed(self.unexpected_response()),
        }
    }

    fn checked(&self, answers: Vec<Response>) -> Try<Vec<Response>> {
        match answers.last() {
            Some(Response::Refused(why)) => failed(format!("on host `{}`: {why}", self.name)),
            _ => Ok(answers),
        }
    }

    pub(in crate::run) fn unexpected_response(&self) -> String {
        format!(
            "the agent on host `{}` sent another response than expected",
            self.name
        )
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let ask = Request::End;
        if let Some(input) = &mut *lock(&self.shared.input) {
            // If this fails, the agent notices the end of its input.
            let _ = write_line(input, &RequestLine { id: 0, ask });
        }
        lock(&self.shared.input).take();
        // The agent stops programs first, which may take time.
        let deadline = Instant::now() + STOP_WAIT_MAX * 2;
        let mut heard = lock(&self.shared.heard);
        while heard.lost.is_none() && Instant::now() < deadline {
            let waited = self.shared.news.wait_timeout(heard, LOOK_EVERY);
            heard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(heard);
        self.shared.end_process();
    }
}

impl Shared {
    fn lose(&self, why: &str) {
        let mut heard = lock(&self.heard);
        if heard.lost.is_none() {
            heard.lost = Some(why.to_owned());
        }
        drop(heard);
        self.news.notify_all();
    }

    /// Kills the process, which may hang on a lost connection; this also ends its streams.
    fn end_process(&self) {
        let mut process = lock(&self.process);
        let _ = process.kill();
        let _ = process.wait();
    }

    fn listen(&self, mut output: BufReader<ChildStdout>) {
        let why = loop {
            match read_line(&mut output) {
                Ok(Some(line)) => match parse_line::<AgentLine>(&line) {
                    Ok(said) => {
                        if let Err(why) = self.take(said) {
                            break why;
                        }
                    }
                    Err(error) => {
                        break format!("its agent sent a response that cannot be parsed ({error})");
                    }
                },
                Ok(None) => {
                    break format!("its connection was closed; {}", output_tail(&self.errors));
                }
                Err(error) => break format!("its connection was closed ({error})"),
            }
        };
        self.lose(&why);
    }

    fn take(&self, said: AgentLine) -> Result<(), String> {
        let mut heard = lock(&self.heard);
        heard.last = Instant::now();
        match said {
            AgentLine::Beat => return Ok(()),
            AgentLine::Hello(_) => return Err("its agent was started again".into()),
            AgentLine::Ended(role) => {
                heard.ended.insert(role);
            }
            AgentLine::Answer { id, answer, more } => {
                let parts = heard.answers.entry(id).or_default();
                if parts.len() >= RESPONSE_LINES_MAX {
                    return Err("its agent did not end".into());
                }
                parts.push(answer);
                if !more {
                    heard.whole.insert(id);
                }
            }
        }
        drop(heard);
        self.news.notify_all();
        Ok(())
    }

    /// Sends a heartbeat each second, and detects when the agent is silent.
    fn beat(&self) {
        loop {
            thread::sleep(HEARTBEAT_EVERY);
            let (lost, silence) = {
                let heard = lock(&self.heard);
                (heard.lost.is_some(), heard.last.elapsed())
            };
            if lost {
                return;
            }
            if silence > SILENCE_MAX {
                let seconds = SILENCE_MAX.as_secs();
                self.lose(&format!("nothing was received from it for {seconds} s"));
                self.end_process();
                return;
            }
            // If the stream is in use, something is being sent, which has the same effect.
            let Ok(mut input) = self.input.try_lock() else {
                continue;
            };
            let Some(stream) = &mut *input else {
                continue;
            };
            let beat = RequestLine {
                id: 0,
                ask: Request::Beat,
            };
            // The receiving thread reports errors of the connection.
            let _ = write_line(stream, &beat);
        }
    }
}

pub(super) fn output_tail(errors: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = fs::File::open(errors) {
        let length = file.metadata().map_or(0, |found| found.len());
        let start = length.saturating_sub(OUTPUT_TAIL_BYTES as u64);
        let _ = std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(start));
        let _ = file.take(OUTPUT_TAIL_BYTES as u64).read_to_end(&mut bytes);
    }
    match last_lines(&String::from_utf8_lossy(&bytes)) {
        words if words.is_empty() => "it printed nothing".into(),
        words => format!("it printed: {words}"),
    }
}
