//! Checks every row of the table of states and transitions in `proxy/ejection.rs`.

use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onrush_config::plan::{Eject, EjectOn, Server, ServerAddress, Timeouts};
use onrush_engine::{Errno, Error, Kind, Op};
use onrush_http::Method;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::proxy::Group;
use crate::proxy::ejection::{EjectionPhase, Purpose};
use crate::proxy::endpoints::Endpoints;
use crate::proxy::failure::Failure;
use crate::proxy::group::Reservation;
use crate::site::service::Service;
use crate::testing::harness::{Step, TestCore, Upstream, on_simulated_cores, send};

const SOURCE: &str = include_str!("../../proxy/ejection.rs");
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The server under test; the other one is healthy.
const SERVER: u32 = 0;
const OTHER: u32 = 1;

/// A row of the table.
#[derive(Clone, Debug)]
struct Row {
    state: &'static str,
    event: &'static str,
    next: &'static str,
    logged: Option<&'static str>,
    is_counted: bool,
}

/// The rows; a row with several states is split.
fn rows() -> Vec<Row> {
    let lines = SOURCE
        .lines()
        .filter_map(|line| line.strip_prefix("//! | "));
    let rows = lines.skip(1).flat_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [state, event, next, result, ""] = cells[..] else {
            panic!("not a row of four cells: {line}");
        };
        let states = match state {
            "any" => vec![
                "in",
                "failing",
                "unreachable",
                "unreliable",
                "on trial",
                "tried",
            ],
            "not in" => vec!["unreachable", "unreliable", "on trial", "tried"],
            _ => vec![state],
        };
        let row = move |state| Row {
            state,
            event,
            next: if next == "the same" { state } else { next },
            logged: result.split('`').nth(1),
            is_counted: result.ends_with("ejections"),
        };
        states.into_iter().map(row)
    });
    rows.collect()
}

/// Collects the names of logged events.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no test has panicked with it"))
    }
}

impl Visit for Log {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "event" {
            let mut names = self.0.lock().expect("no test has panicked with it");
            names.push(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A group of two servers; one refuses connections until it is opened.
struct Walk {
    site: TestCore,
    service: Rc<Service>,
    group: Rc<Group>,
    address: SocketAddr,
    opened: RefCell<Option<Upstream>>,
    trial: RefCell<Option<Reservation>>,
}

impl Walk {
    fn new(site: &TestCore, on: EjectOn) -> Self {
        let (listener, address) = site.listen();
        drop(listener);
        let good = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let mut plan = good.plan();
        let servers = [address, good.address];
        plan.upstreams[0].servers = servers
            .map(|address| Server::at(ServerAddress::Ip(address)))
            .into();
        plan.upstreams[0].eject = Some(Eject::on(on));
        let (_, service) = site.serve_worker(&plan);
        let group = service.group(0);
        Self {
            site: site.clone(),
            service,
            group,
            address,
            opened: RefCell::default(),
            trial: RefCell::default(),
        }
    }

    /// Makes the server accept connections.
    fn open(&self) {
        let mut opened = self.opened.borrow_mut();
        opened.get_or_insert_with(|| {
            let listener = self.site.listen_again(self.address);
            let script: &[Step] = &[Step::Read, Step::WaitForEnd];
            self.site.upstream_on(listener, self.address, &[script])
        });
    }

    async fn pass(&self, seconds: u64) {
        self.site.core.sleep(Duration::from_secs(seconds)).await;
    }

    fn presence(&self) -> EjectionPhase {
        self.group.endpoints().all()[SERVER as usize].presence()
    }

    fn request(&self, server: u32) -> Reservation {
        self.group.reserve_on(server).expect("it is in service")
    }

    fn last_resort(&self) -> Reservation {
        let found = self.group.reserve(0, &[OTHER], self.site.core.now());
        let request = found.expect("it is the only other server");
        assert_eq!(
            (request.index(), request.purpose()),
            (SERVER, Purpose::LastResort)
        );
        request
    }

    fn fail(&self, request: &Reservation, failure: &Failure) {
        let timeouts = Timeouts::default();
        self.group
            .failed(request, (failure, None), &timeouts, &self.service.worker);
    }

    fn respond(&self, request: &Reservation) {
        let at = (request.index(), request.purpose());
        let latency = Duration::from_millis(1);
        self.group.responded(at, 200, latency, &self.service.worker);
    }

    /// Consecutive failures, one less than the default limit.
    fn fail_four_times(&self) {
        (0..4).for_each(|_| self.fail(&self.request(SERVER), &Failure::Closed));
    }

    fn choose_for_trial(&self) {
        let now = self.site.core.now();
        // Choosing a server refreshes the group's view of its endpoints.
        drop(self.group.reserve(0, &[], now));
        self.trial
            .replace(self.group.reserve_trial(Method::Get, now));
    }

    /// Brings the server from `in` to a state.
    async fn reach(&self, state: &str) {
        match state {
            "in" => {}
            "failing" => {
                self.fail(&self.request(OTHER), &refused());
                self.fail_four_times();
                self.fail(&self.request(SERVER), &Failure::Closed);
                // The other one is back.
                self.pass(1).await;
            }
            "unreachable" => self.fail(&self.request(SERVER), &refused()),
            "unreliable" => {
                self.fail_four_times();
                self.fail(&self.request(SERVER), &Failure::Closed);
            }
            "on trial" => {
                self.open();
                Box::pin(self.reach("unreliable")).await;
                self.pass(11).await;
            }
            "tried" => {
                Box::pin(self.reach("on trial")).await;
                self.choose_for_trial();
            }
            other => panic!("no such state: {other}"),
        }
    }

    async fn happen(&self, event: &str, before: &Reservation) {
        let failure = &Failure::Closed;
        match event {
            "a request finds no connection, with `on = \"connections\"`" => {
                self.fail(&self.request(SERVER), &refused());
            }
            "the limit of a rule is reached" => {
                self.open();
                self.fail_four_times();
                self.fail(&self.request(SERVER), failure);
            }
            "the same, but it may not be taken out" => {
                self.fail_four_times();
                self.fail(&self.request(SERVER), failure);
            }
            "a request fails below all limits" => self.fail_four_times(),
            "a request gets a response within the time" => self.respond(&self.request(SERVER)),
            "a request gets a response after the time" => {
                self.pass(11).await;
                self.respond(&self.request(SERVER));
            }
            "a recheck connects" => {
                self.open();
                self.pass(2).await;
            }
            "a recheck connects when the time is over" => {
                self.open();
                self.pass(11).await;
            }
            "a recheck cannot connect" => self.pass(2).await,
            "a request is chosen for the trial" => self.choose_for_trial(),
            "the request gets a response" => {
                self.respond(self.trial.borrow().as_ref().expect("it was chosen"));
            }
            "the request fails" => {
                self.fail(
                    self.trial.borrow().as_ref().expect("it was chosen"),
                    failure,
                );
            }
            "the request ends without an outcome" => drop(self.trial.take()),
            "the response that ended the trial stops midway, with `on = \"answers\"`" => {
                let trial = self.trial.borrow();
                let cut = Failure::Cut("it closed the connection".into());
                self.fail(trial.as_ref().expect("it was chosen"), &cut);
            }
            "a request of last resort gets a response" => self.respond(&self.last_resort()),
            "a request of last resort fails" => self.fail(&self.last_resort(), failure),
            "a request from before the ejection fails" => self.fail(before, failure),
            "the state is reset" => {
                let ejecting = &self.group.plan;
                let mut other = ejecting.clone();
                other.eject = None;
                let between = Endpoints::new(&other, Some(self.group.endpoints()));
                Endpoints::new(ejecting, Some(&between));
            }
            other => panic!("no such event: {other}"),
        }
    }

    /// Whether the server is in this state. The way an ejected server returns shows whether it was unreachable or
    /// unreliable.
    async fn is_in(&self, state: &str) -> bool {
        let presence = self.presence();
        let endpoint = &self.group.endpoints().all()[SERVER as usize];
        assert_eq!(endpoint.is_failing(), state == "failing");
        let (expected, back) = match state {
            "in" | "failing" => (EjectionPhase::In, EjectionPhase::In),
            "unreachable" => (EjectionPhase::Out, EjectionPhase::In),
            "unreliable" => (EjectionPhase::Out, EjectionPhase::OnTrial),
            "on trial" => (EjectionPhase::OnTrial, EjectionPhase::OnTrial),
            "tried" => (EjectionPhase::Tried, EjectionPhase::Tried),
            other => panic!("no such state: {other}"),
        };
        self.open();
        self.pass(30).await;
        (presence, self.presence()) == (expected, back)
    }
}

fn refused() -> Failure {
    Failure::Connect(Error::new(Op::Connect, Kind::Os(Errno::CONNREFUSED)))
}

async fn walk(site: &TestCore, row: &Row, log: &Log) {
    let on = match row.event.contains("with `on = \"answers\"`") {
        true => EjectOn::Responses,
        false => EjectOn::Connections,
    };
    let walk = Walk::new(site, on);
    let before = walk.request(SERVER);
    walk.reach(row.state).await;
    if row.event.starts_with("the response that ended the trial") {
        walk.reach("tried").await;
        walk.happen("the request gets a response", &before).await;
    }
    if row.event == "the same, but it may not be taken out" {
        walk.fail(&walk.request(OTHER), &refused());
    }
    log.take();
    let ejections = || walk.group.server(SERVER).responses.ejections();
    let counted = ejections();
    walk.happen(row.event, &before).await;
    let logged = log.take();
    assert_eq!(logged, Vec::from_iter(row.logged), "{row:?}");
    assert_eq!(ejections() - counted, u64::from(row.is_counted), "{row:?}");
    assert!(walk.is_in(row.next).await, "{row:?}");
}

#[test]
fn all_documented_state_transitions_occur() {
    let rows = rows();
    assert!(rows.len() > 25, "{rows:?}");
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        for row in &rows {
            on_simulated_cores(|site| {
                let (row, log) = (row.clone(), log.clone());
                async move { walk(&site, &row, &log).await }
            });
        }
    });
}
