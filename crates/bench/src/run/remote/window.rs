//! A window over several machines: each agent samples its own, and the rows are merged on one time axis.

use std::sync::Arc;

use super::super::agent_protocol::{ClosedWindow, Request, Response};
use super::super::failure::{Try, failed};
use super::super::subject::{Context, Subject};
use super::clock;
use super::connection::Connection;
use crate::collect::sampler::Window;
use crate::environment::ClockOffset;
use crate::outcome::{BySubject, CpuUse, Sample};
use crate::scenario::Role;

pub(in crate::run) struct RemoteWindow {
    machines: Vec<Machine>,
}

struct Machine {
    connection: Arc<Connection>,
    /// Prefix for counters of machines other than that of the role under test.
    label: Option<String>,
    first_cpu: usize,
    clock: ClockOffset,
    roles: Vec<Role>,
}

impl RemoteWindow {
    /// Opens the window on all machines of a trial, over the roles that already run.
    pub(in crate::run) fn open(
        context: &Context<'_>,
        subject: &Subject<'_>,
        running: &[Role],
    ) -> Try<RemoteWindow> {
        let mut machines = Vec::new();
        let remote = subject.variant.remote.iter();
        for (index, host, remote) in remote.flat_map(|remote| {
            let hosts = remote.hosts.iter().enumerate();
            hosts.map(move |(index, host)| (index, host, remote))
        }) {
            let roles = remote.roles_on(index);
            let is_under_test = roles.contains(&subject.under_test());
            for node in context.hosts.nodes_of(&host.name) {
                machines.push(Machine {
                    connection: Arc::clone(&node.connection),
                    label: (!is_under_test).then(|| node.connection.name.clone()),
                    first_cpu: node.first_cpu,
                    // Measured before each window, because clocks drift.
                    clock: clock::compare(&node.connection)?,
                    roles: roles.clone(),
                });
            }
        }
        for machine in &machines {
            let on_it = running.iter().filter(|role| machine.roles.contains(role));
            let roles = on_it.copied().collect();
            let collect = subject.variant.collect;
            machine
                .connection
                .request_done(Request::Open { roles, collect })?;
        }
        Ok(RemoteWindow { machines })
    }

    pub(in crate::run) fn join(&self, role: Role) -> Try<()> {
        for machine in &self.machines {
            if machine.roles.contains(&role) {
                machine.connection.request_done(Request::Join { role })?;
            }
        }
        Ok(())
    }

    /// Closes the window, first on the client's machines, because the others only have to last as long.
    pub(in crate::run) fn close(mut self) -> Try<Window> {
        let is_client = |machine: &Machine| machine.roles.contains(&Role::Client);
        self.machines.sort_by_key(|machine| !is_client(machine));
        let mut parts = Vec::new();
        for machine in self.machines {
            let mut rows = Vec::new();
            let mut closed = None;
            for answer in machine.connection.request(Request::Close)? {
                match answer {
                    Response::Row(row) => rows.push(*row),
                    Response::Window(window) => closed = Some(*window),
                    _ => return failed(machine.connection.unexpected_response()),
                }
            }
            let Some(closed) = closed else {
                return failed(machine.connection.unexpected_response());
            };
            parts.push(Part {
                label: machine.label,
                first_cpu: machine.first_cpu,
                ahead_s: machine.clock.ahead_s,
                has_client: machine.roles.contains(&Role::Client),
                rows,
                closed,
            });
        }
        Ok(together(parts))
    }
}

struct Part {
    label: Option<String>,
    first_cpu: usize,
    ahead_s: f64,
    has_client: bool,
    rows: Vec<Sample>,
    closed: ClosedWindow,
}

/// Merges windows. The result has the start and the length of the client's window.
fn together(parts: Vec<Part>) -> Window {
    let begin = |part: &Part| part.closed.opened_at - part.ahead_s;
    let of_client = parts.iter().filter(|part| part.has_client);
    let start = of_client.map(begin).fold(f64::MAX, f64::min);
    let mut whole = Window::default();
    for mut part in parts {
        let shift = begin(&part) - start;
        let window = std::mem::take(&mut part.closed.window);
        if part.has_client {
            whole.length = whole.length.max(window.length);
        }
        let kernel = part
            .closed
            .ksoftirqd
            .iter()
            .copied()
            .chain(std::iter::repeat(0.0));
        let cpus = window.cpus.iter().zip(kernel);
        whole.cpus.extend(cpus.map(|(cpu, ksoftirqd)| CpuUse {
            ksoftirqd,
            ..part.renumbered(*cpu)
        }));
        for (role, used) in window.roles {
            let all = whole.roles.entry(role).or_default();
            *all = all.with(used);
        }
        whole.totals.extend(part.renamed(window.totals));
        whole.collector = whole.collector.max(window.collector);
        let left_out = window.left_out.into_iter().map(|what| match &part.label {
            None => what,
            Some(label) => format!("{label}: {what}"),
        });
        whole.left_out.extend(left_out);
        for row in std::mem::take(&mut part.rows) {
            let interfaces = row.interfaces.into_iter();
            whole.samples.push(Sample {
                t: row.t + shift,
                cpus: row.cpus.iter().map(|cpu| part.renumbered(*cpu)).collect(),
                interfaces: interfaces
                    .map(|(name, used)| (part.subject(name), used))
                    .collect(),
                counters: part.renamed(row.counters),
                ..row
            });
        }
    }
    whole.samples.sort_by(|a, b| a.t.total_cmp(&b.t));
    whole
}

impl Part {
    fn renumbered(&self, cpu: CpuUse) -> CpuUse {
        CpuUse {
            cpu: cpu.cpu + self.first_cpu,
            ..cpu
        }
    }

    fn renamed(&self, by_subject: BySubject) -> BySubject {
        let subjects = by_subject.into_iter();
        subjects
            .map(|(name, measures)| (self.subject(name), measures))
            .collect()
    }

    /// Name of a subject in the merged window: CPUs have an offset, roles are unique, and everything else on machines
    /// other than that of the role under test has the machine's name as prefix.
    fn subject(&self, name: String) -> String {
        let cpu = name
            .strip_prefix("cpu")
            .and_then(|number| number.parse::<usize>().ok());
        if let Some(cpu) = cpu {
            return format!("cpu{}", cpu + self.first_cpu);
        }
        match &self.label {
            None => name,
            Some(label) => format!("{label}:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::collect::process::TreeUse;

    fn part(label: Option<&str>, first_cpu: usize, opened_at: f64, ahead_s: f64) -> Part {
        let role = match label {
            None => Role::Server,
            Some(_) => Role::Client,
        };
        let cpu = CpuUse {
            cpu: 1,
            ..CpuUse::default()
        };
        let row = Sample {
            t: 1.0,
            span_s: 1.0,
            cpus: vec![cpu],
            roles: [(role, 0.5)].into(),
            interfaces: [].into(),
            counters: [
                ("tcp".to_owned(), [].into()),
                ("cpu1".to_owned(), [].into()),
            ]
            .into(),
        };
        let used = TreeUse {
            cpu: Duration::from_secs(1),
            ..TreeUse::default()
        };
        let window = Window {
            length: Duration::from_secs(2),
            cpus: vec![cpu],
            roles: [(role, used)].into(),
            left_out: vec!["pressure".into()],
            ..Window::default()
        };
        Part {
            label: label.map(String::from),
            first_cpu,
            ahead_s,
            has_client: label.is_some(),
            rows: vec![row],
            closed: ClosedWindow {
                opened_at,
                ksoftirqd: vec![0.25],
                window,
            },
        }
    }

    #[test]
    fn clock_offsets_are_corrected() {
        // The server's clock is one hour ahead, and its window was opened half a second before the client's.
        let window = together(vec![
            part(None, 10_000, 4_600.0, 3_600.0),
            part(Some("a"), 20_000, 1_000.5, 0.0),
            part(Some("b"), 30_000, 1_000.75, 0.0),
        ]);
        let times: Vec<f64> = window.samples.iter().map(|row| row.t).collect();
        assert_eq!(times, [0.5, 1.0, 1.25]);
        let cpus: Vec<usize> = window.cpus.iter().map(|cpu| cpu.cpu).collect();
        assert_eq!(cpus, [10_001, 20_001, 30_001]);
        assert!(window.cpus.iter().all(|cpu| cpu.ksoftirqd == 0.25));
        assert_eq!(window.roles[&Role::Client].cpu, Duration::from_secs(2));
        assert_eq!(window.length, Duration::from_secs(2));
        let subjects: Vec<&str> = window.samples[1]
            .counters
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(subjects, ["a:tcp", "cpu20001"]);
        assert!(window.samples[0].counters.contains_key("tcp"));
        assert_eq!(window.left_out, ["pressure", "a: pressure", "b: pressure"]);
    }
}
