//! A small artificial outcome for tests of reports.

use crate::outcome::*;
use crate::placement::{self, place};
use crate::scenario::{Bound, Figure, Metric, Point, Role};
use crate::verdict;

pub(crate) fn outcome() -> Outcome {
    let variants = vec![
        variant("onrush epoll", true, 3.7),
        variant("onrush io_uring", true, 4.5),
        variant("nginx", false, 4.9),
    ];
    let figure = Figure {
        metric: Metric::Cpu(Role::Server),
        ours: vec!["onrush epoll".into(), "onrush io_uring".into()],
        theirs: Some("nginx".into()),
        above: Default::default(),
        bound: Some(Bound::AtMost(0.85)),
        responses: Default::default(),
    };
    Outcome {
        lost: None,
        no_room: None,
        schema: SCHEMA,
        experiment: "sample <1>".into(),
        about: "Which is cheaper & why?".into(),
        started: "2026-03-01T09:05:07Z".into(),
        duration_s: 42.0,
        complete: true,
        quick: false,
        rounds: 3,
        warm_up_s: 1.0,
        seed: crate::options::Seed(1),
        measure_s: 3.0,
        placement_rule: placement::RULE.into(),
        notes: Vec::new(),
        works: vec![WorkOutcome {
            name: "fixed response".into(),
            point: Point::default(),
            is_road: false,
            labels: Vec::new(),
            about: "An empty 200.".into(),
            connections: 100,
            figures: verdict::figure_lines(&figure, &variants),
            variants,
        }],
    }
}

fn variant(name: &str, ours: bool, cost: f64) -> VariantOutcome {
    let placement = place(&[0, 1], &[Role::Client, Role::Server], Role::Server, None);
    let trials: Vec<Trial> = (1..=3)
        .map(|round| {
            let mut trial = trial(round, cost + f64::from(round) * 0.01);
            verdict::judge(&mut trial, &placement, Role::Server, Some(3.0));
            trial
        })
        .collect();
    VariantOutcome {
        hosts: [].into(),
        name: name.into(),
        ours,
        under_test: Role::Server,
        programs: [
            (Role::Client, "load".to_owned()),
            (Role::Server, name.to_owned()),
        ]
        .into(),
        placement,
        left_out: None,
        disagreeing: Default::default(),
        metrics: metrics_of_rounds(&trials),
        trials,
    }
}

fn counters() -> BySubject {
    let measures = |measures: &[(&str, f64)]| {
        let measures = measures.iter();
        measures
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    };
    let cpu = [
        ("net_rx_softirqs_per_s", 31_000.0),
        ("interrupts_RES_per_s", 12.0),
    ];
    [
        ("cpu1".to_owned(), measures(&cpu)),
        ("server/0 onrush".to_owned(), measures(&[("cpus", 0.99)])),
        ("tcp".to_owned(), measures(&[("RetransSegs_per_s", 2.0)])),
    ]
    .into()
}

fn trial(round: u32, cost: f64) -> Trial {
    let rps = 1e6 / cost;
    let cpu = |cpu, user, system, softirq| CpuUse {
        cpu,
        user,
        system,
        softirq,
        ..CpuUse::default()
    };
    let cpus = vec![cpu(0, 0.3, 0.5, 0.1), cpu(1, 0.1, 0.75, 0.14)];
    let role = |busy: f64, cost| RoleUse {
        cpu_s: busy * 3.0,
        system_share: 0.8,
        busy,
        cpu_us_per_request: Some(cost),
        memory_bytes: 1 << 20,
        ..RoleUse::default()
    };
    let point = |percentile: &str, us| PercentileValue {
        percentile: percentile.into(),
        us,
    };
    Trial {
        round,
        at_s: f64::from(round) * 12.0,
        window_s: 3.0,
        requests: (rps * 3.0) as u64,
        rps,
        latency_us: Some(Latency {
            from: Default::default(),
            mean: Some(400.0),
            max: Some(9_000.0),
            percentiles: vec![
                point("50", 380.0),
                point("99", 900.0),
                point("99.9", 2_500.0),
            ],
        }),
        seconds: (1..=3)
            .map(|t| Second {
                t: f64::from(t),
                rps: rps * (1.0 + f64::from(t) * 0.001),
                errors: 0,
            })
            .collect(),
        samples: (1..=3)
            .map(|t| Sample {
                t: f64::from(t),
                span_s: 1.0,
                cpus: cpus.clone(),
                roles: [(Role::Client, 0.9), (Role::Server, 0.99)].into(),
                interfaces: [("lo".to_owned(), InterfaceUse::default())].into(),
                counters: counters(),
            })
            .collect(),
        roles: [
            (Role::Client, role(0.9, 4.0)),
            (Role::Server, role(0.99, cost)),
        ]
        .into(),
        cpus,
        metrics: [
            ("rps".to_owned(), rps),
            ("server.cpu_us_per_request".to_owned(), cost),
            ("server.user_us_per_request".to_owned(), cost * 0.2),
            ("server.system_us_per_request".to_owned(), cost * 0.8),
            ("server.softirq_us_per_request".to_owned(), cost * 0.05),
        ]
        .into(),
        ..Trial::default()
    }
}
