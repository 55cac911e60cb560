//! Programs under test: started, read, signalled, and killed when dropped.

use std::fmt::Debug;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A condition that takes longer has failed, even on the slowest machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Pause between two checks of a condition, which leaves the CPU to the program under test.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

pub(crate) fn onrush(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onrush"));
    command.args(arguments).env("RUST_BACKTRACE", "0");
    command
}

pub(crate) fn run_onrush(arguments: &[&str]) -> Finished {
    Program::start(&mut onrush(arguments)).finish()
}

/// Drivers available on this machine. Where io_uring is refused, as in many containers, the server must fail with one
/// clear line.
pub(crate) fn drivers() -> &'static [&'static str] {
    static DRIVERS: OnceLock<Vec<&str>> = OnceLock::new();
    DRIVERS.get_or_init(|| {
        let words = ["serve", "--respond", "200", "--io", "io_uring"];
        let mut probe = onrush(&words);
        let program = Program::start(probe.args(["--listen", "127.0.0.1:0"]));
        let is_up = until("a start or a refusal", || {
            let (out, err) = (program.out.so_far(), program.err.so_far());
            (!err.is_empty() || out.contains("\n  driver ")).then_some(err.is_empty())
        });
        if is_up {
            return vec!["epoll", "io_uring"];
        }
        let refused = program.finish();
        assert_eq!(
            (refused.code, refused.err.lines().count()),
            (Some(1), 1),
            "{refused:?}"
        );
        let sentence = "io_uring is not available: ";
        assert!(refused.err.contains(sentence), "{refused:?}");
        eprintln!("without io_uring: {}", refused.err);
        vec!["epoll"]
    })
}

/// Waits until `condition` returns a value.
pub(crate) fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::park_timeout(POLL_INTERVAL);
    }
}

/// A running program, killed on drop.
pub(crate) struct Program {
    name: String,
    child: Child,
    pub(crate) out: CapturedOutput,
    pub(crate) err: CapturedOutput,
}

/// Exit code and output of a finished program.
#[derive(Debug)]
pub(crate) struct Finished {
    /// `None` when a signal killed it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Parts of verdict reasons for a generator that got too little CPU.
const CPU_STARVATION_REASONS: [&str; 3] =
    ["generator's own part", "waited for a CPU", "was stalled"];

impl Finished {
    /// For runs of `load` or `bench` whose figures do not matter to the test: treats exit code 5 of `load` and 3 of
    /// `bench` as 0 if the only reason is that the machine gave the generator too little CPU.
    pub(crate) fn on_any_machine(self) -> Finished {
        self.with_starvation_as(0)
    }

    /// The same for runs that exit with `code` on a machine with enough CPU.
    pub(crate) fn with_starvation_as(self, code: i32) -> Finished {
        let invalid: Vec<&str> = self
            .out
            .lines()
            .chain(self.err.lines())
            .filter(|line| line.trim_start().starts_with("INVALID "))
            .collect();
        let is_starved = |line: &&str| {
            CPU_STARVATION_REASONS
                .iter()
                .any(|words| line.contains(words))
        };
        let only_starved = !invalid.is_empty() && invalid.iter().all(is_starved);
        let reported = |line: &&str| line.contains("reports its own figures as invalid");
        let mut reports = self.out.lines().chain(self.err.lines()).filter(reported);
        let only_starved_clients =
            reports.clone().next().is_some() && reports.all(|line| is_starved(&line));
        let code = match self.code {
            Some(5) if only_starved => Some(code),
            Some(3) if only_starved_clients => Some(code),
            code => code,
        };
        Finished { code, ..self }
    }
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Program {
        let name = format!("{command:?}");
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{name}: {error}"));
        let out: Option<ChildStdout> = child.stdout.take();
        let err: Option<ChildStderr> = child.stderr.take();
        Program {
            name,
            child,
            out: CapturedOutput::listen(out.expect("piped")),
            err: CapturedOutput::listen(err.expect("piped")),
        }
    }

    /// Starts the program with `log` as standard error.
    fn start_with_log(command: &mut Command, log: Stdio) -> Program {
        let name = format!("{command:?}");
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{name}: {error}"));
        let out: Option<ChildStdout> = child.stdout.take();
        Program {
            name,
            child,
            out: CapturedOutput::listen(out.expect("piped")),
            err: CapturedOutput::listen(std::io::empty()),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // The child has not been waited for, so its ID cannot have been reused.
        kill_process(Pid::from_child(&self.child), signal).expect("it can be signalled");
    }

    pub(crate) fn finish(mut self) -> Finished {
        let status = until(&format!("the end of {}", self.name), || {
            self.child.try_wait().expect("it can be waited for")
        });
        Finished {
            code: status.code(),
            out: self.out.all(),
            err: self.err.all(),
        }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("it can be waited for")
            .is_none()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let (out, err) = (self.out.so_far(), self.err.so_far());
            eprintln!(
                "-- {} said:\n{out}-- and on standard error:\n{err}--",
                self.name
            );
        }
    }
}

/// Output of a program on one of its streams.
pub(crate) struct CapturedOutput(Arc<(Mutex<Text>, Condvar)>);

#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
    ended: bool,
}

impl CapturedOutput {
    fn listen(mut stream: impl Read + Send + 'static) -> CapturedOutput {
        let shared: Arc<(Mutex<Text>, Condvar)> = Arc::default();
        let heard = Arc::clone(&shared);
        thread::spawn(move || {
            let mut piece = [0; 4096];
            loop {
                let count = stream.read(&mut piece).unwrap_or(0);
                let mut text = heard.0.lock().expect("nobody panics with it");
                text.bytes.extend_from_slice(&piece[..count]);
                text.ended |= count == 0;
                heard.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        CapturedOutput(shared)
    }

    fn wait(&self, what: &str, is_enough: impl Fn(&Text) -> bool) -> String {
        let text = self.0.0.lock().expect("nobody panics with it");
        let waited = self
            .0
            .1
            .wait_timeout_while(text, TIMEOUT, |text| !is_enough(text));
        let (text, _) = waited.expect("nobody panics with it");
        let said = String::from_utf8_lossy(&text.bytes).into_owned();
        assert!(
            is_enough(&text),
            "waited in vain for {what} behind:\n{said}"
        );
        said
    }

    /// Waits until the output contains `words`, and returns all output so far.
    pub(crate) fn wait_for(&self, words: &str) -> String {
        let has_words = |text: &Text| String::from_utf8_lossy(&text.bytes).contains(words);
        let said = self.wait(words, |text| text.ended || has_words(text));
        assert!(
            said.contains(words),
            "it ended without saying {words:?}:\n{said}"
        );
        said
    }

    fn all(&self) -> String {
        self.wait("its end", |text| text.ended)
    }

    pub(crate) fn so_far(&self) -> String {
        self.wait("", |_| true)
    }
}

pub(crate) struct Serve {
    pub(crate) program: Program,
    pub(crate) start_up_lines: String,
    /// First address that it listens on.
    pub(crate) address: String,
}

impl Serve {
    /// Starts the server with these arguments, on a free loopback port unless they set an address.
    pub(crate) fn start(arguments: &[&str]) -> Serve {
        let mut words = vec!["serve"];
        words.extend(arguments);
        if !arguments
            .iter()
            .any(|word| ["--listen", "--config", "--echo", "--sink"].contains(word))
        {
            words.extend(["--listen", "127.0.0.1:0"]);
        }
        Serve::wait_until_listening(Program::start(&mut onrush(&words)))
    }

    /// The same, on a free loopback port, with `log` as standard error.
    pub(crate) fn start_with_log(arguments: &[&str], log: Stdio) -> Serve {
        let words = [&["serve", "--listen", "127.0.0.1:0"], arguments].concat();
        Serve::wait_until_listening(Program::start_with_log(&mut onrush(&words), log))
    }

    /// Waits for the start of `program`, which is `onrush serve`.
    pub(crate) fn wait_until_listening(program: Program) -> Serve {
        let greeting = program.out.wait_for("\n  driver ");
        let line = greeting
            .lines()
            .find_map(|line| line.strip_prefix("  listening on "));
        let line = line.unwrap_or_else(|| panic!("no address in {greeting}"));
        Serve {
            address: line
                .split(", ")
                .next()
                .expect("split gives one")
                .trim_end_matches(" with TLS")
                .split(" (")
                .next()
                .expect("split gives one")
                .to_owned(),
            program,
            start_up_lines: greeting,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn tls_url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    pub(crate) fn connect(&self) -> Client<TcpStream> {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
        Client(stream)
    }

    /// Body of the response to a new client.
    pub(crate) fn body(&self) -> String {
        let mut client = self.connect();
        client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        let response = client.receive().expect("a response");
        let body = response.split("\r\n\r\n").nth(1);
        body.expect("a body").to_owned()
    }

    /// Number of open files except pipes: each core keeps some of those for splicing.
    pub(crate) fn descriptors(&self) -> usize {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.program.pid()));
        let is_pipe = |file: &std::fs::DirEntry| {
            let what = std::fs::read_link(file.path());
            what.is_ok_and(|what| what.to_string_lossy().starts_with("pipe:"))
        };
        let files = files.expect("it is running").flatten();
        files.filter(|file| !is_pipe(file)).count()
    }

    /// Stops the server with SIGTERM and returns its totals.
    pub(crate) fn stop(self) -> Totals {
        self.program.signal(Signal::TERM);
        let finished = self.program.finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        Totals::wait_until_listening(&finished)
    }
}

/// The totals that a server prints at its end.
#[derive(Debug)]
pub(crate) struct Totals {
    pub(crate) line: String,
}

impl Totals {
    pub(crate) fn wait_until_listening(finished: &Finished) -> Totals {
        let line = finished.out.lines().last().unwrap_or_default();
        assert!(line.starts_with("served "), "{finished:?}");
        Totals {
            line: line.to_owned(),
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.number_before(" requests")
    }

    pub(crate) fn connections(&self) -> u64 {
        self.number_before(" connections")
    }

    /// The number before `words`; 0 when they do not occur.
    pub(crate) fn number_before(&self, words: &str) -> u64 {
        let Some(at) = self.line.find(words) else {
            return 0;
        };
        let word = self.line[..at].rsplit(' ').next().expect("split gives one");
        word.parse()
            .unwrap_or_else(|_| panic!("{:?} before {words:?}", self.line))
    }
}

/// A client that can send any bytes.
pub(crate) struct Client<S>(pub(crate) S);

pub(crate) trait ShutdownWrite {
    fn end(&self);
}

impl ShutdownWrite for TcpStream {
    fn end(&self) {
        // The server may have closed the connection first.
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl ShutdownWrite for UnixStream {
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Client<UnixStream> {
    pub(crate) fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("somebody listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
        Client(stream)
    }
}

impl<S: Read + Write + ShutdownWrite + Debug> Client<S> {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("it is taken");
    }

    /// Sends `bytes`, shuts down its sending side and returns everything received, however the server ends the
    /// connection.
    pub(crate) fn exchange(&mut self, bytes: &[u8]) -> String {
        // Ignore the error: the server may already have reset the connection.
        let _ = self.0.write_all(bytes);
        self.0.end();
        let mut all = Vec::new();
        let mut piece = [0; 4096];
        loop {
            match self.0.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => all.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let timed_out = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
                    assert!(!timed_out.contains(&error.kind()), "no end came");
                    break;
                }
            }
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    /// Receives one response with a Content-Length; `None` when the connection ends before its first byte.
    ///
    /// # Panics
    /// When the connection ends within it.
    pub(crate) fn receive(&mut self) -> Option<String> {
        let mut response = Vec::new();
        let mut needed = None;
        while needed.is_none_or(|needed| response.len() < needed) {
            // Byte by byte, to leave bytes after the response unread.
            let mut byte = [0];
            match self.0.read(&mut byte) {
                Ok(1..) => response.push(byte[0]),
                ended if response.is_empty() => {
                    let timed_out = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
                    let is_late = ended.is_err_and(|error| timed_out.contains(&error.kind()));
                    assert!(!is_late, "no response was received");
                    return None;
                }
                ended => panic!("{ended:?} within {}", response.escape_ascii()),
            }
            if needed.is_none() && response.ends_with(b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&response).to_ascii_lowercase();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "))
                    .map_or(0, |digits| digits.parse().expect("a number"));
                needed = Some(response.len() + length);
            }
        }
        Some(String::from_utf8_lossy(&response).into_owned())
    }
}
