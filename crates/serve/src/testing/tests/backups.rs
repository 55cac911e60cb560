//! Backup servers receive requests if no other server is available, with any other options of the group.

use std::num::NonZeroU32;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{
    Action, Balance, Check, Eject, HashKey, Health, Mirror, Server, ServerAddress, Sticky,
    Upstream as Group,
};

use crate::testing::harness::{Peer, Step, TestCore, on_every_driver, on_simulated_cores, send};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";
const BACKUP: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbackup";

/// Forwards everything to a server that refuses connections, and to a backup with its own response.
fn plan(site: &TestCore) -> Plan {
    let (listener, gone) = site.listen();
    drop(listener);
    let backup = site.upstream(&[&[Step::Read, send(BACKUP), Step::Again]]);
    let mut plan = backup.plan();
    plan.upstreams[0].servers = vec![
        Server::at(ServerAddress::Ip(gone)),
        Server {
            backup: true,
            ..Server::at(ServerAddress::Ip(backup.address))
        },
    ];
    plan
}

async fn ask(client: &mut Peer, request: &str) -> String {
    client.send(request.as_bytes()).await;
    client.receive_text().await
}

/// Checks that all requests of a client get their responses from the backup.
#[track_caller]
fn is_used(change: fn(&mut Group)) {
    on_every_driver(move |site| async move {
        let mut plan = plan(&site);
        change(&mut plan.upstreams[0]);
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        for turn in 0..40 {
            let response = ask(&mut client, [GET, POST][turn % 2]).await;
            assert!(response.ends_with("\r\n\r\nbackup"), "{turn}: {response}");
        }
        assert_eq!(service.worker.meter.totals().failed(), 0);
    });
}

#[test]
fn backup_is_used_with_defaults() {
    is_used(|_| {});
}

#[test]
fn backup_is_used_with_all_ejection_modes() {
    is_used(|group| group.eject = None);
    is_used(|group| group.eject = Some(Eject::default()));
}

#[test]
fn backup_is_used_with_all_balancing_methods() {
    is_used(|group| group.balance = Balance::Random);
    is_used(|group| group.balance = Balance::PowerOfTwo);
    is_used(|group| group.balance = Balance::LeastConnections);
    is_used(|group| group.balance = Balance::PeakEwma);
    is_used(|group| group.balance = Balance::First);
    is_used(|group| group.balance = Balance::Hash(HashKey::Path));
    is_used(|group| {
        group.balance = Balance::Hash(HashKey::Path);
        group.eject = None;
    });
}

#[test]
fn backup_is_used_with_other_options() {
    is_used(|group| {
        group.sticky = Some(Sticky {
            cookie: "srv".into(),
            age_max: None,
        });
    });
    is_used(|group| group.slow_start = Some(Duration::from_secs(30)));
    is_used(|group| {
        let bound = NonZeroU32::new(1);
        (group.servers.iter_mut()).for_each(|server| server.connections_max = bound);
    });
    is_used(|group| {
        // Only if connections are tried at all.
        group.retries.count = 1;
        group.retries.budget = 1;
        group.eject = None;
    });
}

#[test]
fn backup_is_used_with_health_checks() {
    is_used(|group| group.health = Some(Health::of(Check::Tcp)));
}

#[test]
fn backup_is_used_after_one_failure_without_retries() {
    on_every_driver(|site| async move {
        let mut plan = plan(&site);
        plan.upstreams[0].retries.count = 0;
        let mut client = site.connect(&site.serve(&plan)).await;
        assert!(ask(&mut client, GET).await.starts_with("HTTP/1.1 502 "));
        for _ in 0..20 {
            assert!(ask(&mut client, GET).await.ends_with("backup"));
        }
    });
}

#[test]
fn retryable_status_uses_backup() {
    on_every_driver(|site| async move {
        let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
        let busy = site.upstream(&[&[Step::Read, send(busy), Step::Again]]);
        let mut plan = plan(&site);
        plan.upstreams[0].servers[0] = Server::at(ServerAddress::Ip(busy.address));
        plan.upstreams[0].retries.statuses = vec![503];
        let mut client = site.connect(&site.serve(&plan)).await;
        assert!(ask(&mut client, GET).await.ends_with("backup"));
    });
}

#[test]
fn request_waits_for_full_primary_instead_of_backup() {
    on_simulated_cores(|site| async move {
        let slow = [
            Step::Read,
            Step::Wait(Duration::from_millis(200)),
            send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow"),
            Step::Again,
        ];
        let slow = site.upstream(&[&slow]);
        for eject in [None, Some(Eject::default())] {
            let mut plan = plan(&site);
            let group = &mut plan.upstreams[0];
            group.eject = eject;
            group.balance = Balance::First;
            let full = Server {
                connections_max: NonZeroU32::new(1),
                ..Server::at(ServerAddress::Ip(slow.address))
            };
            group.servers.insert(1, full);
            let address = site.serve(&plan);
            let mut clients = Vec::new();
            for _ in 0..3 {
                let client = site.connect(&address).await;
                client.send(GET.as_bytes()).await;
                clients.push(client);
            }
            for client in &mut clients {
                let response = client.receive_text().await;
                assert!(response.ends_with("slow"), "{response}");
            }
        }
    });
}

#[test]
fn mirrored_requests_use_backup() {
    on_every_driver(|site| async move {
        let main = site.upstream(&[&[Step::Read, send(BACKUP), Step::Again]]);
        for eject in [None, Some(Eject::default())] {
            let backup = site.upstream(&[&[Step::Read, send(BACKUP), Step::Again]]);
            let mut group = plan(&site).upstreams.remove(0);
            group.servers[1].address = ServerAddress::Ip(backup.address);
            group.eject = eject;
            let mut plan = main.plan();
            plan.upstreams.push(group);
            let Action::Forward { mirror, .. } = &mut plan.routes[0].action else {
                unreachable!("it forwards");
            };
            *mirror = Some(Mirror {
                upstream: 1,
                share: 10_000,
            });
            let mut client = site.connect(&site.serve(&plan)).await;
            for turn in 0..20 {
                ask(&mut client, GET).await;
                site.until("a copy", || backup.requests().concat().len() > turn)
                    .await;
            }
        }
    });
}

#[test]
fn recovered_server_replaces_backup() {
    on_every_driver(|site| async move {
        let plan = plan(&site);
        let ServerAddress::Ip(gone) = plan.upstreams[0].servers[0].address else {
            unreachable!("it is an address");
        };
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        assert!(ask(&mut client, GET).await.ends_with("backup"));
        let listener = site.listen_again(gone);
        let main = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmain";
        let _main = site.upstream_on(listener, gone, &[&[Step::Read, send(main), Step::Again]]);
        site.until("its return", || !service.group(0).is_out(0))
            .await;
        for _ in 0..4 {
            assert!(ask(&mut client, POST).await.ends_with("main"));
        }
    });
}
