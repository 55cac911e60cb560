//! Reloading the configuration while requests are in flight.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{Eject, OneLiner, Server, ServerAddress};

use crate::limits::SLICE_ITEMS;
use crate::observe::registry::SeriesKind;
use crate::site::Resources;
use crate::testing::harness::{
    Peer, Step, Upstream, configured, on_every_driver, on_simulated_cores, resources, send,
};
use crate::worker::descriptor_shares::Shares;
use crate::worker::time_slice::TimeSlice;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OLD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold";

fn fixed(body: &str) -> Plan {
    let what = OneLiner::Respond {
        status: 200,
        body: body.into(),
    };
    Plan::one_liner(what, Vec::new())
}

async fn body(client: &mut Peer) -> String {
    client.send(GET.as_bytes()).await;
    received_body(client).await
}

async fn received_body(client: &mut Peer) -> String {
    let response = client.receive_message().await;
    let (_, body) = response.split_once("\r\n\r\n").expect("a head");
    body.to_owned()
}

fn is_gone(resources: &Resources) -> bool {
    resources.generation.wait_until_gone(Duration::ZERO)
}

fn plan(servers: &[&Upstream]) -> Plan {
    let mut plan = servers[0].plan();
    let servers = servers
        .iter()
        .map(|server| Server::at(ServerAddress::Ip(server.address)));
    plan.upstreams[0].servers = servers.collect();
    plan.upstreams[0].name = "app".into();
    plan
}

#[test]
fn requests_in_flight_keep_old_configuration() {
    on_every_driver(|site| async move {
        // Responds after a second connection has been opened.
        let slow = site.upstream(&[
            &[Step::Read, Step::WaitForConnections(2), send(OLD)],
            &[Step::WaitForEnd],
        ]);
        let (address, service, first) = site.serve_to_change(&slow.plan());
        let mut asking = site.connect(&address).await;
        asking.send(GET.as_bytes()).await;
        site.until("the request is at the server", || {
            !slow.requests().concat().is_empty()
        })
        .await;
        let second = site.apply(&service, &first, &fixed("new"));
        assert_eq!(second.generation.number(), 2);
        assert!(!is_gone(&first), "a request is under way");
        let mut new = site.connect(&address).await;
        assert_eq!(body(&mut new).await, "new");
        assert!(!is_gone(&first));
        let _nudge = site
            .connect(&onrush_engine::Address::Tcp(slow.address))
            .await;
        assert_eq!(received_body(&mut asking).await, "old");
        site.until("the last request has gone", || is_gone(&first))
            .await;
        // The connection stays open and uses the new configuration.
        assert_eq!(body(&mut asking).await, "new");
        assert!(!is_gone(&second), "it is in force");
    });
}

#[test]
fn idle_connections_release_old_configuration() {
    on_every_driver(|site| async move {
        let (address, service, mut in_force) = site.serve_to_change(&fixed("0"));
        let mut clients = Vec::new();
        for number in 0..5 {
            let mut client = site.connect(&address).await;
            assert_eq!(body(&mut client).await, number.to_string());
            clients.push(client);
            let next = fixed(&(number + 1).to_string());
            let next = site.apply(&service, &in_force, &next);
            assert!(is_gone(&std::mem::replace(&mut in_force, next)));
        }
        for client in &mut clients {
            assert_eq!(body(client).await, "5");
        }
    });
}

#[test]
fn server_state_survives_reload() {
    on_simulated_cores(|site| async move {
        let bad = site.upstream(&[&[Step::Read, Step::Reset]]);
        let good = site.upstream(&[&[Step::Read, send(OLD), Step::Again]]);
        let (address, service, first) = site.serve_to_change(&plan(&[&bad, &good]));
        let mut client = site.connect(&address).await;
        for _ in 0..20 {
            assert_eq!(body(&mut client).await, "old");
        }
        assert!(service.group(0).is_out(0));
        let asked = bad.requests().concat().len();
        // In a different order.
        let second = site.apply(&service, &first, &plan(&[&good, &bad]));
        assert!(service.group(0).is_out(1) && !service.group(0).is_out(0));
        for _ in 0..20 {
            assert_eq!(body(&mut client).await, "old");
        }
        assert_eq!(bad.requests().concat().len(), asked, "it is still out");
        // It gets its trial request when its ejection time is over, as if nothing had changed.
        site.core.sleep(Duration::from_secs(12)).await;
        for _ in 0..20 {
            assert_eq!(body(&mut client).await, "old");
        }
        assert_eq!(bad.requests().concat().len(), asked + 1);
        // Without ejection no server is out.
        let mut lenient = plan(&[&good, &bad]);
        lenient.upstreams[0].eject = None;
        let third = site.apply(&service, &second, &lenient);
        assert!(!service.group(0).is_out(1));
        assert!(is_gone(&first) && is_gone(&second) && !is_gone(&third));
    });
}

#[test]
fn server_connections_survive_reload() {
    on_every_driver(|site| async move {
        let stays = site.upstream(&[&[Step::Read, send(OLD), Step::Again]]);
        let goes = site.upstream(&[&[Step::Read, send(OLD), Step::Again]]);
        let (address, service, first) = site.serve_to_change(&plan(&[&goes, &stays]));
        let mut client = site.connect(&address).await;
        for _ in 0..4 {
            assert_eq!(body(&mut client).await, "old");
        }
        let mut reweighted = plan(&[&stays, &stays]);
        reweighted.upstreams[0].servers.pop();
        reweighted.upstreams[0].servers[0].weight = 5;
        let _second = site.apply(&service, &first, &reweighted);
        site.until("the other server is left", || goes.open() == 0)
            .await;
        for _ in 0..4 {
            assert_eq!(body(&mut client).await, "old");
        }
        assert_eq!((stays.connections(), stays.open()), (1, 1));
    });
}

#[test]
fn removed_server_gets_no_health_checks() {
    on_simulated_cores(|site| async move {
        let (listener, gone) = site.listen();
        drop(listener);
        let good = site.upstream(&[&[Step::Read, send(OLD), Step::Again]]);
        let mut both = plan(&[&good, &good]);
        both.upstreams[0].servers[0].address = ServerAddress::Ip(gone);
        both.upstreams[0].eject = Some(Eject {
            time: Duration::from_secs(3600),
            ..both.upstreams[0].eject.expect("a default")
        });
        let (address, service, first) = site.serve_to_change(&both);
        let mut client = site.connect(&address).await;
        for _ in 0..4 {
            assert_eq!(body(&mut client).await, "old");
        }
        assert!(service.group(0).is_out(0));
        let before = std::rc::Rc::downgrade(&service.group(0));
        let _second = site.apply(&service, &first, &plan(&[&good]));
        drop(first);
        site.core.sleep(Duration::from_secs(4000)).await;
        assert!(before.upgrade().is_none(), "nobody connects to it again");
    });
}

fn large(slices: usize) -> Plan {
    let count = slices * SLICE_ITEMS;
    let servers: Vec<String> = (1..=count)
        .map(|port| format!("\"127.0.0.1:{port}\""))
        .collect();
    let group = format!("[upstream.app]\nservers = [{}]\n", servers.join(", "));
    let routes = (0..count).map(|number| {
        format!("[[route]]\npath = \"/{number}/\"\nrespond = {{ status = 200, body = \"new\" }}\n")
    });
    let forward = "[[route]]\nforward = \"app\"\n";
    configured(&format!("{}{forward}{group}", routes.collect::<String>()))
}

#[test]
fn core_serves_during_large_reload() {
    on_every_driver(|site| async move {
        let (address, service, first) = site.serve_to_change(&fixed("old"));
        let mut client = site.connect(&address).await;
        let served: Rc<Cell<usize>> = Rc::default();
        let prepared: Rc<Cell<bool>> = Rc::default();
        let (its_served, its_prepared) = (Rc::clone(&served), Rc::clone(&prepared));
        site.core.spawn(async move {
            while !its_prepared.get() {
                body(&mut client).await;
                its_served.set(its_served.get() + 1);
            }
        });
        // The number of names in the registry shows the progress.
        let (watched, its_service, its_prepared) =
            (site.core.clone(), Rc::clone(&service), Rc::clone(&prepared));
        site.core.spawn(async move {
            let names = || its_service.worker.registry.views(SeriesKind::Route).len();
            let mut seen = names();
            while !its_prepared.get() {
                watched.yield_now().await;
                let now = names();
                assert!(now - seen <= SLICE_ITEMS, "{} routes in a turn", now - seen);
                seen = now;
            }
        });
        let mut slice = TimeSlice::begin(&site.core);
        let plan = large(10);
        let second = site
            .apply_in_slices(&service, &first, &plan, &mut slice)
            .await;
        let third = site
            .apply_in_slices(&service, &second, &fixed("last"), &mut slice)
            .await;
        prepared.set(true);
        // On a simulated network, time passes only while its core waits.
        assert!(site.core.is_simulated() || served.get() > 1);
        let mut client = site.connect(&address).await;
        assert_eq!(body(&mut client).await, "last");
        site.until("the other configurations are gone", || {
            is_gone(&first) && is_gone(&second)
        })
        .await;
        assert!(!is_gone(&third));
    });
}

#[test]
fn groups_are_matched_by_name_on_reload() {
    let named = |names: &[&str]| {
        let groups = names.iter().map(|name| {
            format!("[[route]]\npath = \"/{name}\"\nforward = \"{name}\"\n[upstream.{name}]\nservers = [\"127.0.0.1:9\"]\n")
        });
        configured(&groups.collect::<String>())
    };
    let first = resources(&named(&["a", "b", "c"]), Shares::UNLIMITED, None);
    let second = resources(&named(&["c", "d", "a"]), Shares::UNLIMITED, Some(&first));
    let names = |resources: &Resources| -> Vec<String> {
        let groups = resources.plan.upstreams.iter();
        groups.map(|group| group.name.clone()).collect()
    };
    let (before, after) = (names(&first), names(&second));
    for (name, index) in after.iter().zip(&second.groups_before) {
        let found = index.map(|index| &before[index]);
        assert_eq!(found, before.iter().find(|other| *other == name));
    }
}
