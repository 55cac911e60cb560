//! One trial: one variant of one work, from starting programs to figures.
//!
//! ```text
//!   start server ─ ready ─ start proxy ─ ready ─ warm-up ──┐
//!                                                          │ window: control + client start … client ends
//!   stop in reverse order ◄─ read reports ◄────────────────┘ a sample each second
//! ```

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use super::client_report::{self, read_report};
use super::failure::{Failure, Try, failed};
use super::idle::{IdleConnections, check_open_files};
use super::loaded::loaded_trial;
use super::network::NetworkNamespaces;
use super::prepare::ports;
use super::remote;
use super::running::Running;
use super::start::{check_alive, launch, wait_for_end, wait_for_end_of, wait_until_ready};
use super::subject::{Context, Subject};
use super::synchronized_start::{start_time, wait_for};
use super::warm_up::{WarmUpResult, warm_up};
use super::watch::{OpenWindow, ids};
use super::window_metrics;
use crate::collect::client::ClientReport;
use crate::collect::sampler::{Sampler, Window};
use crate::collect::source::Root;
use crate::collect::tree::Tree;
use crate::limits::OUTPUT_BYTES_MAX;
use crate::outcome::{RoleUse, Trial};
use crate::scenario::{Launch, Metric, Role};
use crate::verdict::{self, ControlEnd};

/// Delay before reading memory, for freed memory and late start-up work.
const MEMORY_READ_DELAY: Duration = Duration::from_millis(300);

/// Runs one trial. All of its programs have ended when this returns.
pub(super) fn measure(context: &mut Context<'_>, subject: Subject<'_>) -> Try<Trial> {
    // Dropped at the end of the trial, after the programs in it.
    let network = match &subject.variant.network {
        Some(network) => Some(NetworkNamespaces::make(
            network,
            context.root,
            context.interrupt,
        )?),
        None => None,
    };
    if let Some(network) = &network {
        let key = format!(
            "{} / {} / network",
            subject.work.title(),
            subject.variant.name
        );
        let commands = network.commands.clone();
        context.environment.commands.insert(key, commands);
    }
    let subject = Subject {
        network: network.as_ref(),
        ..subject
    };
    let mut applied = remote::apply(context, &subject)?;
    if !applied.words.is_empty() {
        let key = format!(
            "{} / {} / hosts",
            subject.work.title(),
            subject.variant.name
        );
        context
            .environment
            .commands
            .insert(key, applied.words.clone());
    }
    let trial = on_network(context, subject);
    applied.restore()?;
    trial
}

fn on_network(context: &mut Context<'_>, subject: Subject<'_>) -> Try<Trial> {
    let ports = match subject.variant.remote {
        Some(_) => remote::ports(context, &subject)?,
        None => ports(&subject)?,
    };
    remote::pin_self(context, &subject)?;
    // Stopped in reverse order: the proxy before its server.
    let mut listeners: Vec<(Role, Running)> = Vec::new();
    for role in [Role::Server, Role::Proxy] {
        if !subject.variant.roles.contains_key(&role) {
            continue;
        }
        context
            .progress
            .show(&format!("starting the {}", role.name()));
        let child = launch(context, &subject, role, &ports, context.experiment.measure)?;
        wait_until_ready(context, &subject, role, &child, ports[&role])?;
        listeners.push((role, child));
    }
    let client = subject
        .program(context.experiment, Role::Client)
        .map(|program| program.launch.clone());
    let trial = match client {
        Some(Launch::Idle(count)) => idle(context, subject, &listeners, &ports, count),
        _ => load(context, subject, &listeners, &ports),
    };
    let cut = listeners.iter().filter(|(_, child)| child.was_truncated());
    let cut: Vec<String> = cut.map(|(role, _)| cut_in_words(*role)).collect();
    while let Some((_, mut child)) = listeners.pop() {
        child.stop();
    }
    trial.map(|mut trial| {
        trial.notes.extend(cut);
        trial
    })
}

fn cut_in_words(role: Role) -> String {
    let most = OUTPUT_BYTES_MAX >> 20;
    format!(
        "the {} printed more than {most} MiB: its output was truncated",
        role.name()
    )
}

fn load(
    context: &mut Context<'_>,
    subject: Subject<'_>,
    listeners: &[(Role, Running)],
    ports: &BTreeMap<Role, u16>,
) -> Try<Trial> {
    let measure = context.experiment.measure;
    let warm = warm_up(context, &subject, ports, listeners)?;

    let start_at = start_time(context, &subject);
    let subject = Subject {
        start_at,
        ..subject
    };
    // Clients with a start time are launched before the window is opened.
    let waiting = match start_at {
        Some(moment) => {
            let client = launch(context, &subject, Role::Client, ports, measure)?;
            wait_for(context, moment)?;
            Some(client)
        }
        None => None,
    };
    let root = network_root(&subject);
    let mut watch = OpenWindow::start(context, &subject, &root, listeners)?;
    let at_s = subject.run_started.elapsed().as_secs_f64();
    let mut control = match subject.variant.roles.contains_key(&Role::Control) {
        true => Some(launch(context, &subject, Role::Control, ports, measure)?),
        false => None,
    };
    if let Some(control) = &control {
        watch.join(Role::Control, control)?;
    }
    let mut client = match waiting {
        Some(client) => client,
        None => launch(context, &subject, Role::Client, ports, measure)?,
    };
    watch.join(Role::Client, &client)?;
    wait_for_end(context, &client, listeners, measure, "measuring", || {
        watch.poll()
    })?;
    let (window, recorded) = watch.finish()?;
    check_alive(listeners)?;

    let report = read_report(context, &subject, Role::Client, &client)?;
    let failure = client_report::failure(context, &subject, Role::Client, &client);
    client.stop();
    let (control_report, control_end) = match &mut control {
        None => (None, None),
        Some(control) => {
            let (report, end) = end_of_control(context, &subject, control)?;
            (report, Some(end))
        }
    };
    let mut trial = loaded_trial(&subject, window, report, control_report);
    trial.at_s = at_s;
    note_warm_up(&mut trial, warm);
    trial.invalid.extend(failure);
    recorded.write(context, &subject, &mut trial)?;
    verdict::judge(
        &mut trial,
        subject.placement,
        subject.under_test(),
        Some(measure.as_secs_f64()),
    );
    if let Some(end) = &control_end {
        verdict::judge_control(&mut trial, subject.placement, end);
    }
    Ok(trial)
}

/// Waits for the control client, and reads its report and reasons to distrust it. The client's figures remain valid
/// without it.
fn end_of_control(
    context: &mut Context<'_>,
    subject: &Subject<'_>,
    control: &mut Running,
) -> Try<(Option<ClientReport>, ControlEnd)> {
    let measure = context.experiment.measure;
    let asked = (Role::Control, &*control);
    let report = wait_for_end_of(context, asked, &[], measure, "measuring", || ())
        .and_then(|()| read_report(context, subject, Role::Control, control));
    let report = match report {
        Ok(report) => report,
        Err(Failure::Failed(why)) => {
            control.stop();
            let end = ControlEnd {
                failure: Some(why),
                ..ControlEnd::default()
            };
            return Ok((None, end));
        }
        Err(ending) => return Err(ending),
    };
    let failure = client_report::failure(context, subject, Role::Control, control);
    control.stop();
    let end = ControlEnd {
        requests: Some(report.requests),
        errors: report.errors,
        failure,
        distrust: report.invalid_reasons.clone(),
    };
    Ok((Some(report), end))
}

fn note_warm_up(trial: &mut Trial, warm: WarmUpResult) {
    match warm {
        WarmUpResult::Unknown => {}
        WarmUpResult::Steady(after) => trial.warm_up_s = Some(after.as_secs_f64()),
        WarmUpResult::Unsteady(after) => {
            trial.warm_up_s = Some(after.as_secs_f64());
            trial.notes.push(format!(
                "the rate still changed after {:.0} s of warm-up",
                after.as_secs_f64()
            ));
        }
    }
}

/// Network counters are read on the host of the role under test.
fn network_root(subject: &Subject<'_>) -> Root {
    let host = subject
        .network
        .and_then(|network| network.process_of(subject.under_test()));
    match host {
        Some(process) => Root::of_machine().with_network_of(process),
        None => Root::of_machine(),
    }
}

fn idle(
    context: &mut Context<'_>,
    subject: Subject<'_>,
    listeners: &[(Role, Running)],
    ports: &BTreeMap<Role, u16>,
    count: u32,
) -> Try<Trial> {
    check_open_files(count, context.open_files_max).map_err(Failure::Failed)?;
    if subject.network.is_some() || subject.variant.remote.is_some() {
        return failed("idle connections can only be opened on this machine, not on hosts");
    }
    let target = ports.get(&Role::Proxy).or(ports.get(&Role::Server));
    let Some(port) = target.copied() else {
        return failed("no server to connect to");
    };
    thread::sleep(MEMORY_READ_DELAY);
    let root = Root::of_machine();
    let memory = |listeners: &[(Role, Running)]| -> BTreeMap<Role, u64> {
        let ids = ids(listeners).into_iter();
        ids.map(|(role, pid)| (role, Tree::follow(&root, pid).read().memory_bytes))
            .collect()
    };
    let before = memory(listeners);
    let sampler = Sampler::start(
        &Root::of_machine(),
        &ids(listeners),
        subject.variant.collect,
    );
    let at_s = subject.run_started.elapsed().as_secs_f64();
    let (interrupt, progress) = (context.interrupt, &mut *context.progress);
    let opened = IdleConnections::open(port, count, |number| {
        if number.is_multiple_of(500) {
            progress.show(&format!("{number} connections open"));
        }
        !interrupt.is_requested()
    });
    let connections = match opened {
        Ok(connections) => connections,
        Err(_) if context.interrupt.is_requested() => return Err(Failure::Interrupted),
        Err(error) => return failed(format!("cannot open {count} connections: {error}")),
    };
    thread::sleep(MEMORY_READ_DELAY);
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
        requests: u64::from(count),
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
    window_metrics::observed(&mut trial, window);
    trial
}
