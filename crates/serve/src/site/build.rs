//! Builds a site in slices, because its core serves requests meanwhile.

use std::collections::HashMap;
use std::rc::Rc;

use onrush_config::plan;
use onrush_engine::Error;

use super::listener_settings::ListenerSettings;
use super::resources::Resources;
use super::route_handler::RouteHandler;
use super::{Site, by_number};
use crate::exchange::settings::{RouteOptions, Settings};
use crate::observe::registry::SeriesKind;
use crate::observe::traffic::Traffic;
use crate::proxy::Group;
use crate::proxy::retirement::Retirement;
use crate::routing::route::{Route, Routes};
use crate::rules::error_page::ErrorPages;
use crate::worker::Worker;
use crate::worker::admit::connections::ConnectionLimits;
use crate::worker::time_slice::{TimeSlice, drop_in_slices};

/// The prepared parts of a site. If the preparation fails, they are dropped in slices.
struct Parts<'w> {
    worker: &'w Rc<Worker>,
    treatments: Vec<RouteOptions>,
    routes: Vec<Route<RouteHandler>>,
    groups: Vec<Rc<Group>>,
    traffic: Vec<Rc<Traffic>>,
}

impl Site {
    /// Prepares a configuration for the core of `worker`. Servers that are unchanged since `before` keep their
    /// connections. Fails if the directory of a route cannot be opened, with its path.
    pub(crate) async fn new(
        worker: &Rc<Worker>,
        resources: &Resources,
        before: Option<&Site>,
        slice: &mut TimeSlice,
    ) -> Result<Rc<Self>, (String, Error)> {
        worker.registry.prepare();
        let plan = &resources.plan;
        let error_pages = ErrorPages::new(&plan.error_pages, &resources.page_files);
        let mut parts = Parts {
            worker,
            treatments: Vec::with_capacity(plan.routes.len()),
            routes: Vec::with_capacity(plan.routes.len()),
            groups: Vec::with_capacity(plan.upstreams.len()),
            traffic: Vec::with_capacity(plan.upstreams.len()),
        };
        parts.add_routes(resources, &error_pages, slice).await?;
        parts.add_groups(resources, before, slice).await;
        let places = places(worker, resources, before);
        let treatments = std::mem::take(&mut parts.treatments);
        let traffic = std::mem::take(&mut parts.traffic);
        let routes = std::mem::take(&mut parts.routes);
        let settings = Settings::new(worker, resources, error_pages, treatments, traffic);
        let site = Rc::new(Self {
            settings,
            routes: Routes::new(routes, &resources.route_index),
            groups: std::mem::take(&mut parts.groups),
            places_by_number: by_number(&places),
            has_client_rules: places.iter().any(|place| place.client_rules.is_some()),
            places,
            shares: resources.shares,
            retirement: Rc::new(Retirement::default()),
        });
        slice.step().await;
        let kept = site.shares.idle_per_owner();
        site.files().for_each(|files| files.limit_open_files(kept));
        Ok(site)
    }
}

impl Parts<'_> {
    async fn add_routes(
        &mut self,
        resources: &Resources,
        error_pages: &Option<Rc<ErrorPages>>,
        slice: &mut TimeSlice,
    ) -> Result<(), (String, Error)> {
        for (index, route) in resources.plan.routes.iter().enumerate() {
            let treatment = RouteOptions::new(index, resources, error_pages, self.worker);
            self.routes.push(Route {
                when: route.when.clone(),
                target: RouteHandler::new(index, route, &treatment, &resources.ledger)?,
            });
            self.treatments.push(treatment);
            slice.step().await;
        }
        Ok(())
    }

    async fn add_groups(
        &mut self,
        resources: &Resources,
        before: Option<&Site>,
        slice: &mut TimeSlice,
    ) {
        let core = &self.worker.core;
        let seed = core.now_exact().nanoseconds() ^ core.id() as u64;
        for (index, upstream) in resources.plan.upstreams.iter().enumerate() {
            let before = before.zip(resources.groups_before[index]);
            let group = Group::prepare(
                upstream,
                resources.plan.timeouts,
                &resources.all_endpoints[index],
                &resources.encryption.connectors[index],
                (seed, core.now()),
                before.map(|(site, index)| &*site.groups[index]),
                slice,
            );
            let group = group.await;
            group.set_core_limit(&self.worker.kept);
            self.groups.push(group);
            let registry = &self.worker.registry;
            self.traffic
                .push(registry.traffic(SeriesKind::Group, &upstream.name));
        }
    }
}

impl Drop for Parts<'_> {
    fn drop(&mut self) {
        drop_in_slices(std::mem::take(&mut self.treatments), self.worker);
        drop_in_slices(std::mem::take(&mut self.routes), self.worker);
        drop_in_slices(std::mem::take(&mut self.groups), self.worker);
    }
}

fn places(
    worker: &Worker,
    resources: &Resources,
    before: Option<&Site>,
) -> Vec<Rc<ListenerSettings>> {
    let plan = &resources.plan;
    let bounds = ConnectionLimits::new(plan, &resources.client_counts);
    let mut occurrences: HashMap<_, usize> = HashMap::new();
    let before = before.map_or(&[][..], |site| &site.places);
    let place = |(listen, acceptor): (&plan::Listener, &Option<_>)| {
        let seen = occurrences.entry(listen.address.to_string()).or_default();
        let listen = (listen, *seen);
        *seen += 1;
        ListenerSettings::new(listen, acceptor.as_ref(), bounds.clone(), (worker, before))
    };
    let places = plan.listen.iter().zip(&resources.encryption.acceptors);
    places.map(place).collect()
}
