//! Capacity of the servers of a group, and the queues that wait for it. One bit of the counter that every request
//! changes anyway shows whether any queue waits, so no other memory is read when none does.
//!
//! ```text
//!   to wait:     enter the line -> mark the endpoints -> try again (finds capacity released before)
//!   to release:  decrement -> see the mark (of a queue that found none before) -> call the first in the line
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use super::super::wait_queue::{Position, WaitQueue};
use super::state::HAS_WAITERS;
use super::{Availability, Endpoint, Endpoints};

impl Endpoints {
    pub(crate) fn line(&self) -> &WaitQueue {
        &self.notice.line
    }

    /// [`WaitQueue::enter`], then marks the endpoints, so that releasing a connection calls a queue.
    pub(crate) fn enter_line(&self, queue: u64, waker: &Waker, state: (Position, u64)) -> u64 {
        let may_be_more = || self.may_have_capacity_for_others();
        let passed = self.line().enter(queue, waker, state, may_be_more);
        for endpoint in &self.all {
            endpoint
                .state
                .in_flight
                .fetch_or(HAS_WAITERS, Ordering::AcqRel);
        }
        passed
    }

    /// Whether another queue of the line may find capacity where one has found none. If two configurations share the
    /// line, there may be capacity for the other one only, on a server of its own or within its higher limit.
    pub(crate) fn may_have_capacity_for_others(&self) -> bool {
        Arc::strong_count(&self.notice) > 1 || self.has_capacity()
    }

    /// Whether any server can take one more connection. O(n).
    fn has_capacity(&self) -> bool {
        let has_capacity = |endpoint: &Endpoint| {
            matches!(endpoint.availability(), Availability::In { .. })
                && endpoint.in_flight() < endpoint.connections_max
        };
        self.all.iter().any(has_capacity)
    }

    /// Releases a connection that was [acquired](Endpoint::acquire), and calls a waiting queue, if any.
    pub(crate) fn release(&self, server: u32) {
        let in_flight = &self.all[server as usize].state.in_flight;
        if in_flight.fetch_sub(1, Ordering::AcqRel) & HAS_WAITERS != 0 {
            self.line().call(|| {
                // A queue that enters the line after this marks the endpoint again.
                in_flight.fetch_and(!HAS_WAITERS, Ordering::AcqRel);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Barrier;
    use std::time::Duration;

    use onrush_config::plan::Timeouts;
    use onrush_engine::{Core, Instant, Io, Setup, start};
    use onrush_http::Method;

    use super::super::super::group::Group;
    use super::super::super::unavailable::Unavailable;
    use super::*;

    const ROUNDS: usize = 300;
    const TASKS: usize = 3;

    /// Tasks on two cores repeatedly reserve the only connection. Returns the number of reservations of each core.
    fn take_turns(io: Io) -> Vec<usize> {
        let text = "[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [{ address = \"127.0.0.1:9\", connections_max = 1 }]\nqueue = { max = 10 }\n";
        let parsed = onrush_config::parse(text, std::path::Path::new("onrush.toml")).unwrap();
        let upstream = parsed.plan.upstreams[0].clone();
        let endpoints = Arc::new(Endpoints::new(&upstream, None));
        let both = Arc::new(Barrier::new(2));
        let setup = Setup {
            io,
            cpus: vec![None; 2],
        };
        let cores = start(&setup, move |core: Core| {
            let seed = core.id() as u64;
            let group = Group::new(
                &upstream,
                Timeouts::default(),
                &endpoints,
                &None,
                (seed, core.now()),
                None,
            );
            let served: Rc<Cell<usize>> = Rc::default();
            for _ in 0..TASKS {
                let (group, core, served) = (Rc::clone(&group), core.clone(), Rc::clone(&served));
                core.clone().spawn(async move {
                    for _ in 0..ROUNDS {
                        let until = core.now_exact() + Duration::from_secs(100);
                        let reservation = group
                            .reserve_or_wait(Method::Get, (0, &[]), None, &core, until)
                            .await;
                        let reservation = reservation.expect("its turn comes");
                        core.yield_now().await;
                        drop(reservation);
                        served.set(served.get() + 1);
                    }
                });
            }
            both.wait();
            core.run();
            served.get()
        });
        cores.unwrap().join()
    }

    #[test]
    fn release_wakes_queue_of_other_core() {
        for io in [Io::Epoll, Io::IoUring] {
            if onrush_engine::choose(io).is_ok() {
                assert_eq!(take_turns(io), [TASKS * ROUNDS; 2]);
            }
        }
    }

    /// A group of servers with a limit of one connection each.
    fn group(servers: &[u16], before: Option<&Arc<Endpoints>>) -> Rc<Group> {
        let server = |port| format!("{{ address = \"127.0.0.1:{port}\", connections_max = 1 }}");
        let servers: Vec<String> = servers.iter().map(server).collect();
        let text = format!(
            "[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [{}]\nqueue = {{ max = 10 }}\n",
            servers.join(", ")
        );
        let parsed = onrush_config::parse(&text, std::path::Path::new("onrush.toml")).unwrap();
        let upstream = &parsed.plan.upstreams[0];
        let endpoints = Arc::new(Endpoints::new(upstream, before.map(|before| &**before)));
        let timeouts = Timeouts::default();
        Group::new(
            upstream,
            timeouts,
            &endpoints,
            &None,
            (1, Instant::default()),
            None,
        )
    }

    /// Starts a request that waits for a connection and releases it. Returns a flag that is set afterwards.
    fn wait(group: &Rc<Group>, core: &Core) -> Rc<Cell<bool>> {
        let was_served: Rc<Cell<bool>> = Rc::default();
        let (group, served) = (Rc::clone(group), Rc::clone(&was_served));
        let its_core = core.clone();
        core.spawn(async move {
            let until = its_core.now_exact() + Duration::from_secs(100);
            let reservation = group.reserve_or_wait(Method::Get, (0, &[]), None, &its_core, until);
            served.set(reservation.await.is_ok());
        });
        was_served
    }

    /// Lets all tasks that are ready run.
    async fn settle(core: &Core) {
        for _ in 0..10 {
            core.yield_now().await;
        }
    }

    fn on_simulated_core<T: Future<Output = ()> + 'static>(test: impl Fn(Core) -> T) {
        let core = Core::simulated(onrush_engine::Simulation::with_seed(1));
        core.spawn(test(core.clone()));
        assert_eq!(core.run(), 0, "all tasks have ended");
    }

    #[test]
    fn release_wakes_queue_of_other_configuration() {
        on_simulated_core(|core| async move {
            let before = group(&[1], None);
            let after = group(&[1], Some(before.endpoints()));
            for (holds, waits) in [(&after, &before), (&before, &after)] {
                let reservation = holds.reserve(0, &[], core.now()).expect("there is room");
                let was_served = wait(waits, &core);
                settle(&core).await;
                assert!(!was_served.get(), "there is none left");
                drop(reservation);
                settle(&core).await;
                assert!(was_served.get());
            }
        });
    }

    #[test]
    fn unusable_wakeup_is_passed_to_next_queue() {
        on_simulated_core(|core| async move {
            let before = group(&[1, 2], None);
            let after = group(&[2, 3], Some(before.endpoints()));
            let reservation =
                |group: &Rc<Group>| group.reserve(0, &[], core.now()).expect("there is room");
            let held = [&before, &before, &after].map(reservation);
            assert_eq!(
                after.reserve(0, &[], core.now()).err(),
                Some(Unavailable::Full)
            );
            let of_after = [wait(&after, &core), wait(&after, &core)];
            settle(&core).await;
            let of_before = wait(&before, &core);
            settle(&core).await;
            let [first, second, third] = held;
            let (gone, stays) = match first.server().name.ends_with(":1") {
                true => (first, second),
                false => (second, first),
            };
            drop(gone);
            settle(&core).await;
            assert!(of_before.get(), "it could use that server");
            assert!(of_after.iter().all(|served| !served.get()));
            drop((stays, third));
        });
    }
}
