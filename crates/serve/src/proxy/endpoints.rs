//! The state of a group's servers that all cores share: addresses, availability and connection counts. One per group
//! and configuration. Requests read atomics only.
//!
//! A configured server is one endpoint; a name has as many endpoints as it may have addresses, and an endpoint without
//! an address is vacant.
//!
//! An endpoint consists of configuration and state. If the next configuration has the server too, both configurations
//! share its state as long as requests of the old one are in flight:
//!
//! ```text
//!   before:  endpoint A   endpoint B   endpoint C      notice
//!                 │            │                          │
//!               state        state                    (shared)
//!                 │            │                          │
//!   after:   endpoint A   endpoint B   endpoint D      notice
//! ```

mod capacity;
mod endpoint;
mod names;
mod state;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onrush_config::plan::Upstream;
use onrush_engine::Instant;

use super::ejection::{EjectionPhase, GroupSnapshot};
use super::wait_queue::WaitQueue;
use endpoint::{EjectionPolicy, endpoints_max, fixed_address};
use names::Names;

pub(crate) use endpoint::{Availability, Endpoint};
pub use state::AdminState;
pub(crate) use state::Location;

#[derive(Debug)]
pub(crate) struct Endpoints {
    /// Identify servers across configurations.
    names: Names,
    all: Vec<Endpoint>,
    /// For each configured server, the index after its last endpoint.
    ends: Vec<usize>,
    notice: Arc<ChangeNotifier>,
}

/// Notifies cores of changes; shared by configurations whose endpoints share state.
#[derive(Debug)]
struct ChangeNotifier {
    /// Incremented when the servers that may get requests change; each core compares it with the last version seen.
    version: AtomicU64,
    /// The queues that wait for capacity.
    line: WaitQueue,
}

impl Endpoints {
    /// The endpoints of `upstream`. Servers that are also in the group's previous endpoints `before` keep their state;
    /// other names have no address yet, and other servers count as healthy until a check fails.
    pub(crate) fn new(upstream: &Upstream, before: Option<&Endpoints>) -> Self {
        let names = Names::of(upstream);
        let known = before.map(|before| (before, names.positions_in(&before.names)));
        let deciders = EjectionPolicy::of(upstream);
        let mut endpoints = Vec::new();
        let mut ends = Vec::new();
        for (index, server) in upstream.servers.iter().enumerate() {
            let known = known
                .as_ref()
                .and_then(|(before, positions)| Some(before.of_server(positions[index]?).1));
            let fixed = fixed_address(server);
            endpoints.extend((0..endpoints_max(server)).map(|position| {
                // The number of endpoints of a server may have changed.
                let known = known.and_then(|endpoints| endpoints.get(position));
                Endpoint::new(server, fixed.clone(), deciders, known)
            }));
            ends.push(endpoints.len());
        }
        Self {
            names,
            all: endpoints,
            ends,
            notice: before.map_or_else(Arc::default, |before| Arc::clone(&before.notice)),
        }
    }

    /// For each endpoint, the index of the endpoint of `before` that shares its state. O(n).
    pub(crate) fn positions_in(&self, before: &Endpoints) -> Vec<Option<usize>> {
        let states = before.all.iter().zip(0..);
        let positions: HashMap<_, usize> = states
            .map(|(endpoint, index)| (Arc::as_ptr(&endpoint.state), index))
            .collect();
        let position = |endpoint: &Endpoint| positions.get(&Arc::as_ptr(&endpoint.state)).copied();
        self.all.iter().map(position).collect()
    }

    pub(crate) fn all(&self) -> &[Endpoint] {
        &self.all
    }

    /// The endpoints of a configured server, with the index of the first.
    pub(crate) fn of_server(&self, server: usize) -> (usize, &[Endpoint]) {
        let start = server.checked_sub(1).map_or(0, |before| self.ends[before]);
        (start, &self.all[start..self.ends[server]])
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        // Acquire, so that the changes made before the increment are visible.
        self.notice.version.load(Ordering::Acquire)
    }

    /// Makes all cores refresh their view, in every configuration.
    pub(crate) fn changed(&self) {
        self.notice.version.fetch_add(1, Ordering::AcqRel);
        self.notice.line.call_all();
    }

    /// Assigns the addresses `found` for a name to its endpoints, in that order. An address that is already assigned
    /// keeps its endpoint and state; a new one starts without state. Returns the number of addresses without an
    /// endpoint.
    pub(crate) fn assign(&self, server: usize, found: &[Location], now: Instant) -> usize {
        let (_, endpoints) = self.of_server(server);
        let mut left: Vec<&Location> = found.iter().collect();
        let mut has_changed = false;
        for endpoint in endpoints {
            let mut location = endpoint.state.location();
            let Some(located) = location.as_mut() else {
                continue;
            };
            match left.iter().position(|new| new.address == located.address) {
                Some(position) => {
                    let new = left.remove(position);
                    has_changed |= *located != *new;
                    located.clone_from(new);
                }
                None => {
                    *location = None;
                    has_changed = true;
                }
            }
        }
        let mut left = left.into_iter();
        for endpoint in endpoints {
            let mut location = endpoint.state.location();
            if location.is_none()
                && let Some(new) = left.next()
            {
                *location = Some(new.clone());
                endpoint.is_healthy.store(true, Ordering::Relaxed);
                endpoint.state.ejection.reset_state();
                endpoint.state.set_since(now);
                has_changed = true;
            }
        }
        if has_changed {
            self.changed();
        }
        left.len()
    }

    /// Current counts of the servers. O(n); called after a failure.
    pub(crate) fn snapshot(&self) -> GroupSnapshot {
        let mut census = GroupSnapshot {
            with_address: 0,
            out: 0,
            in_service: 0,
        };
        for endpoint in self.all.iter().filter(|endpoint| endpoint.is_located()) {
            let is_out =
                endpoint.presence() != EjectionPhase::In || endpoint.duty() != AdminState::Serve;
            census.with_address += 1;
            census.out += usize::from(is_out);
            census.in_service += usize::from(!is_out && endpoint.is_healthy());
        }
        census
    }

    /// Sets the administrative state of an endpoint.
    pub(crate) fn set_duty(&self, endpoint: u32, duty: AdminState) {
        self.all[endpoint as usize].state.set_duty(duty);
        self.changed();
    }

    /// Sets the weight of an endpoint; `None` restores the configured one.
    pub(crate) fn set_weight(&self, endpoint: u32, weight: Option<u32>) {
        self.all[endpoint as usize].state.set_weight(weight);
        self.changed();
    }

    pub(crate) fn set_healthy(&self, endpoint: u32, is_healthy: bool, now: Instant) {
        let endpoint = &self.all[endpoint as usize];
        // With each configuration, the checks begin again and mostly confirm the known state.
        if is_healthy && !endpoint.is_healthy() {
            endpoint.state.set_since(now);
        }
        if endpoint.is_healthy.swap(is_healthy, Ordering::Relaxed) != is_healthy {
            self.changed();
        }
    }
}

impl Default for ChangeNotifier {
    fn default() -> Self {
        Self {
            // Differs from the initial value on a core, which has seen nothing.
            version: AtomicU64::new(1),
            line: WaitQueue::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use onrush_config::plan;
    use onrush_engine::Address;
    use proptest::prelude::*;

    use super::*;
    use crate::proxy::ejection::recheck_delay::{Cause, RecheckDelays};
    use crate::proxy::ejection::transitions::EjectionStart;

    fn endpoints(servers: &str) -> Endpoints {
        Endpoints::new(&upstream(servers, ""), None)
    }

    fn upstream(servers: &str, keys: &str) -> Upstream {
        let text = format!(
            "[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [{servers}]\nbalance = \"random\"\n{keys}"
        );
        let parsed = onrush_config::parse(&text, std::path::Path::new("onrush.toml")).unwrap();
        parsed.plan.upstreams[0].clone()
    }

    fn at(last: u8) -> Location {
        Location {
            address: Address::Tcp(([10, 0, 0, last], 80).into()),
            weight: 1,
            backup: false,
        }
    }

    fn located(endpoints: &Endpoints, server: usize) -> Vec<Option<Location>> {
        let (_, endpoints) = endpoints.of_server(server);
        endpoints.iter().map(Endpoint::location).take(3).collect()
    }

    #[test]
    fn endpoint_is_kept_for_same_address() {
        let endpoints = endpoints("\"10.0.0.9:80\", { address = \"app:80\", addresses_max = 16 }");
        let now = Instant::from_nanoseconds(1);
        assert_eq!(located(&endpoints, 0), [Some(at(9))]);
        assert_eq!(located(&endpoints, 1), [None, None, None]);
        assert_eq!(endpoints.assign(1, &[at(1), at(2)], now), 0);
        assert_eq!(located(&endpoints, 1), [Some(at(1)), Some(at(2)), None]);
        let before = endpoints.version();
        assert_eq!(endpoints.assign(1, &[at(2), at(1)], now), 0);
        assert_eq!(endpoints.version(), before, "nothing has changed");
        assert_eq!(endpoints.assign(1, &[at(3), at(2)], now), 0);
        assert_eq!(located(&endpoints, 1), [Some(at(3)), Some(at(2)), None]);
        assert!(endpoints.version() > before);
        let many: Vec<Location> = (1..=40).map(at).collect();
        assert_eq!(endpoints.assign(1, &many, now), 40 - 16);
        assert_eq!(endpoints.assign(1, &[], now), 0);
        assert_eq!(located(&endpoints, 1), [None, None, None]);
    }

    #[test]
    fn reload_applies_addresses_max() {
        let of = |max: u32| {
            let server = format!("{{ address = \"app:80\", addresses_max = {max} }}");
            upstream(&server, "")
        };
        let now = Instant::from_nanoseconds(1);
        let found: Vec<Location> = (1..=3).map(at).collect();
        let few = Endpoints::new(&of(2), None);
        assert_eq!(few.assign(0, &found, now), 1);
        let more = Endpoints::new(&of(3), Some(&few));
        assert_eq!(located(&more, 0), [Some(at(1)), Some(at(2)), None]);
        assert_eq!(more.assign(0, &found, now), 0);
        let fewer = Endpoints::new(&of(1), Some(&more));
        assert_eq!(located(&fewer, 0), [Some(at(1))]);
    }

    #[test]
    fn new_address_starts_without_state() {
        let endpoints = endpoints("\"app:80\"");
        let now = Instant::from_nanoseconds;
        endpoints.assign(0, &[at(1), at(2)], now(1));
        endpoints.set_healthy(0, false, now(2));
        take_out(&endpoints, 1, 2);
        endpoints.assign(0, &[at(3), at(2)], now(3));
        let all = endpoints.all();
        assert_eq!(all[0].availability(), Availability::In { since: 3 });
        assert_eq!(all[1].availability(), Availability::Out);
        endpoints.assign(0, &[at(3), at(4)], now(5));
        assert_eq!(all[1].availability(), Availability::In { since: 5 });
    }

    fn take_out(endpoints: &Endpoints, endpoint: u32, now: u64) -> Option<EjectionStart> {
        let terms = RecheckDelays::from(&plan::Eject::default());
        let now = Instant::from_nanoseconds(now);
        endpoints.eject_server(endpoint, Cause::Unreliable, &terms, now)
    }

    #[test]
    fn ejected_server_returns_to_service() {
        let endpoints = endpoints("\"10.0.0.1:80\", \"10.0.0.2:80\"");
        let now = Instant::from_nanoseconds;
        let census = |out, in_service| GroupSnapshot {
            with_address: 2,
            out,
            in_service,
        };
        assert_eq!(endpoints.snapshot(), census(0, 2));
        let out = take_out(&endpoints, 1, 100).expect("it was in");
        assert!(take_out(&endpoints, 1, 101).is_none(), "it is out already");
        let endpoint = &endpoints.all()[1];
        assert_eq!(endpoint.availability(), Availability::Out);
        assert_eq!(endpoints.snapshot(), census(1, 1));
        assert!(endpoints.is_out(1, out.term));
        assert!(!endpoints.bring_back(1, Some(out.term + 1), now(200)));
        assert!(endpoints.bring_back(1, Some(out.term), now(200)));
        assert!(
            !endpoints.bring_back(1, None, now(201)),
            "it is back already"
        );
        assert!(!endpoints.is_out(1, out.term));
        assert_eq!(endpoint.availability(), Availability::In { since: 200 });
        endpoints.set_healthy(1, false, now(300));
        assert_eq!(endpoint.availability(), Availability::Out);
        assert_eq!(endpoints.snapshot(), census(0, 1));
        endpoints.set_healthy(1, true, now(400));
        assert_eq!(endpoint.availability(), Availability::In { since: 400 });
        endpoints.set_healthy(1, true, now(500));
        assert_eq!(
            endpoint.availability(),
            Availability::In { since: 400 },
            "it has begun"
        );
    }

    #[test]
    fn trial_is_limited_to_single_request() {
        let endpoints = endpoints("\"10.0.0.1:80\", \"10.0.0.2:80\"");
        let now = Instant::from_nanoseconds;
        let out = take_out(&endpoints, 0, 100).expect("it was in");
        assert!(!endpoints.claim_trial(0), "not yet");
        endpoints.put_on_trial(0, out.term, now(200));
        assert_eq!(endpoints.all()[0].availability(), Availability::Out);
        assert!(endpoints.claim_trial(0));
        assert!(!endpoints.claim_trial(0), "another has it");
        endpoints.release_trial(0);
        assert!(endpoints.claim_trial(0));
        let again = take_out(&endpoints, 0, 300).expect("it failed its trial");
        assert_eq!(again.wait, 2 * out.wait);
        endpoints.release_trial(0);
        assert!(!endpoints.claim_trial(0), "it is out");
        endpoints.put_on_trial(0, out.term, now(400));
        assert!(!endpoints.claim_trial(0), "that absence has ended");
    }

    #[test]
    fn reordered_servers_keep_state() {
        let now = Instant::from_nanoseconds;
        let before = endpoints("\"10.0.0.1:80\", \"10.0.0.2:80\", \"10.0.0.3:80\"");
        let out = take_out(&before, 1, 100).expect("it was in");
        let after = upstream(
            "\"10.0.0.4:80\", { address = \"10.0.0.2:80\", weight = 7 }, \"10.0.0.1:80\"",
            "",
        );
        let after = Endpoints::new(&after, Some(&before));
        let availability = |endpoints: &Endpoints| -> Vec<Availability> {
            endpoints.all().iter().map(Endpoint::availability).collect()
        };
        let is_in = Availability::In { since: 0 };
        assert_eq!(availability(&after), [is_in, Availability::Out, is_in]);
        let weights = |endpoints: &Endpoints| -> Vec<u32> {
            let all = endpoints.all().iter().filter_map(Endpoint::location);
            all.map(|at| at.weight).collect()
        };
        assert_eq!(
            (weights(&before), weights(&after)),
            (vec![1; 3], vec![1, 7, 1])
        );
        assert!(after.is_out(1, out.term));
        let seen = (before.version(), after.version());
        assert!(before.bring_back(1, Some(out.term), now(200)));
        assert!(before.version() > seen.0 && after.version() > seen.1);
        assert_eq!(
            after.all()[1].availability(),
            Availability::In { since: 200 }
        );
        take_out(&after, 2, 300).expect("it was in");
        assert_eq!(before.all()[0].availability(), Availability::Out);
        take_out(&after, 0, 300).expect("it was in");
        assert_eq!(before.snapshot().out, 1, "it does not know the new one");
    }

    #[test]
    fn hostname_keeps_resolved_addresses_on_reload() {
        let now = Instant::from_nanoseconds(1);
        let before = endpoints("\"app:80\", \"db:80\"");
        before.assign(0, &[at(1), at(2)], now);
        let after = upstream("\"new:80\", \"app:80\"", "");
        let after = Endpoints::new(&after, Some(&before));
        assert_eq!(located(&after, 0), [None, None, None]);
        assert_eq!(located(&after, 1), [Some(at(1)), Some(at(2)), None]);
        after.assign(1, &[at(2), at(3)], now);
        assert_eq!(located(&before, 0), [Some(at(3)), Some(at(2)), None]);
    }

    #[test]
    fn health_is_kept_while_checked() {
        const CHECKED: &str = "health = { path = \"/\" }";
        const ONE: &str = "\"10.0.0.1:80\"";
        let now = Instant::from_nanoseconds(1);
        let checked = |before| Endpoints::new(&upstream(ONE, CHECKED), before);
        let first = checked(None);
        first.set_healthy(0, false, now);
        let second = checked(Some(&first));
        assert!(!second.all()[0].is_healthy());
        let unchecked = Endpoints::new(&upstream(ONE, ""), Some(&second));
        assert!(unchecked.all()[0].is_healthy());
        assert!(
            !second.all()[0].is_healthy(),
            "its requests go elsewhere as before"
        );
        let third = checked(Some(&unchecked));
        assert!(third.all()[0].is_healthy(), "that was long ago");
        assert!(checked(Some(&third)).all()[0].is_healthy());
    }

    #[test]
    fn ejection_is_ignored_if_disabled() {
        const TWO: &str = "\"10.0.0.1:80\", \"10.0.0.2:80\"";
        let two = |before| Endpoints::new(&upstream(TWO, ""), before);
        let first = two(None);
        let out = take_out(&first, 0, 100).expect("it was in");
        let second = two(Some(&first));
        assert_eq!(second.all()[0].presence(), EjectionPhase::Out);
        for (servers, keys) in [(TWO, "eject = false"), ("\"10.0.0.1:80\"", "")] {
            let unjudged = Endpoints::new(&upstream(servers, keys), Some(&second));
            assert_eq!(
                unjudged.all()[0].availability(),
                Availability::In { since: 0 }
            );
            assert!(
                second.is_out(0, out.term),
                "its requests go elsewhere as before"
            );
        }
        let unjudged = Endpoints::new(&upstream(TWO, "eject = false"), Some(&second));
        let third = two(Some(&unjudged));
        assert_eq!(third.all()[0].presence(), EjectionPhase::In);
        assert!(!first.is_out(0, out.term), "that absence has ended");
    }

    #[test]
    fn connection_count_is_shared_across_reload() {
        let limited = |max| {
            let server = format!("{{ address = \"10.0.0.1:80\", connections_max = {max} }}");
            upstream(&server, "")
        };
        let before = Endpoints::new(&limited(2), None);
        let after = Endpoints::new(&limited(3), Some(&before));
        let (old, new) = (&before.all()[0], &after.all()[0]);
        assert!(old.acquire() && new.acquire());
        assert!(!old.acquire(), "two have been acquired");
        assert!(new.acquire(), "three is its bound now");
        assert!(!new.acquire());
        before.release(0);
        assert!(!old.acquire(), "two are left");
        assert!(new.acquire() && !new.acquire());
    }

    proptest! {
        #[test]
        fn ejection_state_follows_server_across_reloads(
            configurations in prop::collection::vec(
                prop::sample::subsequence((1..=9_u8).collect::<Vec<_>>(), 2..9).prop_shuffle(),
                1..12,
            ),
            falls in prop::collection::vec(0..9_usize, 12),
        ) {
            let mut out: Vec<u8> = Vec::new();
            let mut before: Option<Endpoints> = None;
            for (servers, fall) in configurations.iter().zip(falls) {
                let written: Vec<String> =
                    servers.iter().map(|last| format!("\"10.0.0.{last}:80\"")).collect();
                let endpoints = Endpoints::new(&upstream(&written.join(", "), ""), before.as_ref());
                out.retain(|last| servers.contains(last));
                let fallen = fall % servers.len();
                let is_news = take_out(&endpoints, fallen as u32, 1).is_some();
                prop_assert_eq!(is_news, !out.contains(&servers[fallen]));
                if is_news {
                    out.push(servers[fallen]);
                }
                for (endpoint, last) in endpoints.all().iter().zip(servers) {
                    let is_out = endpoint.presence() == EjectionPhase::Out;
                    prop_assert_eq!(is_out, out.contains(last), "10.0.0.{}", last);
                }
                before = Some(endpoints);
            }
        }
    }
}
