//! Searches against queueing models and scripted trials.

use onrush_engine::random::Random;

use super::*;

/// M/M/1 queue and a generator of limited rate; the measured 99th percentile is off by up to `noise`.
struct Model {
    service_rate: f64,
    generator_max: f64,
    noise: f64,
}

impl Model {
    /// Response times in M/M/1 are exponential with rate mu - lambda.
    fn p99_us(&self, rate: f64) -> f64 {
        match self.service_rate - rate {
            spare if spare > 0.0 => 100_f64.ln() / spare * 1e6,
            _ => 1e7,
        }
    }

    /// Rate at which the 99th percentile is `bound_us`.
    fn truth(&self, bound_us: f64) -> f64 {
        self.service_rate - 100_f64.ln() / bound_us * 1e6
    }

    fn trial(&self, rate: u64, bound_us: f64, random: &Random) -> Trial {
        let off = 1.0 + self.noise * (2.0 * random.unit() - 1.0);
        let p99_us = self.p99_us(rate as f64) * off;
        let held = match p99_us < bound_us {
            _ if rate as f64 > self.generator_max => TrialOutcome::GeneratorLimit,
            true => TrialOutcome::Yes,
            false => TrialOutcome::No,
        };
        Trial {
            rate,
            held,
            measured: format!("{p99_us:.0} us"),
            rps: rate as f64,
            p50_us: None,
            p99_us: Some(p99_us),
            p99_9_us: None,
            at_least: Vec::new(),
        }
    }

    fn search(&self, bound_us: f64, start: Option<u64>, seed: u64) -> (SearchResult, usize) {
        let random = Random::new(seed);
        let mut search = Search::new(start);
        loop {
            match search.next() {
                NextStep::Try(rate) | NextStep::Confirm(rate) => {
                    search.record(self.trial(rate, bound_us, &random));
                }
                NextStep::Done(answer) => return (answer, search.trials().len()),
            }
        }
    }
}

const STEADY: Model = Model {
    service_rate: 50_000.0,
    generator_max: 1e9,
    noise: 0.0,
};

fn found(answer: &SearchResult) -> u64 {
    match answer {
        SearchResult::Found {
            rate, confidence, ..
        } => {
            assert!(*confidence >= 0.95, "{answer}");
            *rate
        }
        SearchResult::Never { .. }
        | SearchResult::Unsteady { .. }
        | SearchResult::TooShort { .. } => {
            panic!("{answer}")
        }
    }
}

#[test]
fn growing_queue_does_not_keep_up() {
    let kept = |requests: u64, unfinished: u64, mean_ms: f64, missed: u64, failures: u64| {
        let mut report = Report {
            duration_s: 5.0,
            requests,
            unfinished,
            missed,
            ..Report::default()
        };
        report.latency_us.mean = Some(mean_ms * 1000.0);
        report.evidence.failures = failures;
        keeps_up(&report)
    };
    // 100 per second at a constant 60 ms, and 20 per second at half a second each.
    assert!(kept(494, 6, 60.0, 0, 0));
    assert!(kept(90, 10, 500.0, 0, 0));
    assert!(kept(5000, 0, 1.0, 0, 0));
    // As many requests in flight at the end, but with responses of 1 ms.
    assert!(!kept(480, 20, 1.0, 0, 0));
    // 950 responses per second at 1,000: the queue grows, to twice the mean wait.
    assert!(!kept(4750, 250, 125.0, 0, 0));
    // Never sent, and failed.
    assert!(!kept(4900, 0, 60.0, 100, 0));
    assert!(!kept(4900, 0, 60.0, 0, 100));
}

#[test]
fn steady_queue_is_found_within_precision() {
    for bound_us in [200.0, 1_000.0, 20_000.0] {
        for start in [None, Some(1), Some(7), Some(49_000), Some(10_000_000)] {
            let (answer, trials) = STEADY.search(bound_us, start, 1);
            let (rate, truth) = (found(&answer) as f64, STEADY.truth(bound_us));
            assert!(
                rate <= truth && rate * FIND_PRECISION >= truth * 0.999,
                "{rate} of {truth}"
            );
            assert!(trials < FIND_TRIALS_MAX, "{trials}");
        }
    }
}

#[test]
fn noisy_queue_is_found_and_confirmed() {
    let noisy = Model {
        noise: 0.3,
        ..STEADY
    };
    // With p99 up to 30 % off, 1 ms always holds below 44,000/s and never above 46,700/s.
    for seed in 0..300 {
        let (answer, trials) = noisy.search(1_000.0, Some(1_000), seed);
        let rate = found(&answer) as f64;
        assert!((41_000.0..46_800.0).contains(&rate), "seed {seed}: {rate}");
        assert!(trials <= FIND_TRIALS_MAX, "seed {seed}: {trials}");
    }
}

#[test]
fn impossible_condition_reports_never() {
    let (answer, _) = STEADY.search(1.0, None, 1);
    assert_eq!(answer, SearchResult::Never { rate: 1 });
}

#[test]
fn generator_limit_is_reported() {
    let model = Model {
        generator_max: 9_000.0,
        ..STEADY
    };
    let (answer, _) = model.search(1_000.0, None, 1);
    assert!(
        found(&answer) <= 9_000 && found(&answer) > 8_000,
        "{answer}"
    );
    assert!(matches!(
        answer,
        SearchResult::Found {
            ceiling: SearchLimit::Generator,
            ..
        }
    ));
    assert!(
        answer
            .to_string()
            .contains("the target may support a higher rate")
    );
}

#[test]
fn erratic_target_ends_search_as_unsteady() {
    let coin = |rate: u64, random: &Random| Trial {
        held: match random.unit() < 0.5 {
            true => TrialOutcome::Yes,
            false => TrialOutcome::No,
        },
        ..STEADY.trial(rate, 1.0, &Random::new(0))
    };
    let (mut promised, mut ended) = (0, 0);
    for seed in 0..200 {
        let (random, mut search) = (Random::new(seed), Search::new(None));
        while let NextStep::Try(rate) | NextStep::Confirm(rate) = search.next() {
            search.record(coin(rate, &random));
        }
        ended += 1;
        promised += u32::from(matches!(
            search.next(),
            NextStep::Done(SearchResult::Found { .. })
        ));
    }
    // Testing after each trial finds five passes in a row sooner or later: the bound is per rate, not per search.
    assert_eq!(ended, 200);
    assert!(promised < 200, "{promised}");
}

#[test]
fn narrowed_search_confirms_result() {
    let random = Random::new(1);
    let mut search = Search::new(None).narrowed_to(1.01);
    let mut confirmed = Vec::new();
    let answer = loop {
        match search.next() {
            NextStep::Try(rate) => search.record(STEADY.trial(rate, 1000.0, &random)),
            NextStep::Confirm(rate) => {
                confirmed.push(rate);
                search.record(STEADY.trial(rate, 1000.0, &random));
            }
            NextStep::Done(answer) => break answer,
        }
    };
    let rate = found(&answer);
    assert!(confirmed.iter().all(|of| *of == rate), "{confirmed:?}");
    let trials = search.trials().iter();
    let failed = trials.filter(|trial| trial.held != TrialOutcome::Yes);
    let lowest_failed = failed.map(|trial| trial.rate).min().unwrap();
    assert!(
        lowest_failed as f64 / rate as f64 <= 1.011,
        "{rate} {lowest_failed}"
    );
}

#[test]
fn five_passed_trials_confirm_result() {
    let score = |held, trials| Score {
        held,
        trials,
        ..Score::new(1)
    };
    for (held, trials, is_sure) in [
        (4, 4, false),
        (5, 5, true),
        (5, 6, false),
        (7, 8, true),
        (6, 8, false),
    ] {
        assert_eq!(
            score(held, trials).p_value() <= P_VALUE_MAX,
            is_sure,
            "{held} of {trials}"
        );
    }
    assert!((score(5, 5).p_value() - 1.0 / 32.0).abs() < 1e-12);
}

/// Runs a search whose trials have the outcome that `held` returns for their rate.
fn search_of(start: u64, held: impl Fn(u64) -> TrialOutcome) -> (SearchResult, Vec<Trial>) {
    let random = Random::new(1);
    let mut search = Search::new(Some(start));
    loop {
        match search.next() {
            NextStep::Try(rate) | NextStep::Confirm(rate) => search.record(Trial {
                held: held(rate),
                ..STEADY.trial(rate, 1_000.0, &random)
            }),
            NextStep::Done(answer) => return (answer, search.trials().to_vec()),
        }
    }
}

#[test]
fn undecided_trials_fail_and_are_listed() {
    let (answer, trials) = search_of(1_000, |rate| match rate {
        ..=5_000 => TrialOutcome::Yes,
        _ => TrialOutcome::Undecided,
    });
    let rate = found(&answer);
    assert!((4_700..=5_000).contains(&rate), "{answer}");
    let SearchResult::Found { ceiling, .. } = answer else {
        unreachable!("it was found");
    };
    assert_eq!(ceiling, SearchLimit::Undecided);
    let undecided = undecided::of(&trials);
    let count: u32 = undecided.iter().map(|of| of.trials).sum();
    let said = sentence(Some(&answer), &trials);
    assert!(
        said.contains(&format!("{count} trials could not decide")),
        "{said}"
    );
    for of in &undecided {
        assert!(of.rate > 5_000 && of.trials == 2, "{of:?}");
        let part = format!("2 at {}", units::count(of.rate));
        assert!(said.contains(&part), "{said}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&to_json("p99 < 1ms", Some(&answer), &trials)).unwrap();
    assert_eq!(json["undecided"].as_array().unwrap().len(), undecided.len());
    assert_eq!(json["answer"]["ceiling"], "undecided");
}

#[test]
fn single_undecided_trial_decides_nothing() {
    let random = Random::new(1);
    let mut search = Search::new(Some(1_000));
    let answer = loop {
        match search.next() {
            NextStep::Try(rate) | NextStep::Confirm(rate) => {
                let is_first = !search.trials().iter().any(|trial| trial.rate == rate);
                let trial = STEADY.trial(rate, 1_000.0, &random);
                search.record(match is_first {
                    true => Trial {
                        held: TrialOutcome::Undecided,
                        ..trial
                    },
                    false => trial,
                });
            }
            NextStep::Done(answer) => break answer,
        }
    };
    let (rate, truth) = (found(&answer) as f64, STEADY.truth(1_000.0));
    assert!(
        rate <= truth && rate * FIND_PRECISION >= truth * 0.999,
        "{answer}"
    );
}

#[test]
fn search_reports_too_short_trials() {
    let (answer, trials) = search_of(1_000, |rate| match rate {
        ..=200 => TrialOutcome::TooShort,
        _ => TrialOutcome::No,
    });
    assert_eq!(answer, SearchResult::TooShort { rate: 125 });
    assert!(trials.len() < 20, "{}", trials.len());
    let said = sentence(Some(&answer), &trials);
    assert!(said.contains("Make trials longer (-d)"), "{said}");
    let (answer, _) = search_of(1_000, |_| TrialOutcome::Undecided);
    assert_eq!(answer, SearchResult::Never { rate: 1 });
}

#[test]
fn decided_search_lists_no_undecided_trials() {
    let (answer, trials) = search_of(1_000, |rate| match rate {
        ..=5_000 => TrialOutcome::Yes,
        _ => TrialOutcome::No,
    });
    assert_eq!(sentence(Some(&answer), &trials), answer.to_string());
    assert_eq!(sentence(None, &[]), "stopped before a rate was found");
}

#[test]
fn curve_has_line_per_trial() {
    let trials: Vec<Trial> = [1_000, 2_000, 2_000, 40_000]
        .map(|rate| STEADY.trial(rate, 1_000.0, &Random::new(3)))
        .into();
    let curve = curve(&trials);
    assert_eq!(curve.lines().count(), 4, "{curve}");
    assert!(
        curve
            .lines()
            .last()
            .unwrap()
            .starts_with("    40000/s |#####"),
        "{curve}"
    );
    assert_eq!(super::curve(&trials[..1]), "");
}
