//! One user: waits for a journey's due time, makes its steps, and starts again.

mod evaluation;
mod exchange;
pub(crate) mod link;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::Instant;

use crate::connection::core_run::CoreRun;
use crate::connection::core_run::journey_recorder::Counted;
use crate::connection::user::link::Link;
use crate::connection::work::Work;
use crate::journey::steps::{Connection, ConnectionLifetime, Journeys, PauseRange, Step};
use crate::limits::{BACK_OFF_MAX, BACK_OFF_MIN};
use crate::pace::target::Target;
use crate::plan::Plan;
use crate::protocol::http1::Bodies;
use crate::record::journeys::{End, StepRecord};
use crate::requests::cookies::CookieJar;
use crate::requests::mix::Mix;
use crate::requests::template::Values;

/// Data shared by the users of a core.
pub(crate) struct Users {
    journeys: Arc<Journeys>,
    mix: Arc<Mix>,
    bodies: Bodies,
    target: Target,
    seed: u64,
}

impl Users {
    /// Returns `None` if `plan` has no journeys.
    pub(crate) fn of(plan: &Plan) -> Option<Rc<Users>> {
        let (journeys, mix) = plan.journeys.as_ref()?;
        Some(Rc::new(Users {
            journeys: Arc::clone(journeys),
            mix: Arc::clone(mix),
            bodies: Bodies::default(),
            target: plan.options.target.clone(),
            seed: plan.options.seed,
        }))
    }
}

/// Makes journeys as user `index` of the core, number `number` of the run, until none is left.
pub(crate) async fn run(users: Rc<Users>, core_run: Rc<CoreRun>, index: u32, number: u64) {
    let now = core_run.core.now_exact();
    let mut user = User {
        work: Work::new(index, now),
        link: None,
        number,
        readiness: Readiness::None,
        jar: CookieJar::default(),
        taken: Vec::new(),
        has_response: false,
        users,
        core_run: Rc::clone(&core_run),
    };
    user.run_setup_before_start().await;
    let admitted = core_run.work_of(index, number).await;
    (user.work.start, user.work.ready) = (admitted.start, admitted.ready);
    let mut back_off = BACK_OFF_MIN;
    let mut now = core_run.core.now_exact();
    while core_run.supply.take(&mut user.work, &mut now, 0).await {
        user.has_response = false;
        user.run_journey().await;
        core_run.supply.completed(&mut user.work, 1);
        if user.has_response {
            back_off = BACK_OFF_MIN;
        } else {
            // Without any response, the pause avoids flooding the target.
            core_run.core.sleep(back_off).await;
            back_off = (back_off * 2).min(BACK_OFF_MAX);
        }
        now = core_run.core.now_exact();
    }
    user.disconnect();
    core_run.finished(&mut user.work);
}

struct User {
    users: Rc<Users>,
    core_run: Rc<CoreRun>,
    work: Work,
    link: Option<Link>,
    number: u64,
    readiness: Readiness,
    /// Cookies received on this journey and before.
    jar: CookieJar,
    /// Extracted values by index; empty if not extracted yet.
    taken: Vec<Vec<u8>>,
    /// Whether a response was received on this journey.
    has_response: bool,
}

/// Whether the user's setup was done, and its result.
enum Readiness {
    None,
    Ready { jar: CookieJar, taken: Vec<Vec<u8>> },
}

/// Position of a step.
#[derive(Clone, Copy)]
enum StepPosition {
    Setup(usize),
    /// Index of the journey, and of the step in it.
    Journey(usize, usize),
}

impl StepPosition {
    fn counted(self) -> Counted {
        match self {
            StepPosition::Setup(_) => Counted::No,
            StepPosition::Journey(..) => Counted::Yes,
        }
    }
}

/// Why a user does not continue. A failure has been counted.
enum StopReason {
    Failed,
    Over,
}

impl User {
    /// Runs the setup before the start of the run, if requested.
    async fn run_setup_before_start(&mut self) {
        let core_run = Rc::clone(&self.core_run);
        let record = &core_run.recorder.record;
        if let Some(stream) = core_run.dialer.connect_ahead(record).await {
            self.work.connected();
            self.work.set_kept(true);
            self.link = Some(Link::new(stream));
            // After a failure the setup is repeated when the user starts.
            let _ = self.set_up().await;
        }
        core_run.dialer.ready();
    }

    async fn set_up(&mut self) -> Result<(), StopReason> {
        let users = Rc::clone(&self.users);
        (self.jar, self.taken) = (
            CookieJar::default(),
            vec![Vec::new(); users.journeys.values.len()],
        );
        let values = users.mix.values(self.number);
        let mut at = self.core_run.core.now_exact();
        if !users.journeys.setup.is_empty() {
            self.core_run.journeys(|record| record.setup.begun += 1);
        }
        for (index, step) in users.journeys.setup.iter().enumerate() {
            let due = at + pause(step.think, &values);
            match self
                .step(StepPosition::Setup(index), step, due, &values)
                .await
            {
                Ok(end) => at = end,
                Err(halt) => {
                    self.core_run
                        .journeys(|record| record.setup.ended(End::Failed));
                    return Err(halt);
                }
            }
        }
        if !users.journeys.setup.is_empty() {
            let done = End::Completed(None);
            self.core_run.journeys(|record| record.setup.ended(done));
        }
        self.readiness = Readiness::Ready {
            jar: self.jar.clone(),
            taken: self.taken.clone(),
        };
        Ok(())
    }

    /// Makes the journey of this turn.
    async fn run_journey(&mut self) {
        let users = Rc::clone(&self.users);
        let (due, number) = (self.work.start, self.work.number);
        let place = users.journeys.choose(users.seed, number);
        self.core_run
            .journeys(|record| record.journeys[place].begun += 1);
        let end = self.walk_to_end(&users, place, due).await;
        if users.journeys.lifetime == ConnectionLifetime::PerJourney {
            self.disconnect();
        }
        let end = match end {
            Ok(at) => End::Completed(self.measured(due, at)),
            Err(StopReason::Failed) => End::Failed,
            Err(StopReason::Over) => return,
        };
        self.core_run
            .journeys(|record| record.journeys[place].ended(end));
    }

    async fn walk_to_end(
        &mut self,
        users: &Users,
        place: usize,
        due: Instant,
    ) -> Result<Instant, StopReason> {
        if matches!(self.readiness, Readiness::None) {
            self.set_up().await?;
        }
        if let Readiness::Ready { jar, taken } = &self.readiness {
            self.jar.clone_from(jar);
            self.taken.clone_from(taken);
        }
        let values = users.mix.values(self.work.number);
        let steps = &users.journeys.journeys[place].steps;
        let mut at = due;
        for (index, step) in steps.iter().enumerate() {
            let due = at + pause(step.think, &values);
            at = self
                .step(StepPosition::Journey(place, index), step, due, &values)
                .await?;
        }
        Ok(at)
    }

    /// Makes one step at `due`. Returns when its response arrived.
    async fn step(
        &mut self,
        of: StepPosition,
        step: &Step,
        due: Instant,
        values: &Values<'_>,
    ) -> Result<Instant, StopReason> {
        let mut now = self.core_run.core.now_exact();
        if due > now {
            self.core_run.core.sleep_until(due).await;
            now = self.core_run.core.now_exact();
        }
        self.check_over()?;
        if !matches!(of, StepPosition::Journey(_, 0)) {
            self.work.own_delay = now.nanoseconds_since(due);
        }
        self.core_run.step_begins(&mut self.work, due, now);
        if step.connection == Connection::New {
            self.disconnect();
        }
        self.count(of, |record| record.begun += 1);
        let end = match self.ask(of, step, values).await {
            Ok(arrived) => {
                let judged = self.judge(of, step, arrived.response);
                judged.map(|()| arrived.at)
            }
            Err(halt) => Err(halt),
        };
        match &end {
            Ok(at) => {
                let done = match of.counted() {
                    Counted::Yes => End::Completed(self.measured(due, *at)),
                    Counted::No => End::Completed(None),
                };
                self.count(of, |record| record.ended(done));
            }
            Err(StopReason::Failed) => self.count(of, |record| record.ended(End::Failed)),
            Err(StopReason::Over) => {}
        }
        end
    }

    fn check_over(&self) -> Result<(), StopReason> {
        match self.core_run.is_over() {
            true => Err(StopReason::Over),
            false => Ok(()),
        }
    }

    fn count(&self, of: StepPosition, change: impl FnOnce(&mut StepRecord)) {
        self.core_run.journeys(|record| {
            change(match of {
                StepPosition::Setup(step) => &mut record.setup.steps[step],
                StepPosition::Journey(journey, step) => &mut record.journeys[journey].steps[step],
            });
        });
    }

    /// Returns the nanoseconds from `due` to `at`, if they are measured.
    fn measured(&self, due: Instant, at: Instant) -> Option<u64> {
        let is_measured = due >= self.core_run.recorder.measured_from();
        is_measured.then(|| at.nanoseconds_since(due))
    }
}

fn pause(think: PauseRange, values: &Values<'_>) -> Duration {
    let PauseRange { shortest, longest } = think;
    if shortest == longest {
        return shortest;
    }
    shortest + (longest - shortest).mul_f64(values.random.unit())
}
