//! A site: one configuration prepared for one core. A request ends on the site that it began with.

pub(crate) mod place;
mod resources;
pub(crate) mod target;

use std::collections::HashMap;
use std::pin::Pin;
use std::rc::Rc;

use onrush_config::plan;
use onrush_engine::Error;
use onrush_tls::{Info, Transport};

use crate::admit::connections::Bounds;
use crate::descriptors::Shares;
use crate::observe::work::{CHECK, UPKEEP};
use crate::proxy::Group;
use crate::proxy::check::watch;
use crate::proxy::kept::Keeper;
use crate::respond::file::Files;
use crate::route::{Route, Routes};
use crate::settings::Settings;
use crate::worker::Worker;
use place::Place;
use target::{Response, Target};

pub(crate) use resources::Resources;

pub(crate) struct Site {
    pub(crate) settings: Rc<Settings>,
    pub(crate) routes: Routes<Target>,
    pub(crate) groups: Vec<Rc<Group>>,
    /// One for each address that is listened on, in their order.
    pub(crate) places: Vec<Rc<Place>>,
    /// By the number in the registry, where it is the number of a place; [`NO_PLACE`] for others.
    places_by_number: Box<[u16]>,
    /// Whether any of them has rules about certificates of clients by name.
    has_client_rules: bool,
    /// What the limit on open files has room for.
    shares: Shares,
}

const NO_PLACE: u16 = u16::MAX;

impl Site {
    /// Prepares a configuration for the core of `worker`. Servers that stood in the one `before` and did not change keep
    /// their connections.
    ///
    /// # Errors
    /// When the directory of a route cannot be opened, with its path.
    pub(crate) fn new(
        worker: &Rc<Worker>,
        resources: &Resources,
        before: Option<&Site>,
    ) -> Result<Rc<Self>, (String, Error)> {
        let core = &worker.core;
        let plan = &resources.plan;
        let settings = Settings::new(
            worker,
            plan,
            (
                &resources.page_files,
                resources.access_log.as_ref(),
                resources.tracing.as_ref(),
            ),
            resources.generation.in_force(),
        );
        let mut routes = Vec::new();
        let treated = plan.routes.iter().zip(&settings.treatments);
        for (index, (route, treatment)) in treated.enumerate() {
            routes.push(Route {
                when: route.when.clone(),
                target: Target::new(index, route, treatment, &resources.ledger)?,
            });
        }
        let seed = core.now_exact().nanoseconds() ^ core.id() as u64;
        let made_of = plan.upstreams.iter().zip(&resources.all_endpoints);
        let made_of = made_of.zip(&resources.encryption.connectors);
        let groups = made_of.map(|((upstream, endpoints), connector)| {
            Group::new(
                upstream,
                plan.timeouts,
                endpoints,
                connector,
                (seed, core.now()),
                before.and_then(|site| site.group_named(&upstream.name)),
            )
        });
        let places = plan.listen.iter().zip(&resources.encryption.acceptors);
        let bounds = Bounds::new(plan, &resources.client_counts);
        let mut occurrences: HashMap<_, usize> = HashMap::new();
        let before_places = before.map_or(&[][..], |site| &site.places);
        let place = |(listen, acceptor): (&plan::Listen, &Option<_>)| {
            let seen = occurrences.entry(listen.address.to_string()).or_default();
            let listen = (listen, *seen);
            *seen += 1;
            Place::new(
                listen,
                acceptor.as_ref(),
                bounds.clone(),
                (worker, before_places),
            )
        };
        let places: Vec<_> = places.map(place).collect();
        let site = Rc::new(Self {
            settings,
            routes: Routes::new(routes),
            groups: groups.collect(),
            places_by_number: by_number(&places),
            has_client_rules: places.iter().any(|place| place.client_rules.is_some()),
            places,
            shares: resources.shares,
        });
        site.groups
            .iter()
            .for_each(|group| group.keep_within(&worker.kept));
        let kept = site.shares.kept();
        site.files().for_each(|files| files.keep_open(kept));
        Ok(site)
    }

    /// What routes call the listener with this number in the registry; nothing for one that was left by this configuration.
    pub(crate) fn listener_name(&self, listener: u16) -> &str {
        self.place(listener).map_or("", |place| &place.name)
    }

    fn place(&self, listener: u16) -> Option<&Place> {
        let place = self.places_by_number.get(usize::from(listener));
        let place = place.and_then(|&place| self.places.get(usize::from(place)));
        place.map(|place| &**place)
    }

    /// Whether a request for this host must come by another connection, because its rule about certificates of clients is
    /// not that of this one. A listener that was left has no rules to compare with: each such request is misdirected.
    #[inline]
    pub(crate) fn misdirects(&self, listener: u16, stream: &Transport, host: &str) -> bool {
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

    fn group_named(&self, name: &str) -> Option<&Group> {
        let mut groups = self.groups.iter().map(|group| &**group);
        groups.find(|group| group.plan.name == name)
    }

    fn files(&self) -> impl Iterator<Item = &Files> {
        let responses = self.routes.iter().map(|route| &route.target.response);
        responses.filter_map(|response| match response {
            Response::Files(files) => Some(files),
            _ => None,
        })
    }

    /// It is in force: its bounds are the core's, and what looks after the servers starts, until the core stops or another
    /// site takes over.
    pub(crate) fn begin(&self, worker: &Rc<Worker>) {
        worker.drain.set(self.settings.timeouts.drain);
        for place in &self.places {
            worker.registry.call(place.listener, &place.name);
        }
        worker.kept.bound(self.shares.kept());
        if self.shares.limit.is_some() {
            worker.core.bound_pipes(self.shares.pipes_per_core);
        }
        for group in &self.groups {
            let start = |work, task: Pin<Box<dyn Future<Output = ()>>>| {
                let group = Rc::clone(group);
                worker.spawn_aside(work, async move { group.retirement.ends(task).await });
            };
            start(
                UPKEEP,
                Box::pin(Rc::clone(group).maintain(worker.core.clone())),
            );
            if group.plan.connections_ready > 0 {
                start(
                    UPKEEP,
                    Box::pin(Rc::clone(group).keep_ready(Rc::clone(worker))),
                );
            }
            // One core's checks are for all.
            if worker.core.id() == 0 && group.plan.health.is_some() {
                for server in 0..group.servers().len() as u32 {
                    let watching = watch(Rc::clone(group), server, Rc::clone(worker));
                    start(CHECK, Box::pin(watching));
                }
            }
        }
    }

    /// Another site is in force: what looked after the servers ends. Requests that began on this one go on.
    pub(crate) fn retire(&self) {
        self.groups.iter().for_each(|group| group.retire());
    }
}

/// Which place has each number in the registry.
fn by_number(places: &[Rc<Place>]) -> Box<[u16]> {
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

impl Keeper for Site {
    fn give_up(&self) -> usize {
        let connections: usize = self.groups.iter().map(|group| group.give_up_idle()).sum();
        let files = self.files().filter(|files| files.give_up_open()).count();
        connections + files
    }
}
