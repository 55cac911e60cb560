//! A site: one configuration prepared for one core. A request keeps the site with which it started.

pub(crate) mod accept;
pub(crate) mod check;
pub(crate) mod client_rules;
pub(crate) mod cores;
pub(crate) mod encryption;
pub(crate) mod permissions;
pub(crate) mod service;
pub(crate) mod start_error;

mod build;
pub(crate) mod listener_settings;
pub(crate) mod resources;
pub(crate) mod route_handler;
mod settings;

use std::pin::Pin;
use std::rc::Rc;

use onrush_tls::{Info, Transport};

use crate::exchange::settings::Settings;
use crate::observe::work::{CHECK, UPKEEP};
use crate::proxy::Group;
use crate::proxy::check::watch;
use crate::proxy::group::maintain;
use crate::proxy::retirement::Retirement;
use crate::respond::file::Files;
use crate::routing::route::Routes;
use crate::worker::Worker;
use crate::worker::descriptor_shares::Shares;
use crate::worker::idle_limit::IdleOwner;
use crate::worker::time_slice::{TimeSlice, drop_in_slices};
use listener_settings::ListenerSettings;
use route_handler::{Response, RouteHandler};

pub(crate) use resources::Resources;

pub(crate) struct Site {
    pub(crate) settings: Rc<Settings>,
    pub(crate) routes: Routes<RouteHandler>,
    pub(crate) groups: Vec<Rc<Group>>,
    /// One for each listening address, in the order of the configuration.
    pub(crate) places: Vec<Rc<ListenerSettings>>,
    /// Index in `places` by the number in the registry, or [`NO_PLACE`].
    places_by_number: Box<[u16]>,
    /// Whether any place has client certificate rules by name.
    has_client_rules: bool,
    /// How the limit on open files is divided.
    shares: Shares,
    retirement: Rc<Retirement>,
}

const NO_PLACE: u16 = u16::MAX;

impl Site {
    /// Name of the listener with this number in the registry; empty if this configuration does not have it.
    pub(crate) fn listener_name(&self, listener: u16) -> &str {
        self.place(listener).map_or("", |place| &place.name)
    }

    fn place(&self, listener: u16) -> Option<&ListenerSettings> {
        let place = self.places_by_number.get(usize::from(listener));
        let place = place.and_then(|&place| self.places.get(usize::from(place)));
        place.map(|place| &**place)
    }

    /// Whether a request for this host needs another connection, because its rule about client certificates differs
    /// from the rule of this connection. A listener that is no longer configured has no rules to compare with: every
    /// request on it is misdirected.
    #[inline]
    pub(crate) fn needs_other_connection(
        &self,
        listener: u16,
        stream: &Transport,
        host: &str,
    ) -> bool {
        if !self.has_client_rules {
            return false;
        }
        let misdirects = |info: &Info| match self.place(listener) {
            Some(place) => {
                let rules = place.client_rules.as_ref();
                rules.is_some_and(|rules| rules.misdirect(info.name.as_deref(), host))
            }
            None => true,
        };
        stream.with_info(misdirects).unwrap_or(false)
    }

    fn files(&self) -> impl Iterator<Item = &Files> {
        let responses = self.routes.iter().map(|route| &route.target.response);
        responses.filter_map(|response| match response {
            Response::Files(files) => Some(files),
            _ => None,
        })
    }

    /// Applies its limits to the core.
    pub(crate) fn apply_limits(&self, worker: &Worker) {
        worker.drain.set(self.settings.timeouts.drain);
        for place in &self.places {
            worker.registry.rename_listener(place.listener, &place.name);
        }
        worker.kept.bound(self.shares.idle_per_owner());
        if self.shares.limit.is_some() {
            worker.core.bound_pipes(self.shares.pipes_per_core);
        }
    }

    /// Starts the tasks that maintain and check its servers, until the core stops or another site takes over.
    pub(crate) async fn begin_upkeep(&self, worker: &Rc<Worker>, slice: &mut TimeSlice) {
        if self.groups.is_empty() {
            return;
        }
        let maintained = self.groups.to_vec();
        let retirement = Rc::clone(&self.retirement);
        let core = worker.core.clone();
        worker.spawn_background(UPKEEP, async move {
            retirement
                .run_until_retired(maintain(maintained, core))
                .await;
        });
        for group in &self.groups {
            let start = |work, task: Pin<Box<dyn Future<Output = ()>>>| {
                let group = Rc::clone(group);
                worker.spawn_background(work, async move {
                    group.retirement.run_until_retired(task).await
                });
            };
            if group.plan.preconnect > 0 {
                start(
                    UPKEEP,
                    Box::pin(Rc::clone(group).keep_ready(Rc::clone(worker))),
                );
            }
            // One core runs the health checks for all.
            if worker.core.id() == 0 && group.plan.health.is_some() {
                for server in 0..group.servers().len() as u32 {
                    let watching = watch(Rc::clone(group), server, Rc::clone(worker));
                    start(CHECK, Box::pin(watching));
                    slice.step().await;
                }
            }
            slice.step().await;
        }
    }

    /// Ends the tasks of [`Site::begin_upkeep`] when another site is in force. Requests that began on this site
    /// continue.
    pub(crate) async fn retire(&self, slice: &mut TimeSlice) {
        self.retirement.begin();
        for group in &self.groups {
            group.retire(slice).await;
        }
    }
}

/// A request may hold the last reference.
impl Drop for Site {
    fn drop(&mut self) {
        let worker = &self.settings.worker;
        drop_in_slices(self.routes.take(), worker);
        drop_in_slices(std::mem::take(&mut self.groups), worker);
    }
}

/// The index of each place by its number in the registry.
fn by_number(places: &[Rc<ListenerSettings>]) -> Box<[u16]> {
    let mut by_number = Vec::new();
    for (place, index) in places.iter().zip(0..) {
        let number = usize::from(place.listener);
        if by_number.len() <= number {
            by_number.resize(number + 1, NO_PLACE);
        }
        by_number[number] = index;
    }
    by_number.into()
}

impl IdleOwner for Site {
    fn give_up(&self) -> usize {
        let connections: usize = self.groups.iter().map(|group| group.give_up_idle()).sum();
        let files = self
            .files()
            .filter(|files| files.close_idle_files())
            .count();
        connections + files
    }

    fn free_spare(&self) -> usize {
        self.groups.iter().map(|group| group.free_spare()).sum()
    }
}
