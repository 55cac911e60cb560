//! Tests of paces and of runs that end by time.

use std::cell::RefCell;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use onrush_engine::{Address, Claim, Core, Listener, Simulation};

use super::{OK, SEEDS, Script, Then, listen, play, play_simulated, reply, seeds};
use crate::pace::Pace;
use crate::pace::start_barrier::StartBarrier;
use crate::plan::tests::options;
use crate::plan::{Options, Plan};
use crate::run::part::run_core;

/// Runs once, and sets `asked` to the number of requests due by the pace alone.
fn play_counted(
    core: Core,
    change: &impl Fn(&mut Options),
    script: &Script,
    asked: &RefCell<Option<u64>>,
) -> crate::connection::outcome::Outcome {
    let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
    let listener = Listener::new(&core, &claim).unwrap();
    core.spawn(listen(
        core.clone(),
        listener,
        Rc::clone(script),
        Rc::default(),
    ));
    let mut options = options("http://server/");
    change(&mut options);
    // Requests start in turns of this size.
    let turn = options
        .pipeline
        .min(options.requests_per_connection.unwrap_or(u64::MAX));
    let plan = Arc::new(Plan::new(options).unwrap());
    let (messages, _told) = channel();
    let gate = Arc::new(StartBarrier::new(1, None));
    let outcome = run_core(&core, &plan, claim.address().clone(), &gate, &messages);
    let run = plan.options.stop.after.unwrap().min(outcome.end.elapsed);
    let due = due_turns(&plan, turn, run) * turn;
    *asked.borrow_mut() = Some(due.min(plan.count().unwrap_or(u64::MAX)));
    outcome
}

/// Returns the number of turns due before `run` has passed.
fn due_turns(plan: &Plan, turn: u64, run: Duration) -> u64 {
    let run = run.as_nanos() as u64;
    let before_end = |rate: u64, first: u64, step: u64| {
        let due = |turns: &u64| (first + turns * step) as u128 * 1_000_000_000 / rate as u128;
        (0..).take_while(|turns| due(turns) < run.into()).count() as u64
    };
    match &plan.options.pace {
        Pace::EachConnection(rate) => {
            let connections = plan.options.connections as u64;
            let all = rate.get() * connections;
            (0..connections)
                .map(|number| before_end(all, number * turn, connections * turn))
                .sum()
        }
        pace => before_end(pace.target_rate(1).unwrap() as u64, 0, turn),
    }
}

/// Responses, failed, unfinished and missed requests add up to the number due, for any server, pace and end of the run.
#[test]
fn every_due_request_is_accounted_for() {
    for seed in 0..300_u64 {
        eprintln!("simulated, seed {seed}");
        let random = onrush_engine::random::Random::stream(seed, 0);
        let pick =
            |least: u64, most: u64| least + (random.unit() * (most - least + 1) as f64) as u64;
        let mut simulation = Simulation::with_seed(seed);
        simulation.reset = if pick(0, 2) == 0 { 20 } else { 0 };
        let core = Core::simulated(simulation);
        let script: Script = {
            let kind = pick(0, 4);
            Rc::new(move |_, number, _| match (kind, number % 5) {
                (1, 4) => reply(b"", Then::Close),
                (2, 4) => reply(OK, Then::Close),
                (3, 4) => reply(b"", Then::Stall(Duration::from_secs(3600))),
                (4, 4) => reply(b"HTTP/1.1 200", Then::Close),
                _ => reply(OK, Then::Stay),
            })
        };
        let rate = NonZeroU64::new(pick(100, 3000)).unwrap();
        let run = Duration::from_micros(pick(1, 200_000));
        let (is_open, has_count) = (pick(0, 1) == 0, pick(0, 2) == 0);
        let change = |options: &mut Options| {
            options.connections = pick(1, 6) as usize;
            options.pipeline = pick(1, 4);
            options.timeout = Duration::from_millis(pick(5, 50));
            options.requests_per_connection = (pick(0, 2) == 0).then(|| pick(1, 7));
            options.catch_up =
                (is_open && pick(0, 2) == 0).then(|| Duration::from_millis(pick(0, 20)));
            options.pace = match is_open {
                true => Pace::rate(rate),
                false => Pace::EachConnection(rate),
            };
            options.stop.after = Some(run);
            options.stop.count = has_count.then(|| pick(1, 300));
        };
        let asked = RefCell::new(None);
        let outcome = play_counted(core, &change, &script, &asked);
        let asked: u64 = asked.take().unwrap();
        let record = &outcome.record;
        let failed = record.tally.requests - record.responses();
        let unfinished = outcome.end.unfinished;
        assert_eq!(record.sent, record.responses() + failed + unfinished);
        assert_eq!(record.sent + outcome.missed, asked, "{outcome:?}");
        // All are measured, or have a minimum wait.
        let without = record.unanswered.response.count();
        assert_eq!(without + record.late, unfinished + outcome.missed + failed);
    }
}

#[test]
fn requests_in_flight_at_end_are_not_errors() {
    play(
        |options| {
            options.stop.count = None;
            options.stop.after = Some(Duration::from_millis(20));
            options.connections = 3;
        },
        |_, _, _| reply(b"", Then::Stall(Duration::from_secs(3600))),
        |outcome| {
            outcome.has_responses(0);
            assert_eq!(outcome.record.tally.connections_open, 3);
        },
    );
}

fn rate(options: &mut Options, per_second: u64) {
    options.pace = Pace::rate(NonZeroU64::new(per_second).unwrap());
    options.stop.count = None;
    options.stop.after = Some(Duration::from_secs(1));
}

#[test]
fn rate_is_kept() {
    for seed in seeds(SEEDS) {
        let script: Script = Rc::new(|_, _, _| reply(OK, Then::Stay));
        play_simulated(
            Simulation::with_seed(seed),
            &|options: &mut Options| {
                rate(options, 1000);
                options.connections = 8;
            },
            &script,
            &|outcome| {
                // The last ones are outstanding at the end.
                assert!((980..=1000).contains(&outcome.record.responses()));
                assert_eq!(outcome.failures(), []);
            },
        );
    }
}

#[test]
fn stall_delays_all_due_requests() {
    let stall = Duration::from_millis(500);
    let mut simulation = Simulation::with_seed(1);
    (simulation.spurious_again, simulation.short) = (0, 0);
    simulation.delay_max = Duration::from_micros(10);
    let script: Script = Rc::new(move |_, number, _| match number {
        0 => reply(b"", Then::Stall(stall)),
        1 => reply(&OK.repeat(2), Then::Stay),
        _ => reply(OK, Then::Stay),
    });
    play_simulated(
        simulation,
        &|options: &mut Options| {
            rate(options, 1000);
            options.pipeline = 2;
        },
        &script,
        &|outcome| {
            // 500 requests were due while the server stalled; the n-th of them waited for 500 - n milliseconds.
            let latency = &outcome.record.times.response;
            assert!((970..=1000).contains(&latency.count()));
            assert!(latency.max() >= stall.as_nanos() as u64);
            let expected = 250_000_000;
            let at_75 = latency.value_at(75.0);
            assert!(at_75.abs_diff(expected) < expected / 10, "{at_75}");
        },
    );
}
