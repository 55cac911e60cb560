//! Metrics of the whole process.

use onrush_serve::SpansView;

use super::family::Kind::{Counter, Gauge};
use super::family::{Row, Value, by, one};
use crate::desk::readiness::Phase;
use crate::desk::setup::Facts;
use crate::views::Views;

pub(super) struct Process {
    facts: Facts,
    phase: Phase,
    generation: u64,
    silent: u64,
    spans: SpansView,
}

impl Process {
    pub(super) fn new(views: &Views, facts: &Facts, phase: Phase) -> Self {
        let generations = views.cores.iter().map(|view| view.generation);
        Self {
            facts: facts.clone(),
            phase,
            generation: generations.max().unwrap_or(0),
            silent: views.silent.len() as u64,
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
        read: |process| one(process.facts.started.as_secs()),
    },
    Row {
        name: "config_generation",
        kind: Gauge,
        help: "Generation of the configuration in force; 1 is the configuration of the start.",
        read: |process| one(process.generation),
    },
    Row {
        name: "ready",
        kind: Gauge,
        help: "1 if the server accepts new clients, 0 if it drains or stops.",
        read: |process| one(process.phase == Phase::Ready),
    },
    Row {
        name: "cores_silent",
        kind: Gauge,
        help: "Cores that did not answer in time; all other metrics are without them.",
        read: |process| one(process.silent),
    },
    Row {
        name: "spans_exported_total",
        kind: Counter,
        help: "Trace spans accepted by the collector.",
        read: |process| one(process.spans.exported),
    },
    Row {
        name: "spans_lost_total",
        kind: Counter,
        help: "Trace spans lost, by reason.",
        read: |process| by("reason", process.spans.lost),
    },
];
