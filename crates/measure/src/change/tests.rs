//! Histories with known changes, and the statistic compared with the paper's formula.

use proptest::prelude::*;

use super::*;

/// Figures around `level` with a standard deviation of 1 %.
fn around(random: &mut Random, level: f64, count: usize) -> Vec<f64> {
    (0..count)
        .map(|_| level * (random.normal() * 0.01).exp())
        .collect()
}

#[test]
fn change_is_found_with_position_and_size() {
    let mut random = Random::new(1);
    let history = [around(&mut random, 3.0, 12), around(&mut random, 3.3, 8)].concat();
    let found = changes(&history, 0.99);
    assert_eq!(found.len(), 1, "{found:?}");
    let change = found[0];
    assert_eq!(change.at, 12);
    assert!(
        change.effect.low < 1.1 && 1.1 < change.effect.high,
        "{change:?}"
    );
    assert!(
        change.effect.low > 1.08 && change.effect.high < 1.12,
        "{change:?}"
    );
    assert!((change.before - 3.0).abs() < 0.03 && (change.after - 3.3).abs() < 0.03);
    assert!(change.confidence >= 0.99 && change.confidence < 1.0);
}

#[test]
fn reverted_change_is_two_changes() {
    let mut random = Random::new(2);
    let history = [
        around(&mut random, 3.0, 10),
        around(&mut random, 3.4, 8),
        around(&mut random, 3.0, 10),
    ]
    .concat();
    let places: Vec<usize> = changes(&history, 0.99).iter().map(|it| it.at).collect();
    assert_eq!(places, [10, 18]);
}

#[test]
fn outlier_is_not_a_change() {
    let mut random = Random::new(3);
    let mut history = around(&mut random, 3.0, 20);
    history[10] = 6.0;
    assert_eq!(changes(&history, 0.99), []);
    let mut newest = around(&mut random, 3.0, 20);
    newest[19] = 6.0;
    assert_eq!(changes(&newest, 0.99), []);
}

#[test]
fn false_change_rate_matches_confidence() {
    const HISTORIES: u64 = 300;
    let with_changes = (0..HISTORIES)
        .filter(|seed| {
            let history = around(&mut Random::new(1_000 + seed), 3.0, 16);
            !changes(&history, 0.95).is_empty()
        })
        .count();
    // Expected 15 of 300; more than 28 have a probability of 0.1 %.
    assert!((3..=28).contains(&with_changes), "{with_changes}");
}

#[test]
fn insignificant_change_is_not_reported() {
    let mut random = Random::new(4);
    let mut places = |before: usize, after: usize, confidence: f64| -> Vec<usize> {
        let history = [
            around(&mut random, 3.0, before),
            around(&mut random, 3.3, after),
        ]
        .concat();
        changes(&history, confidence)
            .iter()
            .map(|it| it.at)
            .collect()
    };
    // 3 of 12 figures: 220 combinations; the first three and the last three show the change.
    assert_eq!(places(10, 3, 0.99), [10]);
    assert_eq!(places(8, 3, 0.95), [8]);
    // 2 of 8 figures: 2 of 28 combinations, so not significant.
    assert_eq!(places(6, 2, 0.95), [0; 0]);
    assert_eq!(places(30, 2, 0.99), [30]);
}

#[test]
fn too_short_history_has_no_change() {
    // 4 of 8 figures: 2 of 70 combinations show the change; 5 of 10: 2 of 252.
    assert_eq!([0.95, 0.99].map(values_min), [8, 10]);
    let clear = |count: usize| -> Vec<f64> {
        let level = |at: usize| if at < count / 2 { 1.0 } else { 9.0 };
        (0..count).map(|at| level(at) + at as f64 * 0.001).collect()
    };
    for count in 4..10 {
        assert_eq!(changes(&clear(count), 0.99), [], "{count}");
    }
    // 10 is on the boundary, where sampled permutations may miss the change.
    for count in 12..16 {
        assert_eq!(changes(&clear(count), 0.99).len(), 1, "{count}");
    }
}

#[test]
fn degenerate_histories_have_no_changes() {
    for history in [
        vec![],
        vec![1.0],
        vec![1.0, 2.0, 3.0],
        vec![5.0; 30],
        vec![1.0, 1.0, 0.0, 9.0, 9.0],
        vec![1.0, 1.0, f64::NAN, 9.0, 9.0],
    ] {
        assert_eq!(changes(&history, 0.9), [], "{history:?}");
    }
}

#[test]
fn change_detection_is_deterministic() {
    let mut random = Random::new(5);
    let history = [around(&mut random, 3.0, 9), around(&mut random, 3.1, 9)].concat();
    assert_eq!(changes(&history, 0.95), changes(&history, 0.95));
}

/// The paper's formula, computed pair by pair.
fn by_pairs(before: &[f64], after: &[f64]) -> f64 {
    let (n, m) = (before.len() as f64, after.len() as f64);
    let distance = |one: &f64, other: &f64| (one - other).abs();
    let across: f64 = before
        .iter()
        .flat_map(|one| after.iter().map(move |other| distance(one, other)))
        .sum();
    let within = |part: &[f64]| {
        let mut sum = 0.0;
        for (at, one) in part.iter().enumerate() {
            sum += part[..at]
                .iter()
                .map(|other| distance(one, other))
                .sum::<f64>();
        }
        let count = part.len() as f64;
        sum / (count * (count - 1.0) / 2.0)
    };
    n * m / (n + m) * (2.0 * across / (n * m) - within(before) - within(after))
}

proptest! {
    #[test]
    fn best_split_matches_exhaustive_search(logs in prop::collection::vec(-1.0_f64..1.0, 4..20)) {
        let split = best(&logs).expect("four figures have a place");
        let mut furthest = f64::NEG_INFINITY;
        for at in SEGMENT_MIN..=logs.len() - SEGMENT_MIN {
            for end in (at + PART_MIN..logs.len()).chain([logs.len()]) {
                furthest = furthest.max(by_pairs(&logs[..at], &logs[at..end]));
            }
        }
        prop_assert!((split.distance - furthest).abs() < 1e-9, "{} {furthest}", split.distance);
    }
}
