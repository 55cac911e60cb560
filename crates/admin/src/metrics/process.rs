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
        help: "The program, and how it talks to the kernel.",
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
        help: "When the process began to serve, in seconds since 1970.",
        read: |process| one(process.facts.started.as_secs()),
    },
    Row {
        name: "config_generation",
        kind: Gauge,
        help: "The number of the configuration in force; the one that the process began with is 1.",
        read: |process| one(process.generation),
    },
    Row {
        name: "ready",
        kind: Gauge,
        help: "Whether the server wants more clients (1), or drains or stops (0).",
        read: |process| one(process.phase == Phase::Ready),
    },
    Row {
        name: "cores_silent",
        kind: Gauge,
        help: "Cores that did not answer in time, and are missing in everything else here.",
        read: |process| one(process.silent),
    },
    Row {
        name: "spans_exported_total",
        kind: Counter,
        help: "Spans of traces that the collector has taken.",
        read: |process| one(process.spans.exported),
    },
    Row {
        name: "spans_lost_total",
        kind: Counter,
        help: "Spans of traces that it has not, by why.",
        read: |process| by("reason", process.spans.lost),
    },
];
