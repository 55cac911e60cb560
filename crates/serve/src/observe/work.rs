//! The kinds of work that a core of a server tells apart, and what each has cost it.

use std::time::Duration;

use onrush_engine::clock::{ThreadTime, thread_time};
use onrush_engine::{Core, Profile, Work, WorkFigures};

/// New connections are taken from their listeners.
pub(crate) const ACCEPT: Work = Work::task(0);
/// A connection says by the PROXY protocol who it is from.
pub(crate) const INTRODUCTION: Work = Work::task(1);
/// TLS handshakes of clients.
pub(crate) const HANDSHAKE: Work = Work::task(2);
/// Requests of clients, up to where they go to a server, and responses that are made here.
pub(crate) const CLIENT: Work = Work::task(3);
/// The way of a request to its server and of the response back to the client.
pub(crate) const SERVER: Work = Work::task(4);
/// Tunnels.
pub(crate) const TUNNEL: Work = Work::task(5);
/// Active checks of servers.
pub(crate) const CHECK: Work = Work::task(6);
/// Copies of requests for servers whose responses nobody reads.
pub(crate) const MIRROR: Work = Work::task(7);
/// What looks after groups, files and limits now and then; it takes over names that have been resolved, too.
pub(crate) const UPKEEP: Work = Work::task(8);
/// What the admin interface asks for that takes more than one turn.
pub(crate) const INSPECTION: Work = Work::task(9);
/// Datagrams of echoes and sinks.
pub(crate) const DATAGRAMS: Work = Work::task(10);

/// All of them with a name, those that the core does itself first.
const NAMES: [(Work, &str); 17] = [
    (Work::WAIT, "wait"),
    (Work::EVENTS, "events"),
    (Work::TIMERS, "timers"),
    (Work::MAIL, "mail"),
    (Work::SENDS, "sends"),
    (ACCEPT, "accept"),
    (INTRODUCTION, "PROXY header"),
    (HANDSHAKE, "TLS handshake"),
    (CLIENT, "client"),
    (SERVER, "server"),
    (TUNNEL, "tunnel"),
    (CHECK, "health check"),
    (MIRROR, "mirror"),
    (UPKEEP, "upkeep"),
    (INSPECTION, "inspection"),
    (DATAGRAMS, "datagrams"),
    (Work::TASK, "other"),
];

/// What a core has spent its time on.
#[derive(Clone, Debug)]
pub struct ProfileView {
    /// Its number.
    pub core: usize,
    /// What it has had of its CPU.
    pub time: ThreadTime,
    /// How long it had something to do, where it busy-polls and the time on its CPU does not say so.
    pub had_work: Option<Duration>,
    /// Each kind of work, by name.
    pub works: Vec<(&'static str, WorkFigures)>,
}

/// The name under which the looks at the kernel stand.
pub const WAIT_NAME: &str = NAMES[0].1;

impl ProfileView {
    /// What the calling thread, which is that of `core`, knows.
    pub(crate) fn of(core: &Core) -> ProfileView {
        let profile: Profile = core.profile();
        let figures = |&(work, name): &(Work, &'static str)| (name, profile[work.index()]);
        ProfileView {
            core: core.id(),
            // Before the time that it is part of.
            had_work: had_work(core),
            time: thread_time(),
            works: NAMES.iter().map(figures).collect(),
        }
    }

    /// How long all of it took: the time since the core began to run.
    pub fn elapsed(&self) -> Duration {
        self.works.iter().map(|(_, figures)| figures.time).sum()
    }

    /// How long it did not wait for the kernel.
    pub fn worked(&self) -> Duration {
        let works = self.works.iter().filter(|(name, _)| *name != WAIT_NAME);
        works.map(|(_, figures)| figures.time).sum()
    }
}

/// How long a core that busy-polls had something to do.
pub(crate) fn had_work(core: &Core) -> Option<Duration> {
    core.busy_polls().then(|| core.worked())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_kinds_are_the_same() {
        for (at, (work, name)) in NAMES.iter().enumerate() {
            for (other, its_name) in &NAMES[..at] {
                assert!(work != other && name != its_name, "{name}, {its_name}");
            }
        }
    }
}
