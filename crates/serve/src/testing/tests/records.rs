//! Each request has exactly one record, even if its client, its server or its core fails.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_engine::random::Random;
use onrush_http::Method;

use crate::observe::meter::SeenRecord;
use crate::observe::record::RequestEnd;
use crate::testing::harness::{Step, TestCore, cut_off_on_resetting_core, send, send_bytes};

/// A path whose response is too long to be read.
const ENDLESS: &str = "/synthetic/?s=90000000";

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood";

/// Outcome of one run.
#[derive(Default)]
struct Outcome {
    /// Requests that a client has sent completely, or started to send the last byte of.
    asked: Cell<usize>,
    /// Statuses of completely received responses.
    received: RefCell<Vec<u16>>,
}

/// Routes of all kinds; servers that work, die, hang, and truncate their responses.
fn plan(site: &TestCore) -> Plan {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\nhalf";
    let well = [Step::Read, send(OK), Step::Again];
    let slow = [Step::Read, Step::Wait(Duration::from_millis(200)), send(OK)];
    let scripts: [&[Step]; 5] = [
        &well,
        &slow,
        &[Step::Read, Step::Reset],
        &[Step::Read, Step::Wait(Duration::from_secs(10))],
        &[Step::Read, send(half)],
    ];
    let servers = scripts.map(|script| format!("\"{}\"", site.upstream(&[script]).address));
    let text = format!(
        "[[route]]\npath = \"/fixed\"\nrespond = {{ status = 200, body = \"fixed\" }}\n\
         [[route]]\npath = \"/old\"\nredirect = {{ status = 301, to = \"/new\" }}\n\
         [[route]]\npath = \"/synthetic\"\nsynthetic = true\n\
         [[route]]\npath = \"/forward\"\nforward = \"app\"\n\
         [upstream.app]\nservers = [{}]\nbalance = \"random\"\n\
         [timeouts]\nupstream_first_byte = \"1s\"\nclient_body = \"2s\"\nclient_send = \"2s\"\n",
        servers.join(", ")
    );
    let parsed = onrush_config::parse(&text, std::path::Path::new("onrush.toml"));
    parsed.unwrap_or_else(|errors| panic!("{errors:?}")).plan
}

fn request(chance: &Random) -> (Method, String) {
    let get = |path: &str| {
        (
            Method::Get,
            format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"),
        )
    };
    let post = |body: &str| {
        let length = "Content-Length: 10\r\n";
        let head = format!("POST /forward HTTP/1.1\r\nHost: h\r\n{length}\r\n{body}");
        (Method::Post, head)
    };
    match chance.below(9) {
        0 => get("/fixed"),
        1 => get("/old"),
        2 => get("/synthetic/?s=100000&t=20"),
        3 => get("/nowhere"),
        4 => post("0123456789"),
        // The rest never arrives.
        5 => post("01234"),
        6 => (Method::Get, "GET / HTTP/1.1\r\nno field\r\n\r\n".into()),
        7 => get(ENDLESS),
        _ => get("/forward"),
    }
}

/// A client that sends a few requests, and waits for some of the responses.
async fn ask(
    site: TestCore,
    address: onrush_engine::Address,
    chance: Random,
    outcome: Rc<Outcome>,
) {
    let mut client = site.connect(&address).await;
    for _ in 0..4 {
        let (method, request) = request(&chance);
        outcome.asked.set(outcome.asked.get() + 1);
        if send_bytes(&client.stream, request.as_bytes())
            .await
            .is_err()
        {
            return;
        }
        if request.contains(ENDLESS) {
            site.core.sleep(Duration::from_secs(10)).await;
            return;
        }
        if chance.below(4) == 0 {
            // It disconnects a moment later.
            site.core
                .sleep(Duration::from_millis(chance.below(60)))
                .await;
            client.stream.reset_when_dropped();
            return;
        }
        let Some(response) = client.receive_response(method).await else {
            return;
        };
        let status = str::from_utf8(&response[9..12]).expect("digits");
        outcome
            .received
            .borrow_mut()
            .push(status.parse().expect("a number"));
        if !String::from_utf8_lossy(&response).contains("keep-alive")
            && memchr::memmem::find(&response, b"Connection: close").is_some()
        {
            return;
        }
    }
}

/// One run: `reset` of a thousand sends reset their connection, and the core stops after `ends_after`.
fn run(seed: u64, reset: u32, ends_after: Option<Duration>) -> (Rc<Outcome>, Vec<SeenRecord>) {
    let outcome: Rc<Outcome> = Rc::default();
    let meters: Rc<RefCell<Option<Rc<crate::site::service::Service>>>> = Rc::default();
    cut_off_on_resetting_core(seed, reset, |site| {
        let (outcome, meters) = (Rc::clone(&outcome), Rc::clone(&meters));
        async move {
            let (address, service) = site.serve_worker(&plan(&site));
            meters.replace(Some(service));
            let chance = Random::new(seed);
            for client in 0..12 {
                let chance = Random::stream(seed, client);
                let (site, address) = (site.clone(), address.clone());
                let core = site.core.clone();
                core.spawn(ask(site, address, chance, Rc::clone(&outcome)));
            }
            match ends_after {
                Some(longest) => {
                    let longest = longest.as_millis() as u64;
                    let time = Duration::from_millis(chance.below(longest));
                    site.core.sleep(time).await;
                    site.core.stop(Duration::from_millis(chance.below(100)));
                }
                // Everything is over by then.
                None => site.core.sleep(Duration::from_secs(60)).await,
            }
        }
    });
    let service = meters.take().expect("it was served");
    let seen = service.worker.meter.take_seen();
    assert_eq!(Rc::strong_count(&service.site()), 2, "no request holds it");
    (outcome, seen)
}

#[track_caller]
fn assert_each_has_one(outcome: &Outcome, seen: &[SeenRecord], run: &str) {
    let received = outcome.received.borrow();
    let (asked, records) = (outcome.asked.get(), seen.len());
    assert!(
        received.len() <= records && records <= asked,
        "{run}: {asked} asked, {records} records, {} received",
        received.len()
    );
    for status in received.iter().collect::<HashSet<_>>() {
        let of_clients = received.iter().filter(|it| *it == status).count();
        let of_records = seen.iter().filter(|it| it.status == Some(*status)).count();
        assert!(of_clients <= of_records, "{run}: {status}");
    }
    for record in seen {
        let has_response = record.status.is_some();
        assert!(
            has_response || record.end != RequestEnd::Complete,
            "{run}: {record:?}"
        );
    }
}

#[test]
fn each_request_is_logged_once() {
    let mut ends = HashSet::new();
    let mut failures = HashSet::new();
    for seed in 0..60 {
        for reset in [0, 20, 150] {
            for ends_after in [None, Some(Duration::from_millis(800))] {
                let (outcome, seen) = run(seed, reset, ends_after);
                let run = format!("seed {seed}, reset {reset}, {ends_after:?}");
                assert_each_has_one(&outcome, &seen, &run);
                ends.extend(seen.iter().map(|record| format!("{:?}", record.end)));
                failures.extend(seen.iter().filter_map(|record| record.failure));
            }
        }
    }
    // Memory is never short here.
    assert!(!ends.remove("Broken"));
    assert_eq!(ends.len(), 4, "every other end was met: {ends:?}");
    assert!(
        failures.len() >= 4,
        "servers failed in many ways: {failures:?}"
    );
}
