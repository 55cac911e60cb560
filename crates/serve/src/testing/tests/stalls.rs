//! A stalled process sees responses, hangups and deadlines at the same time. Data that has arrived is used, and servers
//! are not blamed for the stall.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{Check, Eject, Health, OneLiner, ServerAddress};
use onrush_engine::{Address, Listener};

use crate::site::service::Service;
use crate::testing::harness::{Peer, TestCore, on_undisturbed_cores};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Timeout of servers; the stall is longer.
const PATIENCE: Duration = Duration::from_millis(300);
const STALL: Duration = Duration::from_millis(600);

const ONE: NonZeroU32 = NonZeroU32::MIN;

/// A group of two servers played by the test; one failure ejects a server.
struct Stage {
    listener: Listener,
    front: Address,
    service: Rc<Service>,
}

impl Stage {
    fn of(site: &TestCore, health: Option<Health>) -> Stage {
        let (listener, address) = site.listen();
        let servers = vec![ServerAddress::Ip(address); 2];
        let mut plan = Plan::one_liner(OneLiner::Forward(servers), Vec::new());
        plan.timeouts.upstream_first_byte = PATIENCE;
        plan.timeouts.client_head = PATIENCE;
        let group = &mut plan.upstreams[0];
        group.servers.truncate(if health.is_some() { 1 } else { 2 });
        group.eject = Some(Eject {
            consecutive_failures: Some(ONE),
            ..Eject::default()
        });
        group.health = health;
        let (front, service) = site.serve_worker(&plan);
        Stage {
            listener,
            front,
            service,
        }
    }

    /// The server's end of a connection on which a request has arrived.
    async fn server(&self) -> Peer {
        let mut server = Peer::new(self.listener.accept().await.expect("a connection"));
        server.receive_until(b"\r\n\r\n").await;
        server
    }

    fn is_any_out(&self) -> bool {
        let group = &self.service.group(0);
        group.is_out(0) || group.is_out(1)
    }
}

async fn status(client: &mut Peer) -> String {
    client.receive_message().await[9..12].to_owned()
}

#[test]
fn stalled_core_forwards_received_response() {
    on_undisturbed_cores(|site| async move {
        let stage = Stage::of(&site, None);
        let mut client = site.connect(&stage.front).await;
        client.send(GET).await;
        let server = stage.server().await;
        server.send(OK).await;
        site.stall_core(STALL);
        assert_eq!(status(&mut client).await, "200");
        assert!(!stage.is_any_out());
        assert_eq!(stage.service.worker.meter.totals().failed(), 0);
    });
}

#[test]
fn stalled_core_parses_received_head() {
    on_undisturbed_cores(|site| async move {
        let stage = Stage::of(&site, None);
        let mut client = site.connect(&stage.front).await;
        let (first, rest) = GET.split_at(10);
        client.send(first).await;
        site.core.sleep(PATIENCE / 2).await;
        client.send(rest).await;
        site.stall_core(STALL);
        let server = stage.server().await;
        server.send(OK).await;
        assert_eq!(status(&mut client).await, "200");
    });
}

#[test]
fn stalled_core_does_not_eject_server() {
    on_undisturbed_cores(|site| async move {
        let stage = Stage::of(&site, None);
        let mut client = site.connect(&stage.front).await;
        client.send(GET).await;
        let _silent = stage.server().await;
        site.stall_core(STALL);
        assert_eq!(status(&mut client).await, "504");
        assert!(!stage.is_any_out());
        // A failure of its own ejects it.
        site.core.sleep(STALL).await;
        client.send(GET).await;
        let _silent = stage.server().await;
        assert_eq!(status(&mut client).await, "504");
        assert!(stage.is_any_out());
    });
}

#[test]
fn stalled_core_repeats_health_check() {
    on_undisturbed_cores(|site| async move {
        let check = Check::Http {
            path: "/health".into(),
            host: None,
            status: vec![(200, 299)],
            body: None,
        };
        let stage = Stage::of(
            &site,
            Some(Health {
                interval: STALL,
                timeout: PATIENCE,
                rise: ONE,
                fall: ONE,
                ..Health::of(check)
            }),
        );
        let is_up = || stage.service.group(0).endpoints().all()[0].is_healthy();
        stage.server().await.send(OK).await;
        let silent = stage.server().await;
        site.stall_core(STALL);
        let again = stage.server().await;
        assert!(is_up());
        drop(silent);
        again.send(OK).await;
        // A failure of its own marks it down.
        let _silent = stage.server().await;
        site.until("a failure", || !is_up()).await;
    });
}
