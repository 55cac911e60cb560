//! The thread that checks passwords: what takes a tenth of a second must not hold up a core.
//!
//! One for the server, whatever it has of CPUs: whoever tries passwords gets no more of the machine than that.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, fence};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::{io, thread};

use onrush_engine::Core;
use onrush_http::basic_auth::Credentials;

use super::users::Users;
use crate::limits::{PASSWORD_LOOK, PASSWORDS_WAITING_MAX};

/// A handle of the thread. It ends with the last of them.
#[derive(Clone, Debug)]
pub(crate) struct Verifier {
    jobs: SyncSender<Job>,
}

struct Job {
    users: Arc<Users>,
    user: Box<[u8]>,
    password: Box<[u8]>,
    slot: Slot,
}

/// Where the outcome is put: [`WAITING`] until then.
type Slot = Arc<AtomicU8>;

const WAITING: u8 = 0;
const RIGHT: u8 = 1;
const WRONG: u8 = 2;

/// What came of a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Right,
    Wrong,
    /// It was not checked: the thread has gone.
    Unknown,
}

/// A password that is being checked.
#[derive(Debug)]
pub(crate) struct Pending(Slot);

impl Verifier {
    /// # Errors
    /// When the system has no thread to give.
    pub(crate) fn start() -> io::Result<Self> {
        let (jobs, queue) = sync_channel(PASSWORDS_WAITING_MAX);
        thread::Builder::new()
            .name("onrush-login".into())
            .spawn(move || run(queue.into_iter()))?;
        Ok(Self { jobs })
    }

    /// Has a password checked; `None` when too many wait for that.
    pub(super) fn submit(
        &self,
        users: &Arc<Users>,
        credentials: Credentials<'_>,
    ) -> Option<Pending> {
        let slot = Slot::new(AtomicU8::new(WAITING));
        let job = Job {
            users: Arc::clone(users),
            user: credentials.user.into(),
            password: credentials.password.into(),
            slot: Arc::clone(&slot),
        };
        self.jobs.try_send(job).ok().map(|()| Pending(slot))
    }
}

fn run(queue: impl Iterator<Item = Job>) {
    for job in queue {
        // Whoever asked may have gone meanwhile.
        if Arc::strong_count(&job.slot) > 1 {
            let outcome = match job.users.verify(&job.user, &job.password) {
                true => RIGHT,
                false => WRONG,
            };
            job.slot.store(outcome, Release);
        }
    }
}

impl Pending {
    /// What came of it. Dropping this gives it up.
    pub(crate) async fn outcome(&self, core: &Core) -> Outcome {
        loop {
            let is_dropped = Arc::strong_count(&self.0) == 1;
            // What was stored before the job was dropped is seen below.
            fence(Acquire);
            match self.0.load(Relaxed) {
                RIGHT => return Outcome::Right,
                WRONG => return Outcome::Wrong,
                _ if is_dropped => return Outcome::Unknown,
                _ => core.sleep(PASSWORD_LOOK).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::plan::BasicAuth;

    fn users() -> Arc<Users> {
        let hash = "$5$rounds=1000$0123456789abcdef$hMqyugAVjDQo776SPDVVKvzB/HICJXIdagCAitBHeU8";
        let plan = BasicAuth {
            realm: "r".into(),
            users: vec![("ali".into(), hash.into())],
            file: None,
        };
        Arc::new(Users::read(&plan, &mut Vec::new()).expect("a user"))
    }

    const ALI: Credentials<'_> = Credentials {
        user: b"ali",
        password: b"open sesame",
    };

    #[test]
    fn no_more_passwords_wait_than_may() {
        // Nobody takes them.
        let (jobs, queue) = sync_channel(PASSWORDS_WAITING_MAX);
        let (verifier, users) = (Verifier { jobs }, users());
        let waiting: Vec<_> = (0..PASSWORDS_WAITING_MAX)
            .map(|_| verifier.submit(&users, ALI).expect("there is room"))
            .collect();
        assert!(verifier.submit(&users, ALI).is_none());
        drop(queue);
        drop(waiting);
    }

    #[test]
    fn passwords_are_checked_and_a_thread_that_has_gone_checks_none() {
        let (jobs, queue) = sync_channel(3);
        let (verifier, users) = (Verifier { jobs }, users());
        let wrong = Credentials {
            password: b"close sesame",
            ..ALI
        };
        let pending = [ALI, wrong, ALI].map(|shown| verifier.submit(&users, shown).expect("room"));
        run(queue.iter().take(2));
        drop(queue);
        let core = Core::simulated(onrush_engine::Simulation::with_seed(1));
        let on_core = core.clone();
        core.spawn(async move {
            for (pending, outcome) in
                pending
                    .iter()
                    .zip([Outcome::Right, Outcome::Wrong, Outcome::Unknown])
            {
                assert_eq!(pending.outcome(&on_core).await, outcome);
            }
        });
        assert_eq!(core.run(), 0);
    }
}
