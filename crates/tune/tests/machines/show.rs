//! Diagram of a machine: every CPU with its work, as text and as a drawing.

use std::collections::BTreeMap;

use onrush_tune::advise::{self, Request};
use onrush_tune::diagnose::Load;
use onrush_tune::facts::process::Thread;
use onrush_tune::facts::{self, Process};
use onrush_tune::report;
use onrush_tune::show::{self, View};
use onrush_tune::tree::Tree;

use crate::machine::{Kind, Machine};

#[test]
fn text_lists_every_cpu_with_its_role() {
    let root = Machine::new(2, 8, 2)
        .with("eth0", Kind::Ena, 1, 1, 8)
        .write();
    let facts = facts::read(&Tree::open(root.path()).expect("a root"), None).expect("facts");
    let now = show::text(&facts, &View::now(&facts, None), &BTreeMap::new(), 200);
    assert!(
        now.contains("node 1  with eth0\n  core 0   CPU 8   irq eth0 0               | CPU 24\n"),
        "{now}"
    );

    let thread = |cpu: usize| Thread {
        cpu,
        ..Thread::default()
    };
    let process = Process {
        name: "nginx".to_owned(),
        threads: [(1, thread(8)), (2, thread(9)), (3, thread(9))].into(),
        ..Process::default()
    };
    let running = View::now(&facts, Some(&process));
    let running = show::text(&facts, &running, &BTreeMap::new(), 200);
    assert!(
        running.contains("CPU 8   irq eth0 0, runs nginx"),
        "{running}"
    );
    assert!(running.contains("CPU 9   runs nginx  "), "{running}");

    let plan = advise::plan(&facts, &Request::default()).expect("a plan");
    let loads = [(
        8,
        Load {
            busy: 0.97,
            interrupts: 0.9,
            steal: 0.0,
            iowait: 0.0,
        },
    )]
    .into();
    let planned = show::text(&facts, &View::planned(&plan.placement), &loads, 200);
    assert!(planned.contains("CPU 8    97 % irq eth0 0"), "{planned}");
    assert!(planned.contains("CPU 9   steers eth0"), "{planned}");
    assert!(planned.contains("CPU 24  system"), "{planned}");

    let svg = show::svg(&facts, &View::planned(&plan.placement), &loads);
    for cpu in 0..32 {
        assert!(svg.contains(&format!(">CPU {cpu}</text>")), "CPU {cpu}");
    }
    assert!(svg.contains("CPU 8, 97 % busy: irq eth0 0") && svg.ends_with("</svg>\n"));
}

#[test]
fn names_are_escaped_for_terminal() {
    let name = "e\u{1b}]0;x\u{7}\u{9b}2J";
    let root = Machine::new(2, 8, 2)
        .with(name, Kind::Ena, -1, 1, 8)
        .write();
    let mut facts = facts::read(&Tree::open(root.path()).expect("a root"), None).expect("facts");
    facts.troubles.insert(name.to_owned(), name.to_owned());
    let plan = advise::plan(&facts, &Request::default()).expect("a plan");
    assert_eq!(
        plan.placement.interfaces[0].name, name,
        "it is read as it is"
    );
    let view = View::now(&facts, None);
    let comments = report::script(&plan);
    let comments = comments.lines().filter(|line| line.starts_with('#'));
    for text in [
        report::text(&plan, 110),
        comments.collect(),
        show::text(&facts, &view, &BTreeMap::new(), 200),
        show::svg(&facts, &view, &BTreeMap::new()),
    ] {
        let is_order = |letter: char| letter.is_control() && letter != '\n';
        assert!(!text.contains(is_order), "{text:?}");
    }
    let words = "e\u{fffd}]0;x\u{fffd}\u{fffd}2J";
    assert!(report::text(&plan, 110).contains(words));
    assert!(show::text(&facts, &view, &BTreeMap::new(), 200).contains(words));
}

/// A plan for many queues on a large machine, with the given width.
fn page(columns: usize) -> String {
    let root = Machine::new(1, 256, 1)
        .with("ens5", Kind::Ena, 0, 63, 0)
        .write();
    let facts = facts::read(&Tree::open(root.path()).expect("a root"), None).expect("facts");
    let plan = advise::plan(&facts, &Request::default()).expect("a plan");
    assert!(plan.actions.len() > 120, "{}", plan.actions.len());
    report::text(&plan, columns)
}

#[test]
fn plan_with_many_queues_fits_page() {
    let page = page(110);
    assert!(page.lines().count() <= 70, "{page}");
    assert!(page.contains("ens5 interrupts\n"), "{page}");
    assert!(page.contains(", one each\n"), "{page}");
}

#[test]
fn plan_fits_terminal_width() {
    for columns in [60, 80, 110] {
        let page = page(columns);
        let widest = page.lines().map(|line| line.chars().count()).max();
        assert!(
            widest.is_some_and(|widest| widest <= columns),
            "{columns}: {page}"
        );
    }
    let root = Machine::new(2, 8, 2)
        .with("eth0", Kind::Ena, 1, 16, 8)
        .write();
    let facts = facts::read(&Tree::open(root.path()).expect("a root"), None).expect("facts");
    let text = show::text(&facts, &View::now(&facts, None), &BTreeMap::new(), 80);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(text.contains("irq eth0 0-15"), "{text}");
}

#[test]
fn queues_are_sorted_numerically() {
    let root = Machine::new(1, 16, 1)
        .with("eth0", Kind::Ena, 0, 12, 3)
        .write();
    let facts = facts::read(&Tree::open(root.path()).expect("a root"), None).expect("facts");
    let plan = advise::plan(&facts, &Request::default()).expect("a plan");
    let text = show::text(
        &facts,
        &View::planned(&plan.placement),
        &BTreeMap::new(),
        200,
    );
    assert!(text.contains("irq eth0 2,6,10"), "{text}");
}

#[test]
fn svg_has_title_and_labels() {
    let root = Machine::new(2, 8, 2)
        .with("e<0", Kind::Ena, 1, 1, 8)
        .write();
    let mut facts = facts::read(&Tree::open(root.path()).expect("a root"), None).expect("facts");
    facts.interfaces[0].speed_mbps = Some(25_000);
    let load = Load {
        busy: 0.5,
        interrupts: 0.4,
        steal: 0.0,
        iowait: 0.0,
    };
    let drawn = |facts: &facts::Facts, loads| show::svg(facts, &View::now(facts, None), &loads);
    let svg = drawn(&facts, [(8, load)].into());
    for words in [
        "<title>Network tasks of each CPU</title>",
        "32 CPUs, 16 cores, 2 nodes, 2 sockets; load while measuring",
        ">takes interrupts</text>",
        ">100 % busy</text>",
        ">node 1: e&lt;0 (25 Gb/s)</text>",
        ">50 %</text>",
    ] {
        assert!(svg.contains(words), "{words}: {svg}");
    }
    facts.interfaces[0].node = None;
    let svg = drawn(&facts, BTreeMap::new());
    assert!(
        svg.contains(">node unknown: e&lt;0 (25 Gb/s)</text>") && svg.contains("load not measured")
    );
    assert!(!svg.contains("% busy"), "none was measured");
}
