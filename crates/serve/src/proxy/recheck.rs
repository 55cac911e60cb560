//! How servers that were taken out come back: the core that took one out connects to it, so that no request has to find
//! out that it is still dead.

use std::rc::Rc;
use std::time::Duration;

use onrush_config::plan::{EjectOn, Reuse};
use onrush_engine::Error;
use onrush_http::proxy_protocol::Origin;
use onrush_tls::Transport;

use super::absence::Cause;
use super::group::Group;
use super::roster::Out;
use crate::limits::RECHECK_TIMEOUT;
use crate::worker::Worker;

/// Sees to it that a server which has just been taken out comes back; ends when it has, when somebody else has brought
/// it back, and when the core stops.
pub(crate) async fn bring_back(group: Rc<Group>, server: u32, out: Out, worker: Rc<Worker>) {
    let Out { term, cause, wait } = out;
    let (core, roster) = (&worker.core, group.roster());
    let mut wait = Some((cause, wait));
    if cause == Cause::Unreliable && group.ejects_on() == Some(EjectOn::Connections) {
        // A server that was killed loses its connections first, and refuses new ones then.
        core.sleep_unless_stopping(Duration::ZERO).await;
        if !core.is_stopping() && connect(&group, server, &worker).await.is_err() {
            wait = group.stays_out(server, term);
        }
    }
    while let Some((cause, duration)) = wait {
        core.sleep_unless_stopping(duration).await;
        // Of a server that no configuration has any more nobody wants to know.
        let is_forgotten = group.retirement.has_begun() && roster.is_alone(server);
        if core.is_stopping() || !roster.is_out(server, term) || is_forgotten {
            return;
        }
        wait = match (connect(&group, server, &worker).await, cause) {
            (Err(_), _) => group.stays_out(server, term),
            (Ok(transport), Cause::Unreachable) => {
                let now = core.now_exact();
                if roster.bring_back(server, Some(term), now) {
                    group.tell_return(server, "it accepts connections");
                    if group.plan.reuse != Reuse::Never {
                        group.server(server).pool.put(transport, now);
                    }
                }
                None
            }
            (Ok(_), Cause::Unreliable) => {
                roster.put_on_trial(server, term, core.now_exact());
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
