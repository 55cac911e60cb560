//! Metrics of the whole process.

use onrush_serve::SpansView;

use super::family::Kind::{Counter, Gauge};
use super::family::{Row, Value, labelled, single};
use crate::context::readiness::Phase;
use crate::context::setup::ProcessInfo;
use crate::views::CoreViews;

pub(super) struct Process {
    facts: ProcessInfo,
    phase: Phase,
    generation: u64,
    silent: u64,
    spans: SpansView,
}

impl Process {
    pub(super) fn new(views: &CoreViews, facts: &ProcessInfo, phase: Phase) -> Self {
        let generations = views.cores.iter().map(|view| view.generation);
        Self {
            facts: facts.clone(),
            phase,
            generation: generations.max().unwrap_or(0),
            silent: views.unresponsive.len() as u64,
            spans: views.spans,
        }
    }
}

pub(super) const PROCESS: [Row<Process>; 7] = [
    Row {
        name: "build_info",
        kind: Gauge,
        help: "Version, I/O driver, architecture and number of cores of the process.",
        read: |process| {
            let facts = &process.facts;
            let labels = vec![
                ("version", facts.version.into()),
                ("driver", (&*facts.driver).into()),
                ("arch", std::env::consts::ARCH.into()),
                ("cores", facts.cpus.len().to_string().into()),
            ];
            vec![(labels, Value::Number(1.0))]
        },
    },
    Row {
        name: "start_time_seconds",
        kind: Gauge,
        help: "Start time of the process in seconds since the Unix epoch.",
        read: |process| single(process.facts.started.as_secs()),
    },
    Row {
        name: "config_generation",
        kind: Gauge,
        help: "Generation of the configuration in force; 1 is the configuration of the start.",
        read: |process| single(process.generation),
    },
    Row {
        name: "ready",
        kind: Gauge,
        help: "1 if the server accepts new clients, 0 if it drains or stops.",
        read: |process| single(process.phase == Phase::Ready),
    },
    Row {
        name: "cores_silent",
        kind: Gauge,
        help: "Cores that did not answer in time; all other metrics are without them.",
        read: |process| single(process.silent),
    },
    Row {
        name: "spans_exported_total",
        kind: Counter,
        help: "Trace spans accepted by the collector.",
        read: |process| single(process.spans.exported),
    },
    Row {
        name: "spans_lost_total",
        kind: Counter,
        help: "Trace spans lost, by reason.",
        read: |process| labelled("reason", process.spans.lost),
    },
];
