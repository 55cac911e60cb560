//! Requests in flight by client of a group with limited capacity, so that no client takes all of it.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::OnceLock;

use crate::limits::GROUP_CLIENTS_MAX;
use crate::worker::admit::concurrency::{Concurrency, Place};
use crate::worker::admit::key::{Key, Keys};

/// Counts of all cores. The table is created with the first request to a group of limited capacity.
#[derive(Default)]
pub(crate) struct ClientCounts(OnceLock<(Keys, Concurrency)>);

/// Handle of the counts on one core or in one group. A client has a separate key in each group.
#[derive(Debug, Default)]
pub(crate) struct CoreClientCounts(OnceCell<Rc<Concurrency>>);

impl ClientCounts {
    fn used(&self) -> &(Keys, Concurrency) {
        let table = || Concurrency::with_room_for(GROUP_CLIENTS_MAX);
        self.0.get_or_init(|| (Keys::default(), table()))
    }
}

impl CoreClientCounts {
    pub(crate) fn key(&self, all: &ClientCounts, group: u64, address: IpAddr) -> Key {
        let (keys, all) = all.used();
        self.0.get_or_init(|| Rc::new(all.clone()));
        keys.address(group, address)
    }

    /// Uses the same table as `core`.
    pub(crate) fn share(&self, core: &CoreClientCounts) {
        if let Some(table) = core.0.get() {
            self.0.get_or_init(|| Rc::clone(table));
        }
    }

    pub(crate) fn requests(&self, client: Key) -> u32 {
        self.0.get().map_or(0, |table| table.requests(client))
    }

    /// Counts a request until it [leaves](CoreClientCounts::leave).
    pub(crate) fn enter(&self, client: Key) -> Option<Place> {
        self.0.get()?.count_one(client)
    }

    /// Uncounts a request.
    pub(crate) fn leave(&self, place: Place) {
        if let Some(table) = self.0.get() {
            table.leave(place);
        }
    }
}
