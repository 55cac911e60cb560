//! One trial: one variant of one work, from fresh programs to numbers.
//!
//! ```text
//!   start server ─ ready ─ start proxy ─ ready ─ warm-up ──┐
//!                                                          │ window: control + client start … client ends
//!   stop in reverse order ◄─ read reports ◄────────────────┘ a sample each second
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::child::{Child, nap, pinned};
use super::idle::{IdleConnections, check_open_files};
use super::interrupt::Interrupt;
use super::ports::free_port;
use super::progress::Progress;
use crate::collect::client::{self, ClientReport};
use crate::collect::process;
use crate::collect::sampler::{Sampler, Window};
use crate::environment::Environment;
use crate::limits::{CLIENT_OVERTIME_MAX, OUTPUT_BYTES_MAX, POLL, READY_POLL, READY_WAIT_MAX};
use crate::outcome::{RoleUse, Trial};
use crate::placement::Placement;
use crate::scenario::{
    Experiment, Launch, Metric, Program, Results, Role, Values, Variant, Work, render,
};
use crate::verdict;

/// Freed memory and late start-up work settle within this before memory is read.
const SETTLE: Duration = Duration::from_millis(300);

/// Why a trial gave no numbers.
#[derive(Debug)]
pub(super) enum Failure {
    /// We were asked to stop.
    Interrupted,
    /// A program did not do its part.
    Failed(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Failed(error.to_string())
    }
}

type Try<T> = Result<T, Failure>;

fn failed<T>(why: impl Into<String>) -> Try<T> {
    Err(Failure::Failed(why.into()))
}

/// What all trials share.
pub(super) struct Context<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) onrush: &'a Path,
    pub(super) root: &'a Path,
    pub(super) open_files_max: u64,
    pub(super) interrupt: &'a Interrupt,
    pub(super) progress: &'a mut Progress,
    pub(super) environment: &'a mut Environment,
}

/// What is measured now.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) work: &'a Work,
    pub(super) variant: &'a Variant,
    pub(super) placement: &'a Placement,
    pub(super) round: u32,
    pub(super) rate: Option<f64>,
    pub(super) run_started: Instant,
}

impl<'a> Subject<'a> {
    fn program<'e>(&self, experiment: &'e Experiment, role: Role) -> Option<&'e Program> {
        experiment.programs.get(self.variant.roles.get(&role)?)
    }

    fn under_test(&self) -> Role {
        self.work.under_test(self.variant)
    }
}

/// A role with its directory, ports and command line.
struct Part {
    directory: PathBuf,
    values: Values,
}

/// Makes one trial. Every program it started has ended when this returns.
pub(super) fn measure(context: &mut Context<'_>, subject: Subject<'_>) -> Try<Trial> {
    let ports = ports(&subject)?;
    // Dropped in reverse order: the proxy stops before the server behind it.
    let mut listeners: Vec<(Role, Child)> = Vec::new();
    for role in [Role::Server, Role::Proxy] {
        let Some(program) = subject.program(context.experiment, role) else {
            continue;
        };
        context
            .progress
            .show(&format!("starting the {}", role.name()));
        let part = prepare(context, &subject, role, &ports, context.experiment.measure)?;
        let child = start(context, &subject, role, program, &part)?;
        wait_until_ready(context.interrupt, role, &child, ports[&role])?;
        listeners.push((role, child));
    }
    let client = subject
        .program(context.experiment, Role::Client)
        .map(|program| program.launch.clone());
    let trial = match client {
        Some(Launch::Idle(count)) => idle(context, subject, &listeners, &ports, count),
        _ => load(context, subject, &listeners, &ports),
    };
    while let Some((_, mut child)) = listeners.pop() {
        child.stop();
    }
    trial
}

fn ports(subject: &Subject<'_>) -> Try<BTreeMap<Role, u16>> {
    let mut ports = BTreeMap::new();
    for role in subject.variant.roles.keys().filter(|role| role.listens()) {
        let taken: Vec<u16> = ports.values().copied().collect();
        ports.insert(*role, free_port(&taken)?);
    }
    Ok(ports)
}

// Starting programs.

/// Gives a role its directory, its values and its files.
fn prepare(
    context: &mut Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    ports: &BTreeMap<Role, u16>,
    length: Duration,
) -> Try<Part> {
    let directory = context.root.join(role.name());
    let _ = fs::remove_dir_all(&directory);
    create_open_directory(&directory)?;
    let values = values(context, subject, role, ports, length, &directory);
    let Some(program) = subject.program(context.experiment, role) else {
        return failed(format!("nobody takes the role {}", role.name()));
    };
    for (name, template) in &program.files {
        let text = render(template, &values);
        write_file(&directory, name, text.as_bytes())?;
        let key = format!("{} / {}", key(subject, role), name);
        context.environment.files.entry(key).or_insert(text);
    }
    for (name, size) in &program.sized_files {
        write_file(&directory, name, &filling(*size))?;
    }
    Ok(Part { directory, values })
}

fn key(subject: &Subject<'_>, role: Role) -> String {
    format!(
        "{} / {} / {}",
        subject.work.name,
        subject.variant.name,
        role.name()
    )
}

/// Workers of some servers give up their privileges; they must still reach their files.
fn create_open_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

fn write_file(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = directory.join(name);
    if let Some(parent) = path.parent().filter(|parent| *parent != directory) {
        create_open_directory(parent)?;
    }
    fs::write(path, bytes)
}

/// Lines of text, so that the file is the same on every machine and nothing compresses it away entirely.
fn filling(size: u64) -> Vec<u8> {
    let line = b"the quick brown fox jumps over the lazy dog 0123456789 and back\n";
    line.iter().copied().cycle().take(size as usize).collect()
}

/// Everything `{name}` may stand for; the reader of experiments knows the same names.
fn values(
    context: &Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    ports: &BTreeMap<Role, u16>,
    length: Duration,
    directory: &Path,
) -> Values {
    let cpus = subject.placement.of(role);
    let target = match role {
        Role::Client if ports.contains_key(&Role::Proxy) => Role::Proxy,
        Role::Client | Role::Proxy | Role::Server | Role::Control => Role::Server,
    };
    let bin_dir = context.onrush.parent().unwrap_or(Path::new("."));
    let mut values: Values = subject.variant.set.clone();
    let mut set = |name: &str, value: String| {
        values.insert(name.into(), value);
    };
    set("onrush", context.onrush.display().to_string());
    set("bin_dir", bin_dir.display().to_string());
    set(
        "experiment_dir",
        context.experiment.directory.display().to_string(),
    );
    set("dir", directory.display().to_string());
    set("json", directory.join("report.json").display().to_string());
    set("cpus", crate::environment::cpu_list(cpus));
    set("threads", cpus.len().max(1).to_string());
    set("connections", subject.work.connections.to_string());
    set("duration", format!("{}ms", length.as_millis()));
    set(
        "seconds",
        length.as_millis().div_ceil(1_000).max(1).to_string(),
    );
    if let Some(rate) = subject.rate {
        set("rate", format!("{rate:.0}"));
    }
    if let Some(port) = ports.get(&role) {
        set("port", port.to_string());
    }
    if let Some(port) = ports.get(&target) {
        set("target", format!("127.0.0.1:{port}"));
    }
    for (listener, port) in ports {
        set(&format!("{}.port", listener.name()), port.to_string());
    }
    values
}

fn start(
    context: &mut Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    program: &Program,
    part: &Part,
) -> Try<Child> {
    let filled = |arguments: &[String]| -> Vec<String> {
        arguments
            .iter()
            .map(|argument| render(argument, &part.values))
            .collect()
    };
    let command = match &program.launch {
        Launch::Onrush(arguments) => {
            let mut command = vec![context.onrush.display().to_string()];
            command.extend(filled(arguments));
            command
        }
        Launch::Command(command) => {
            let mut command = filled(command);
            if let Some(file) = super::child::file_of(&command[0]) {
                command[0] = file.display().to_string();
            }
            command
        }
        Launch::Idle(_) => return failed("idle connections are no program"),
    };
    let line = pinned(subject.placement.of(role), command);
    let child = Child::start(&line, &part.directory).or_else(|error| {
        failed(format!(
            "the {} did not start: {error} ({})",
            role.name(),
            line.join(" ")
        ))
    })?;
    // The last one stays: of a client that is the measured run, not its warm-up.
    context
        .environment
        .commands
        .insert(key(subject, role), line);
    Ok(child)
}

fn wait_until_ready(interrupt: &Interrupt, role: Role, child: &Child, port: u16) -> Try<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let deadline = Instant::now() + READY_WAIT_MAX;
    loop {
        if interrupt.is_asked() {
            return Err(Failure::Interrupted);
        }
        if child.has_ended() {
            return failed(format!(
                "the {} ended at once; {}",
                role.name(),
                child.last_words()
            ));
        }
        if TcpStream::connect_timeout(&address, READY_WAIT_MAX).is_ok() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return failed(format!(
                "the {} does not accept connections on {address} after {} s; {}",
                role.name(),
                READY_WAIT_MAX.as_secs(),
                child.last_words()
            ));
        }
        nap(READY_POLL, deadline);
    }
}

// Load.

fn load(
    context: &mut Context<'_>,
    subject: Subject<'_>,
    listeners: &[(Role, Child)],
    ports: &BTreeMap<Role, u16>,
) -> Try<Trial> {
    let (warm_up, measure) = (context.experiment.warm_up, context.experiment.measure);
    if warm_up > Duration::ZERO {
        let mut client = start_client(context, &subject, Role::Client, ports, warm_up)?;
        wait_for_end(context, &client, warm_up, "warming up", || ())?;
        client.stop();
    }

    let mut sampler = Sampler::start(ids(listeners));
    let at_s = subject.run_started.elapsed().as_secs_f64();
    let mut control = match subject.variant.roles.contains_key(&Role::Control) {
        true => Some(start_client(
            context,
            &subject,
            Role::Control,
            ports,
            measure,
        )?),
        false => None,
    };
    if let Some(control) = &control {
        sampler.join(Role::Control, control.id());
    }
    let mut client = start_client(context, &subject, Role::Client, ports, measure)?;
    sampler.join(Role::Client, client.id());
    wait_for_end(context, &client, measure, "measuring", || sampler.poll())?;
    let window = sampler.finish();
    check_alive(listeners)?;

    let report = read_report(context, &subject, Role::Client, &client)?;
    client.stop();
    let control_report = match &mut control {
        None => None,
        Some(control) => {
            wait_for_end(context, control, measure, "measuring", || ())?;
            let report = read_report(context, &subject, Role::Control, control)?;
            control.stop();
            Some(report)
        }
    };
    let mut trial = loaded_trial(&subject, window, report, control_report);
    trial.at_s = at_s;
    verdict::judge(
        &mut trial,
        subject.placement,
        subject.under_test(),
        Some(measure.as_secs_f64()),
    );
    Ok(trial)
}

fn ids(listeners: &[(Role, Child)]) -> BTreeMap<Role, u32> {
    listeners
        .iter()
        .map(|(role, child)| (*role, child.id()))
        .collect()
}

fn start_client(
    context: &mut Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    ports: &BTreeMap<Role, u16>,
    length: Duration,
) -> Try<Child> {
    let part = prepare(context, subject, role, ports, length)?;
    let Some(program) = subject.program(context.experiment, role) else {
        return failed(format!("nobody takes the role {}", role.name()));
    };
    start(context, subject, role, program, &part)
}

fn wait_for_end(
    context: &mut Context<'_>,
    client: &Child,
    length: Duration,
    phase: &str,
    mut poll: impl FnMut(),
) -> Try<()> {
    let deadline = Instant::now() + length + CLIENT_OVERTIME_MAX;
    while !client.has_ended() {
        if context.interrupt.is_asked() {
            return Err(Failure::Interrupted);
        }
        if Instant::now() > deadline {
            return failed(format!("the client did not end; {}", client.last_words()));
        }
        poll();
        context.progress.show(phase);
        nap(POLL, deadline);
    }
    Ok(())
}

fn check_alive(listeners: &[(Role, Child)]) -> Try<()> {
    match listeners.iter().find(|(_, child)| child.has_ended()) {
        None => Ok(()),
        Some((role, child)) => failed(format!(
            "the {} ended during the run; {}",
            role.name(),
            child.last_words()
        )),
    }
}

fn read_report(
    context: &Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    child: &Child,
) -> Try<ClientReport> {
    let results = subject
        .program(context.experiment, role)
        .map_or(Results::Onrush, |program| program.results);
    let text = match results {
        Results::Wrk | Results::Oha => child.output(),
        Results::Onrush => {
            let path = context.root.join(role.name()).join("report.json");
            onrush_file::read_text(&path, OUTPUT_BYTES_MAX).unwrap_or_default()
        }
    };
    client::read(results, &text).or_else(|why| {
        failed(format!(
            "no report of the {} ({why}); {}",
            role.name(),
            child.last_words()
        ))
    })
}

fn loaded_trial(
    subject: &Subject<'_>,
    window: Window,
    report: ClientReport,
    control: Option<ClientReport>,
) -> Trial {
    let control_requests = control.as_ref().map_or(0, |control| control.requests);
    let window_s = window.length.as_secs_f64();
    let mut roles = BTreeMap::new();
    let mut metrics = BTreeMap::from([(Metric::Rate.name(), report.rps)]);
    for (role, used) in &window.roles {
        // The server answers the control client too.
        let answered = match role {
            Role::Client | Role::Proxy => report.requests,
            Role::Server => report.requests + control_requests,
            Role::Control => control_requests,
        };
        let cpu_us_per_request =
            (answered > 0).then(|| used.cpu.as_secs_f64() * 1e6 / answered as f64);
        if let Some(value) = cpu_us_per_request {
            metrics.insert(Metric::Cpu(*role).name(), value);
        }
        let cpus = subject.placement.of(*role).len().max(1) as f64;
        let role_use = RoleUse {
            cpu_s: used.cpu.as_secs_f64(),
            system_share: used.system_share(),
            busy: used.cpu.as_secs_f64() / window_s.max(1e-9) / cpus,
            cpu_us_per_request,
            memory_bytes: used.memory_bytes,
        };
        roles.insert(*role, role_use);
    }
    if let Some(latency) = &report.latency {
        metrics.insert(Metric::LatencyMean.name(), latency.mean);
        for value in &latency.percentiles {
            metrics.insert(format!("latency.p{}", value.percentile), value.us);
        }
    }
    Trial {
        round: subject.round,
        window_s,
        rate: subject.rate,
        requests: report.requests,
        errors: report.errors,
        rps: report.rps,
        bytes_per_s: report.bytes_per_s,
        latency_us: report.latency,
        control_latency_us: control.and_then(|control| control.latency),
        seconds: report.seconds,
        samples: window.samples,
        roles,
        cpus: window.cpus,
        metrics,
        notes: report
            .warnings
            .into_iter()
            .map(|warning| format!("the client says: {warning}"))
            .collect(),
        ..Trial::default()
    }
}

// Idle connections.

fn idle(
    context: &mut Context<'_>,
    subject: Subject<'_>,
    listeners: &[(Role, Child)],
    ports: &BTreeMap<Role, u16>,
    count: u32,
) -> Try<Trial> {
    check_open_files(count, context.open_files_max).map_err(Failure::Failed)?;
    let target = ports.get(&Role::Proxy).or(ports.get(&Role::Server));
    let Some(port) = target.copied() else {
        return failed("nobody listens");
    };
    thread::sleep(SETTLE);
    let memory = |listeners: &[(Role, Child)]| -> BTreeMap<Role, u64> {
        listeners
            .iter()
            .map(|(role, child)| (*role, process::tree(child.id()).memory_bytes))
            .collect()
    };
    let before = memory(listeners);
    let sampler = Sampler::start(ids(listeners));
    let at_s = subject.run_started.elapsed().as_secs_f64();
    let (interrupt, progress) = (context.interrupt, &mut *context.progress);
    let opened = IdleConnections::open(port, count, |number| {
        if number.is_multiple_of(500) {
            progress.show(&format!("{number} connections open"));
        }
        !interrupt.is_asked()
    });
    let connections = match opened {
        Ok(connections) => connections,
        Err(_) if context.interrupt.is_asked() => return Err(Failure::Interrupted),
        Err(error) => return failed(format!("cannot open {count} connections: {error}")),
    };
    thread::sleep(SETTLE);
    check_alive(listeners)?;
    let window = sampler.finish();
    let after = memory(listeners);
    let closed = connections.closed() as u64;

    let mut trial = idle_trial(&subject, window, count, |role| {
        after[&role].saturating_sub(before[&role])
    });
    trial.at_s = at_s;
    trial.errors = closed;
    if closed > 0 {
        trial
            .notes
            .push(format!("the server closed {closed} of the connections"));
    }
    verdict::judge(&mut trial, subject.placement, subject.under_test(), None);
    Ok(trial)
}

fn idle_trial(
    subject: &Subject<'_>,
    window: Window,
    count: u32,
    grown: impl Fn(Role) -> u64,
) -> Trial {
    let mut trial = Trial {
        round: subject.round,
        window_s: window.length.as_secs_f64(),
        requests: u64::from(count),
        samples: window.samples,
        cpus: window.cpus,
        ..Trial::default()
    };
    for (role, used) in &window.roles {
        trial.metrics.insert(
            Metric::Memory(*role).name(),
            grown(*role) as f64 / f64::from(count),
        );
        let role_use = RoleUse {
            cpu_s: used.cpu.as_secs_f64(),
            memory_bytes: used.memory_bytes,
            ..RoleUse::default()
        };
        trial.roles.insert(*role, role_use);
    }
    trial
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sized_file_has_its_size() {
        for size in [0, 1, 63, 64, 65, 1_024] {
            assert_eq!(filling(size).len(), size as usize);
        }
    }
}
