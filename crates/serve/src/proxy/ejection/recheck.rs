//! Return of ejected servers: the core that took a server out connects to it, so that no request is used as a probe.

use std::rc::Rc;
use std::time::Duration;

use onrush_config::plan::{EjectOn, Reuse};
use onrush_engine::Error;
use onrush_http::proxy_protocol::Origin;
use onrush_tls::Transport;

use super::recheck_delay::Cause;
use super::transitions::EjectionStart;
use crate::limits::RECHECK_TIMEOUT;
use crate::proxy::group::{Event, Group};
use crate::worker::Worker;

/// Brings an ejected server back. Ends when the server is back or on trial, or when the core stops.
pub(crate) async fn bring_back(
    group: Rc<Group>,
    server: u32,
    out: EjectionStart,
    worker: Rc<Worker>,
) {
    let EjectionStart { term, cause, wait } = out;
    let (core, endpoints) = (&worker.core, group.endpoints());
    let Some(ejection) = group.ejection() else {
        return;
    };
    // After a failed connection the server counts as unreachable, even if another rule took it out.
    let stays_out = || {
        let wait = endpoints.extend_absence(server, term, &ejection.terms)?;
        Some((Cause::Unreachable, wait))
    };
    let endpoint = &endpoints.all()[server as usize];
    let mut wait = Some((cause, wait));
    if cause == Cause::Unreliable && ejection.on() == EjectOn::Connections {
        // A killed server first loses its connections and only a moment later refuses new ones.
        core.sleep_unless_stopping(Duration::ZERO).await;
        if !core.is_stopping() && connect(&group, server, &worker).await.is_err() {
            wait = stays_out();
        }
    }
    while let Some((cause, duration)) = wait {
        core.sleep_unless_stopping(duration).await;
        // No configuration has the server any more.
        let is_forgotten = group.retirement.has_begun() && endpoint.is_unshared();
        if core.is_stopping() || !endpoints.is_out(server, term) || is_forgotten {
            return;
        }
        wait = match (connect(&group, server, &worker).await, cause) {
            (Err(_), _) => stays_out(),
            (Ok(transport), Cause::Unreachable) => {
                let now = core.now_exact();
                if endpoints.bring_back(server, Some(term), now) {
                    group.log_event(server, Event::Back, &"is back: it accepts connections");
                    if group.plan.reuse != Reuse::Never {
                        group.server(server).pool.put(transport, now);
                    }
                }
                None
            }
            (Ok(_), Cause::Unreliable) => {
                endpoints.put_on_trial(server, term, core.now_exact());
                None
            }
        };
    }
}

async fn connect(group: &Group, server: u32, worker: &Worker) -> Result<Transport, Error> {
    let until = worker.core.now_exact() + RECHECK_TIMEOUT;
    let server = group.server(server);
    group.connect(server, &Origin::Local, worker, until).await
}
