//! The thread that checks passwords: a check takes about 0.1 s and must not block a core.
//!
//! One thread per server, however many CPUs there are, bounds the CPU time that password guessing can use.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::{io, thread};

use onrush_engine::{Core, Promise, Reply};
use onrush_http::basic_auth::Credentials;

use super::users::Users;
use crate::limits::PASSWORDS_WAITING_MAX;

/// Handle of the thread, which ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Verifier {
    jobs: SyncSender<Job>,
}

struct Job {
    users: Arc<Users>,
    user: Box<[u8]>,
    password: Box<[u8]>,
    outcome: Promise<Outcome>,
}

/// Outcome of a password check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Right,
    Wrong,
    /// Not checked: the thread has ended.
    Unknown,
}

/// A running password check. Dropping it cancels the check.
#[derive(Debug)]
pub(crate) struct Pending(Reply<Outcome>);

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

    /// Queues a password check for a task of `core`; `None` if the queue is full.
    pub(super) fn submit(
        &self,
        core: &Core,
        users: &Arc<Users>,
        credentials: Credentials<'_>,
    ) -> Option<Pending> {
        let (outcome, reply) = core.promise();
        let job = Job {
            users: Arc::clone(users),
            user: credentials.user.into(),
            password: credentials.password.into(),
            outcome,
        };
        self.jobs.try_send(job).ok().map(|()| Pending(reply))
    }
}

fn run(queue: impl Iterator<Item = Job>) {
    for job in queue {
        // The request may have been dropped meanwhile.
        if !job.outcome.is_wanted() {
            continue;
        }
        job.outcome
            .fulfil(match job.users.verify(&job.user, &job.password) {
                true => Outcome::Right,
                false => Outcome::Wrong,
            });
    }
}

impl Pending {
    pub(crate) async fn outcome(&mut self) -> Outcome {
        (&mut self.0).await.unwrap_or(Outcome::Unknown)
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

    fn simulated() -> Core {
        Core::simulated(onrush_engine::Simulation::with_seed(1))
    }

    #[test]
    fn password_check_queue_is_bounded() {
        // No thread reads the queue.
        let (jobs, queue) = sync_channel(PASSWORDS_WAITING_MAX);
        let (verifier, users, core) = (Verifier { jobs }, users(), simulated());
        let submit = || verifier.submit(&core, &users, ALI);
        let waiting: Vec<_> = (0..PASSWORDS_WAITING_MAX)
            .map(|_| submit().expect("there is room"))
            .collect();
        assert!(submit().is_none());
        drop(queue);
        drop(waiting);
    }

    #[test]
    fn password_check_fails_if_thread_has_exited() {
        let (jobs, queue) = sync_channel(3);
        let (verifier, users, core) = (Verifier { jobs }, users(), simulated());
        let wrong = Credentials {
            password: b"close sesame",
            ..ALI
        };
        let mut pending =
            [ALI, wrong, ALI].map(|shown| verifier.submit(&core, &users, shown).expect("room"));
        run(queue.iter().take(2));
        drop(queue);
        core.spawn(async move {
            for (pending, outcome) in
                pending
                    .iter_mut()
                    .zip([Outcome::Right, Outcome::Wrong, Outcome::Unknown])
            {
                assert_eq!(pending.outcome().await, outcome);
            }
        });
        assert_eq!(core.run(), 0);
    }
}
