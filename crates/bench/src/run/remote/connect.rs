//! Connects to a host: copies Onrush over the connection's standard input, and starts it as an agent.

use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Instant;

use super::super::agent_protocol::{AgentLine, Hello, PROTOCOL, parse_line, read_line};
use super::super::child::{command_with_pdeathsig, file_of};
use super::super::interrupt::Interrupt;
use super::super::scratch::{AGENT_PREFIX, MACHINE_IN_SHELL};
use super::connection::{Connection, output_tail};
use crate::limits::{AGENT_START_WAIT_MAX, GREETING_LINES_MAX, POLL};
use crate::scenario::Ssh;

/// Prefix of the script's lines.
const WORD: &str = "onrush-agent:";

/// The executable to copy.
pub(super) struct Executable {
    file: PathBuf,
    length: u64,
    /// SHA-256 in hexadecimal.
    hash: String,
}

impl Executable {
    /// Removes debug information if strip(1) is installed (two thirds of a release build).
    pub(super) fn of(file: &Path, scratch: &Path) -> Result<Executable, String> {
        let stripped = scratch.join("onrush-stripped");
        let mut strip = Command::new("strip");
        strip.args(["--strip-debug", "-o"]).arg(&stripped).arg(file);
        strip
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match strip.status() {
            Ok(status) if status.success() => Executable::as_it_is(stripped),
            Ok(_) | Err(_) => Executable::as_it_is(file.to_owned()),
        }
    }

    fn as_it_is(file: PathBuf) -> Result<Executable, String> {
        let cannot = |error: io::Error| format!("{} cannot be read: {error}", file.display());
        let length = fs::metadata(&file).map_err(cannot)?.len();
        let input = File::open(&file).map_err(cannot)?;
        let outcome = Command::new("sha256sum").stdin(input).output();
        let outcome = outcome.map_err(|error| {
            format!("cannot run sha256sum ({error}): apt-get install coreutils")
        })?;
        let printed = String::from_utf8_lossy(&outcome.stdout).into_owned();
        match printed.split_ascii_whitespace().next() {
            Some(hash) if hash.len() == 64 => Ok(Executable {
                file,
                length,
                hash: hash.to_owned(),
            }),
            _ => Err(format!("sha256sum printed no checksum: {printed:?}")),
        }
    }

    /// Shell script for the host: creates a directory, receives the program, tests that it runs, and starts the agent.
    /// If the agent is killed, a second one restores its settings and exits at once. The script removes the directory
    /// in every case. It contains no single quotes, because it is passed in single quotes.
    pub(super) fn script(&self) -> String {
        let (length, hash) = (self.length, &self.hash);
        format!(
            "umask 077; d=/tmp/{AGENT_PREFIX}$$-$(date +%s)-{MACHINE_IN_SHELL}; mkdir \"$d\" || exit 1; \
             trap \"rm -rf $d\" EXIT; trap \"exit 1\" HUP INT TERM; cd \"$d\" || exit 1; \
             echo \"{WORD} machine $(uname -m)\"; \
             head -c {length} >onrush; \
             if [ \"$(sha256sum <onrush | cut -c 1-64)\" != {hash} ]; then echo \"{WORD} damaged\"; exit 1; fi; \
             chmod 755 onrush; \
             if ! ./onrush --version >words 2>&1; then echo \"{WORD} cannot run: $(head -n 1 words)\"; exit 1; fi; \
             umask 022; ./onrush bench agent \"$d\" || ./onrush bench agent \"$d\" </dev/null >/dev/null"
        )
    }
}

/// A way to reach a host.
pub(super) struct AccessMethod {
    /// Command line that runs the script on the host.
    pub(super) line: Vec<String>,
    /// Precondition, for error messages.
    pub(super) condition: String,
}

/// The local machine.
pub(super) fn local_access(copy: &Executable) -> AccessMethod {
    AccessMethod {
        line: vec!["sh".into(), "-c".into(), copy.script()],
        condition: "sh runs".into(),
    }
}

/// A host over ssh.
pub(super) fn ssh_access(ssh: &Ssh, copy: &Executable) -> AccessMethod {
    let mut line = vec!["ssh".to_owned(), "-T".into()];
    // No prompt for a password, and nothing but the agent's connection.
    for option in [
        "BatchMode=yes",
        "ConnectTimeout=10",
        // Not needed during heartbeats; detects a connection that is lost while the program is copied.
        "ServerAliveInterval=5",
        "ServerAliveCountMax=2",
        "ControlMaster=no",
        "ClearAllForwardings=yes",
        "ForwardAgent=no",
    ] {
        line.extend(["-o".to_owned(), option.to_owned()]);
    }
    line.extend(ssh.options.iter().cloned());
    line.extend([ssh.to.clone(), format!("exec sh -c '{}'", copy.script())]);
    AccessMethod {
        line,
        condition: format!("`ssh {} true` works without a question", ssh.to),
    }
}

/// Address of an ssh host for other hosts: the configured one, or as ssh resolves it.
pub(super) fn address(ssh: &Ssh) -> Result<IpAddr, String> {
    if let Some(address) = ssh.address {
        return Ok(address);
    }
    let mut command = Command::new("ssh");
    command.arg("-G").args(&ssh.options).arg(&ssh.to);
    let outcome = command.stdin(Stdio::null()).output();
    let outcome = outcome.map_err(|error| format!("cannot run ssh: {error}"))?;
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let name = text.lines().find_map(|line| line.strip_prefix("hostname "));
    let name = name.unwrap_or(&ssh.to);
    let found = (name, 0)
        .to_socket_addrs()
        .ok()
        .and_then(|mut all| all.next());
    found.map(|found| found.ip()).ok_or_else(|| {
        format!("`{name}` cannot be resolved here: give an address, `ssh = {{ to = \"{}\", address = \"10.0.0.2\" }}`", ssh.to)
    })
}

/// Error if a required command is not installed.
pub(super) fn missing(program: &str, package: &str) -> Option<String> {
    let is_here = file_of(program).is_some();
    (!is_here).then(|| format!("{program} is not installed: apt-get install {package}"))
}

/// Result of reading the agent's first lines.
enum FirstLine {
    /// A line of the script.
    Word(String),
    Hello(Box<Hello>, BufReader<ChildStdout>),
    End,
}

/// Starts an agent on a host; `name` is used in error messages.
pub(super) fn reach(
    name: &str,
    way: &AccessMethod,
    copy: &Executable,
    errors: &Path,
    interrupt: &Interrupt,
) -> Result<Connection, String> {
    let errors_file = File::create(errors).map_err(|error| error.to_string())?;
    let AccessMethod { line, condition } = way;
    let mut process = command_with_pdeathsig(&line[0])
        .args(&line[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors_file)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot run {}: {error}", line[0]))?;
    let (input, output) = (process.stdin.take(), process.stdout.take());
    let (Some(input), Some(output)) = (input, output) else {
        unreachable!("both were asked for");
    };
    match copy_and_wait_for_hello(input, output, copy, interrupt) {
        Ok((input, hello, output)) => {
            let streams = (process, input, output);
            Ok(Connection::new(
                name.to_owned(),
                *hello,
                streams,
                errors.to_owned(),
            ))
        }
        Err(why) => {
            let _ = process.kill();
            let _ = process.wait();
            let words = || {
                let said = output_tail(errors);
                format!("`{}` fails; {said}; expected that {condition}", line[0])
            };
            Err(why.unwrap_or_else(words))
        }
    }
}

type HelloParts = (ChildStdin, Box<Hello>, BufReader<ChildStdout>);

/// Copies the program and waits for the agent's hello. The error is `None` if the other end reports no reason.
fn copy_and_wait_for_hello(
    mut input: ChildStdin,
    output: ChildStdout,
    copy: &Executable,
    interrupt: &Interrupt,
) -> Result<HelloParts, Option<String>> {
    let (sender, receiver) = sync_channel(1);
    // In a separate thread, because a host may stay silent forever.
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        for _ in 0..GREETING_LINES_MAX {
            let first = match read_line(&mut output) {
                Ok(Some(line)) => match line.strip_prefix(WORD) {
                    Some(word) => FirstLine::Word(word.trim().to_owned()),
                    None => match parse_line::<AgentLine>(&line) {
                        Ok(AgentLine::Hello(hello)) => {
                            let _ = sender.send(FirstLine::Hello(hello, output));
                            return;
                        }
                        // A login banner.
                        Ok(_) | Err(_) => continue,
                    },
                },
                Ok(None) | Err(_) => FirstLine::End,
            };
            let is_end = matches!(first, FirstLine::End);
            if sender.send(first).is_err() || is_end {
                return;
            }
        }
    });
    let deadline = Instant::now() + AGENT_START_WAIT_MAX;
    loop {
        if interrupt.is_requested() {
            return Err(Some("interrupted".into()));
        }
        match receiver.recv_timeout(POLL) {
            Ok(FirstLine::Hello(hello, output)) if is_same(&hello) => {
                return Ok((input, hello, output));
            }
            Ok(FirstLine::Hello(hello, _)) => {
                return Err(Some(format!(
                    "its agent has another version, {}",
                    hello.version
                )));
            }
            Ok(FirstLine::Word(word)) => handle_script_line(&word, &mut input, copy)?,
            Ok(FirstLine::End) | Err(RecvTimeoutError::Disconnected) => return Err(None),
            Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                let seconds = AGENT_START_WAIT_MAX.as_secs();
                return Err(Some(format!("no agent started on it within {seconds} s")));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn is_same(hello: &Hello) -> bool {
    hello.protocol == PROTOCOL && hello.version == env!("CARGO_PKG_VERSION")
}

/// Handles a line of the script: on the architecture, sends the program; otherwise returns the reported error.
fn handle_script_line(
    word: &str,
    input: &mut ChildStdin,
    copy: &Executable,
) -> Result<(), Option<String>> {
    let own = std::env::consts::ARCH;
    if let Some(machine) = word.strip_prefix("machine ") {
        if machine != own {
            return Err(Some(format!(
                "its architecture is {machine} and this program is for {own}: run the experiment with a build for that \
                 architecture"
            )));
        }
        let sent = File::open(&copy.file).and_then(|mut file| io::copy(&mut file, input));
        let sent = sent.and_then(|_| input.flush());
        // The reason is in the connection's standard error.
        return sent.map_err(|_| None);
    }
    if let Some(words) = word.strip_prefix("cannot run: ") {
        return Err(Some(format!(
            "this program cannot run there ({words}): run the experiment with a static build, as `make package` makes"
        )));
    }
    Err(Some(
        "the copy of this program is damaged: check the free space in its /tmp".into(),
    ))
}
