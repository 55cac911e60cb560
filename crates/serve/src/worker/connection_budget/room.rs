//! Lack of descriptors for further clients: waiting clients are not refused, descriptors are freed, and start and end
//! are logged.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use onrush_engine::{Error, Kind};

use crate::limits::{IDLE_CLOSED_PER_CHECK, SHORTAGE_CHECK_INTERVAL, SHORTAGE_END};
use crate::observe::work::UPKEEP;
use crate::worker::Worker;
use crate::worker::descriptor_shares::Shares;

/// Whether `error` means that connections cannot be accepted for lack of descriptors.
pub(crate) fn is_resource_exhaustion(error: &Error) -> bool {
    error.kind == Kind::Full || error.is_out_of_descriptors()
}

/// Handles an accept that failed with `error`: frees descriptors, then waits briefly.
pub(crate) async fn wait_for_room(worker: &Rc<Worker>, error: Error) {
    let crowd = &worker.connection_budget;
    crowd.note_waiting(worker.core.now());
    if !crowd.is_short.swap(true, Ordering::Relaxed) {
        tell(worker, error);
        worker.spawn_background(UPKEEP, tell_of_the_end(Rc::clone(worker)));
    }
    worker.core.end_idle(IDLE_CLOSED_PER_CHECK);
    if error.kind != Kind::Full {
        // The limit on open files was reached before this budget: something uses more descriptors than its share.
        worker.close_idle();
    }
    worker.core.sleep(SHORTAGE_CHECK_INTERVAL).await;
}

/// Closes idle connections of this core while other cores lack descriptors, until it stops.
pub(crate) async fn free_for_others(worker: Rc<Worker>) {
    while !worker.core.is_stopping() {
        worker.core.sleep_unless_stopping(SHORTAGE_END).await;
        if worker.connection_budget.is_short() {
            worker.core.end_idle(IDLE_CLOSED_PER_CHECK);
        }
    }
}

fn tell(worker: &Worker, error: Error) {
    let Shares {
        limit, per_client, ..
    } = worker.connection_budget.shares();
    let held = worker.connection_budget.allowance.held();
    let why = match (error.kind, limit) {
        (Kind::Full, Some(limit)) => {
            let each = match per_client {
                1 => String::new(),
                _ => format!(" and each may need {per_client}"),
            };
            format!("the limit of {limit} open files allows no more{each}")
        }
        _ => error.to_string(),
    };
    tracing::warn!(
        event = "clients_wait",
        "accepting is paused: {held} clients are connected, {why}; until file descriptors are free, idle connections are closed, and others close after their response; raise the limit on open files (ulimit -n)"
    );
}

/// Logs when no client has had to wait for a while.
async fn tell_of_the_end(worker: Rc<Worker>) {
    while worker.connection_budget.has_waited(worker.core.now()) {
        worker.core.sleep_unless_stopping(SHORTAGE_END).await;
        if worker.core.is_stopping() {
            return;
        }
    }
    worker
        .connection_budget
        .is_short
        .store(false, Ordering::Relaxed);
    tracing::info!(event = "clients_accepted", "clients are accepted again");
}
