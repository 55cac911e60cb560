//! Live figures: the differences of counters between two samples, and the requests in flight.

pub(crate) mod cpus;

use std::time::Duration;

use onrush_engine::{Core, Instant};
use onrush_serve::{GroupView, ServerView, TrafficView, sum_groups, sum_traffic};
use serde_json::{Value, json};

use crate::context::Context;
use crate::json;
use crate::views::{self, CoreViews};

pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of listed requests.
const REQUESTS_MAX: usize = 100;

/// A sample, to which the next one is compared.
pub(crate) struct Sample {
    at: Instant,
    sums: Totals,
    cores: Vec<(usize, CoreUsage)>,
    cpus: Vec<(usize, cpus::Ticks)>,
}

struct Totals {
    listeners: Vec<TrafficView>,
    routes: Vec<TrafficView>,
    group_traffic: Vec<TrafficView>,
    groups: Vec<GroupView>,
}

/// Time and requests of a core since its start.
#[derive(Clone, Copy)]
struct CoreUsage {
    /// CPU time; for a core that busy-polls, the time in which it had work.
    used: Duration,
    waited: Option<Duration>,
    requests: u64,
}

impl Totals {
    fn of(views: &CoreViews) -> Totals {
        let cores = &views.cores;
        Totals {
            listeners: sum_traffic(cores.iter().map(|view| &*view.listeners)),
            routes: sum_traffic(cores.iter().map(|view| &*view.routes)),
            group_traffic: sum_traffic(cores.iter().map(|view| &*view.group_traffic)),
            groups: sum_groups(cores.iter().map(|view| &*view.groups)),
        }
    }
}

/// Waits for the time of the next sample.
pub(crate) async fn wait_until_due(core: &Core, before: Option<&Sample>) {
    let due = before.map_or(Instant::default(), |before| before.at + INTERVAL);
    core.sleep(due.since(core.now_exact())).await;
}

/// Takes a sample and returns the difference to `before`; `None` for the first one.
pub(crate) async fn sample(desk: &Context, before: &mut Option<Sample>) -> Option<Value> {
    let views = CoreViews::take(&desk.core, &desk.inspector).await;
    let (requests, _) = views::requests(&desk.core, &desk.inspector).await;
    let now = Sample {
        at: desk.core.now_exact(),
        sums: Totals::of(&views),
        cores: views
            .cores
            .iter()
            .map(|view| {
                let spent = CoreUsage {
                    used: view.had_work.unwrap_or(view.time.ran),
                    waited: view.time.waited,
                    requests: view.totals.requests,
                };
                (view.core, spent)
            })
            .collect(),
        cpus: cpus::ticks(),
    };
    let value = before.as_ref().map(|before| {
        let listed = &requests[..requests.len().min(REQUESTS_MAX)];
        let mut said = json::requests(listed, &views.unresponsive);
        said["not_listed"] = requests.len().saturating_sub(REQUESTS_MAX).into();
        said["interval"] = now.at.since(before.at).as_secs_f64().into();
        said["status"] = json::status(&views, desk);
        said["cores"] = cores(&now, before, desk);
        let listeners = since(&now.sums.listeners, &before.sums.listeners);
        said["listeners"] = listeners.iter().map(json::traffic).collect();
        let routes = since(&now.sums.routes, &before.sums.routes);
        said["routes"] = routes.iter().map(json::traffic).collect();
        let traffic = since(&now.sums.group_traffic, &before.sums.group_traffic);
        let groups = groups_since(&now.sums.groups, &before.sums.groups);
        let groups = groups
            .iter()
            .map(|group| json::group(group, &traffic, &desk.journal));
        said["groups"] = groups.collect();
        said
    });
    *before = Some(now);
    value
}

/// Utilization of each core, as shares of the interval.
fn cores(now: &Sample, before: &Sample, desk: &Context) -> Value {
    let interval = now.at.since(before.at).as_secs_f64();
    let cores = now.cores.iter().map(|(number, spent)| {
        let earlier = before.cores.iter().find(|(other, _)| other == number);
        let earlier = earlier.map_or(*spent, |(_, spent)| *spent);
        let share =
            |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64() / interval;
        let cpu = desk.facts.cpus.get(*number).copied().flatten();
        json!({
            "core": number,
            "cpu": cpu,
            "busy": share(spent.used, earlier.used),
            "waiting": spent.waited.zip(earlier.waited).map(|(now, before)| share(now, before)),
            "softirq": cpu.and_then(|cpu| cpus::softirq(cpu, &before.cpus, &now.cpus)),
            "requests": spent.requests.saturating_sub(earlier.requests),
        })
    });
    cores.collect()
}

fn since(now: &[TrafficView], before: &[TrafficView]) -> Vec<TrafficView> {
    let difference = |view: &TrafficView| {
        let mut view = view.clone();
        if let Some(before) = before.iter().find(|before| before.name == view.name) {
            view -= before;
        }
        view
    };
    now.iter().map(difference).collect()
}

fn groups_since(now: &[GroupView], before: &[GroupView]) -> Vec<GroupView> {
    let mut groups = now.to_vec();
    for group in &mut groups {
        let Some(before) = before.iter().find(|before| before.name == group.name) else {
            continue;
        };
        for server in &mut group.servers {
            let is_same =
                |other: &&ServerView| other.name == server.name && other.address == server.address;
            if let Some(before) = before.servers.iter().find(is_same) {
                *server -= before;
            }
        }
    }
    groups
}
