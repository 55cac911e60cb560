//! What one core knows and owns: its prepared routes, its pools, its date, its counters.

use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{self, Action, FieldEdits, Mirror, Piece, Timeouts, Variable};
use onrush_engine::random::Random;
use onrush_engine::{Core, Error, Instant, Root};
use onrush_http::date::{self, DATE_BYTES};
use onrush_http::header_is;

use crate::access::{Access, Ledger};
use crate::client::Trust;
use crate::compress::{self, Offer};
use crate::crowd::Crowd;
use crate::edits::AnswerEdits;
use crate::limits::{DATE_LAG, HELD_UP_SHARE};
use crate::log::Log;
use crate::meter::Meter;
use crate::passage::SpareKept;
use crate::proxy::Group;
use crate::proxy::kept::Kept;
use crate::proxy::rewrite::Rules;
use crate::proxy::split::Split;
use crate::respond::file::Files;
use crate::respond::fixed::Fixed;
use crate::respond::redirect::Redirect;
use crate::route::{Route, Routes};
use crate::server::Shared;

/// How a route treats its requests, prepared for one core.
pub(crate) struct Target {
    /// Who is let in, unless everybody is.
    pub(crate) access: Option<Box<Access>>,
    pub(crate) answer: Answer,
    /// Another group that gets copies.
    pub(crate) mirror: Option<Mirror>,
    /// What changes in requests that are forwarded.
    pub(crate) rules: Rules,
    /// What changes in answers.
    pub(crate) answer_edits: Option<AnswerEdits>,
    /// Whether and how answers are encoded.
    pub(crate) offer: Option<Rc<Offer>>,
    /// Whether more than its way has to be remembered of each request until it is answered.
    pub(crate) keeps: bool,
}

/// How a route's requests are answered.
pub(crate) enum Answer {
    Fixed(Fixed),
    Files(Files),
    Synthetic,
    Redirect(Redirect),
    Forward(Split),
}

pub(crate) struct Worker {
    pub(crate) core: Core,
    pub(crate) routes: Routes<Target>,
    pub(crate) groups: Vec<Rc<Group>>,
    /// The groups' names, in their order.
    pub(crate) group_names: Vec<String>,
    pub(crate) trust: Trust,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: onrush_http::Limits,
    /// For answers that are encoded as they pass.
    pub(crate) encoders: Rc<compress::Pool>,
    pub(crate) meter: Meter,
    pub(crate) log: Log,
    /// Set once the core was asked to stop: answers then end their connections.
    pub(crate) stopping: Cell<bool>,
    /// When that was.
    pub(crate) stop_began: Cell<Instant>,
    /// Tasks of [`Worker::spawn_aside`] that have not ended.
    aside: Cell<usize>,
    /// Whether there is room for all clients.
    pub(crate) crowd: Arc<Crowd>,
    /// Bounds idle connections to servers.
    pub(crate) kept: Rc<Kept>,
    pub(crate) spare_kept: SpareKept,
    /// Copies of requests that are under way.
    pub(crate) mirrored: Cell<usize>,
    pub(crate) chance: Random,
    myself: Weak<Worker>,
    date: Cell<[u8; DATE_BYTES]>,
    date_second: Cell<u64>,
    date_until: Cell<Instant>,
}

impl Worker {
    /// Prepares `plan` for one core.
    ///
    /// # Errors
    /// When the directory of a route cannot be opened, with its path.
    pub(crate) fn new(
        core: Core,
        plan: &Plan,
        shared: &Shared,
    ) -> Result<Rc<Self>, (String, Error)> {
        let mut routes = Vec::new();
        for (index, route) in plan.routes.iter().enumerate() {
            routes.push(Route {
                when: route.when.clone(),
                target: Target::new(index, route, plan, &shared.ledger)?,
            });
        }
        let seed = core.now_exact().nanoseconds() ^ core.id() as u64;
        let groups = plan.upstreams.iter().zip(&shared.rosters);
        let groups = groups.zip(&shared.encryption.connectors);
        let groups = groups.map(|((upstream, roster), connector)| {
            Rc::new(Group::new(upstream, roster, connector, seed, core.now()))
        });
        let groups = groups.collect();
        let worker = Rc::new_cyclic(|myself| Self {
            myself: Weak::clone(myself),
            routes: Routes::new(routes),
            group_names: plan
                .upstreams
                .iter()
                .map(|group| group.name.clone())
                .collect(),
            trust: Trust::new(&plan.forwarded),
            spare_kept: SpareKept::default(),
            mirrored: Cell::new(0),
            chance: Random::stream(seed, 0),
            groups,
            timeouts: plan.timeouts,
            limits: onrush_http::Limits::DEFAULT,
            encoders: Rc::default(),
            meter: Meter::default(),
            log: Log::default(),
            stopping: Cell::new(false),
            stop_began: Cell::new(core.now()),
            aside: Cell::new(0),
            crowd: Arc::clone(&shared.crowd),
            kept: Kept::new(shared.crowd.shares.kept()),
            date: Cell::new(date::format(core.unix_seconds())),
            date_second: Cell::new(core.unix_seconds()),
            date_until: Cell::new(core.now()),
            core,
        });
        worker.share_descriptors();
        Ok(worker)
    }

    /// Tells those who keep connections and files how many they may.
    fn share_descriptors(&self) {
        for group in &self.groups {
            group.keep_within(&self.kept);
        }
        let kept = self.crowd.shares.kept();
        self.files().for_each(|files| files.keep_open(kept));
    }

    fn files(&self) -> impl Iterator<Item = &Files> {
        let answers = self.routes.iter().map(|route| &route.target.answer);
        answers.filter_map(|answer| match answer {
            Answer::Files(files) => Some(files),
            _ => None,
        })
    }

    /// Closes what is kept while nobody uses it, connections to servers and files; whether there was any.
    pub(crate) fn give_up_kept(&self) -> bool {
        let connections: usize = self.groups.iter().map(|group| group.give_up_idle()).sum();
        let files = self.files().filter(|files| files.give_up_open()).count();
        connections + files > 0
    }

    /// Whether this core was held up for a good part of `patience`, which has just passed: who did not answer within it had
    /// no time to.
    pub(crate) fn was_held_up(&self, patience: Duration) -> bool {
        let begin = self.core.now().before(patience);
        self.core.stalled_since(begin) >= patience / HELD_UP_SHARE
    }

    /// A handle of its own, for tasks that outlive the request which needs them.
    pub(crate) fn myself(&self) -> Rc<Self> {
        self.myself.upgrade().expect("whoever asks has one")
    }

    /// Gives a task to the core that is no client's: no client is cut off when the core ends before it.
    pub(crate) fn spawn_aside(&self, task: impl Future<Output = ()> + 'static) {
        let worker = self.myself();
        self.aside.set(self.aside.get() + 1);
        self.core.spawn(async move {
            task.await;
            worker.aside.set(worker.aside.get() - 1);
        });
    }

    /// How many of the core's tasks that had not ended when it did were clients' connections.
    pub(crate) fn clients_among(&self, tasks: usize) -> usize {
        tasks - self.aside.get()
    }

    /// The value of `Date` for an answer made now.
    pub(crate) fn date(&self) -> [u8; DATE_BYTES] {
        self.date_versioned().1
    }

    /// The date, and a number that changes with it.
    #[inline]
    pub(crate) fn date_versioned(&self) -> (u64, [u8; DATE_BYTES]) {
        let now = self.core.now();
        if now >= self.date_until.get() {
            self.date_until.set(now + DATE_LAG);
            let second = self.core.unix_seconds();
            if self.date_second.replace(second) != second {
                self.date.set(date::format(second));
            }
        }
        (self.date_second.get(), self.date.get())
    }
}

impl Target {
    fn new(
        index: usize,
        route: &plan::Route,
        plan: &Plan,
        ledger: &Ledger,
    ) -> Result<Self, (String, Error)> {
        let rules = Rules::new(route, &plan.forwarded);
        let answer_edits = AnswerEdits::new(&route.edits);
        let is_varying = answer_edits.as_ref().is_some_and(AnswerEdits::are_varying);
        let redirects_by_id = matches!(
            &route.action,
            Action::Redirect { location, .. }
                if location.0.contains(&Piece::Variable(Variable::RequestId))
        );
        let edits = &route.edits.response;
        let offer = route
            .compress
            .as_ref()
            .and_then(|compress| Offer::new(compress, edits))
            .map(Rc::new);
        Ok(Self {
            access: Access::new(&route.access, index, ledger),
            answer: Answer::new(&route.action, edits, answer_edits.as_ref(), offer.as_ref())?,
            mirror: match route.action {
                Action::Forward { mirror, .. } => mirror,
                _ => None,
            },
            keeps: is_varying || rules.needs_request_id() || redirects_by_id,
            rules,
            answer_edits,
            offer,
        })
    }
}

impl Answer {
    fn new(
        action: &Action,
        edits: &FieldEdits,
        answer_edits: Option<&AnswerEdits>,
        offer: Option<&Rc<Offer>>,
    ) -> Result<Self, (String, Error)> {
        Ok(match action {
            Action::Respond {
                status,
                body,
                headers,
            } => Answer::Fixed(Fixed::new(*status, body, headers, answer_edits, offer)),
            Action::Files {
                root,
                index,
                hidden,
                precompressed,
            } => {
                let root = Root::open(root).map_err(|error| (root.display().to_string(), error))?;
                // What is said to be encoded is what the files are; their siblings would be encoded twice.
                let is_coding = |(name, _): &(String, _)| header_is(name, "content-encoding");
                let siblings = match edits.set.iter().chain(&edits.add).any(is_coding) {
                    true => &[][..],
                    false => precompressed,
                };
                Answer::Files(Files::new(root, index, *hidden, siblings, offer.cloned()))
            }
            Action::Synthetic => Answer::Synthetic,
            Action::Redirect { status, location } => {
                Answer::Redirect(Redirect::new(*status, location))
            }
            Action::Forward { split, mirror: _ } => Answer::Forward(Split::new(split)),
        })
    }
}
