//! Intervals compared with published tables, with full enumeration, and with simulated rounds of a known ratio.

use proptest::prelude::*;

use super::*;
use crate::random::Random;

fn independent(a: &[f64], b: &[f64]) -> Effect {
    Effect::independent(a, b, 0.95).expect("figures above 0")
}

/// All subsets of `marked` out of `all` positions, as bit masks.
fn choices(all: usize, marked: usize) -> impl Iterator<Item = u32> {
    (0..1_u32 << all).filter(move |bits| bits.count_ones() as usize == marked)
}

/// Rank of the outermost shifts that the test does not reject, by enumeration.
fn rank_by_counting(a: usize, b: usize, confidence: f64) -> Option<usize> {
    let statistics: Vec<usize> = choices(a + b, b)
        .map(|bits| {
            let is_b = |place: usize| bits >> place & 1 == 1;
            let below = |place: usize| (0..place).filter(|at| !is_b(*at)).count();
            (0..a + b).filter(|at| is_b(*at)).map(below).sum()
        })
        .collect();
    let share = |most: usize| {
        statistics.iter().filter(|it| **it <= most).count() as f64 / statistics.len() as f64
    };
    (0..=a * b / 2)
        .take_while(|most| share(*most) <= (1.0 - confidence) / 2.0 + 1e-12)
        .last()
}

#[test]
fn rank_sum_matches_enumeration() {
    for (a, b) in [(1, 1), (3, 3), (4, 4), (5, 5), (5, 7), (8, 6), (2, 9)] {
        for confidence in [0.8, 0.9, 0.95, 0.99] {
            let cut = Cut::of(&rank_sum_counts(a, b), side(confidence));
            match rank_by_counting(a, b, confidence) {
                Some(most) => {
                    assert_eq!(cut.rank, most + 1, "{a} and {b} at {confidence}");
                    assert!(cut.confidence >= confidence - 1e-9);
                }
                None => {
                    assert_eq!(cut.rank, 1);
                    assert!(cut.confidence < confidence, "{a} and {b} at {confidence}");
                }
            }
        }
    }
}

#[test]
fn critical_values_agree_with_published_tables() {
    // Mann-Whitney, two-sided 5 %: the largest U that is rejected (Conover, table A7; Siegel & Castellan, table J).
    for (a, b, refused) in [
        (5, 5, 2),
        (8, 8, 13),
        (10, 10, 23),
        (10, 20, 55),
        (20, 20, 127),
    ] {
        let cut = Cut::of(&rank_sum_counts(a, b), side(0.95));
        assert_eq!(cut.rank, refused + 1, "{a} and {b}");
    }
    // Signed rank, two-sided 5 % (Wilcoxon's own table).
    for (pairs, refused) in [(6, 0), (10, 8), (15, 25), (25, 89)] {
        let cut = Cut::of(&signed_rank_counts(pairs), side(0.95));
        assert_eq!(cut.rank, refused + 1, "{pairs} pairs");
    }
}

#[test]
fn normal_approximation_matches_exact_ranks() {
    let values =
        |count: u32, from: f64| -> Vec<f64> { (0..count).map(|at| from + f64::from(at)).collect() };
    for count in [30, 45, 60] {
        let exact = Cut::of(&rank_sum_counts(count as usize, count as usize), side(0.95)).rank;
        let normal = normal_cut(&values(count, 0.0), &values(count, 0.5), 0.95).rank;
        assert!(exact.abs_diff(normal) <= 1, "{count}: {exact}, {normal}");
    }
}

#[test]
fn ties_narrow_normal_interval() {
    let apart: Vec<f64> = (1..=70).map(f64::from).collect();
    let tied: Vec<f64> = apart.iter().map(|value| (value / 35.0).ceil()).collect();
    let rank = |values: &[f64]| normal_cut(values, values, 0.95).rank;
    assert!(rank(&tied) > rank(&apart));
}

#[test]
fn shift_is_a_reciprocal_ratio() {
    let a = [100.0, 103.0, 98.0, 101.0, 99.0, 102.0];
    let b: Vec<f64> = a.iter().map(|value| value * 1.05).collect();
    let (there, back) = (independent(&a, &b), independent(&b, &a));
    assert!((there.ratio - 1.05).abs() < 0.001, "{there:?}");
    assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
    assert!((there.low * back.high - 1.0).abs() < 1e-9);
    assert_eq!(there.method, Method::RankSum);
}

#[test]
fn outlier_hardly_changes_effect() {
    let a = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0, 107.0];
    let mut b = a;
    b[7] = 1e6;
    let effect = independent(&a, &b);
    assert!((effect.ratio - 1.0).abs() < 0.02, "{effect:?}");
    assert!(effect.high < 1.06, "{effect:?}");
}

#[test]
fn too_few_rounds_report_actual_confidence() {
    let effect = independent(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]);
    assert!((effect.confidence - 0.9).abs() < 1e-9, "{effect:?}");
    assert!((effect.low - 1.0 / 3.0).abs() < 1e-9 && (effect.high - 3.0).abs() < 1e-9);
    assert_eq!(independent(&[1.0], &[2.0]).confidence, 0.0);
    let pair = Effect::paired(&[(1.0, 2.0)], 0.95).expect("a pair");
    assert_eq!((pair.ratio, pair.confidence), (2.0, 0.0));
}

#[test]
fn nonpositive_or_nonfinite_values_have_no_effect() {
    for (a, b) in [
        (vec![], vec![1.0]),
        (vec![0.0], vec![1.0]),
        (vec![1.0], vec![-1.0]),
        (vec![f64::NAN], vec![1.0]),
        (vec![f64::INFINITY], vec![1.0]),
    ] {
        assert_eq!(Effect::independent(&a, &b, 0.95), None, "{a:?} {b:?}");
    }
    assert_eq!(Effect::paired(&[], 0.95), None);
    assert_eq!(Effect::paired(&[(0.0, 1.0)], 0.95), None);
}

#[test]
fn paired_effect_uses_narrower_exact_test() {
    // Symmetric ratios, for which the signed-rank test is more powerful.
    let symmetric: Vec<(f64, f64)> = (1..=20)
        .map(|at| (1.0, (f64::from(at) / 20.0 - 0.525).exp()))
        .collect();
    let effect = Effect::paired(&symmetric, 0.95).expect("pairs");
    assert_eq!(effect.method, Method::SignedRank);
    // Most ratios are equal and a few are far off on one side: they widen the signed-rank interval but not that of the
    // sign test.
    let skewed: Vec<(f64, f64)> = (0..20)
        .map(|at| {
            (
                1.0,
                if at < 15 {
                    1.0 + f64::from(at) * 1e-4
                } else {
                    3.0
                },
            )
        })
        .collect();
    let effect = Effect::paired(&skewed, 0.95).expect("pairs");
    assert_eq!(effect.method, Method::Sign);
    let many = vec![(1.0, 1.0); PAIRS_EXACT_MAX + 1];
    assert_eq!(
        Effect::paired(&many, 0.95).expect("pairs").method,
        Method::Sign
    );
}

#[test]
fn interval_coverage_matches_confidence() {
    const TRIALS: usize = 2_000;
    let mut random = Random::new(7);
    // Noise with a long upper tail, as from noisy neighbours.
    let mut round = |level: f64| {
        let noise = random.normal() * 0.01;
        let tail = if random.below(8) == 0 {
            random.unit() * 0.1
        } else {
            0.0
        };
        level * f64::exp(noise + tail)
    };
    let mut held = 0;
    for _ in 0..TRIALS {
        let a: Vec<f64> = (0..9).map(|_| round(3.0)).collect();
        let b: Vec<f64> = (0..9).map(|_| round(3.3)).collect();
        let effect = independent(&a, &b);
        held += usize::from(effect.low <= 1.1 && 1.1 <= effect.high);
    }
    let share = held as f64 / TRIALS as f64;
    assert!((0.94..0.985).contains(&share), "{share}");
}

#[test]
fn autocorrelation_widens_interval() {
    let mut random = Random::new(3);
    let independent: Vec<f64> = (0..400).map(|_| (random.normal() * 0.02).exp()).collect();
    let drifting: Vec<f64> = (0..400)
        .scan(0.0, |level, _| {
            *level = 0.6 * *level + random.normal() * 0.02;
            Some(f64::exp(*level))
        })
        .collect();
    let of_independent = inflation(&[&independent[..200], &independent[200..]]);
    assert!((1.0..1.12).contains(&of_independent), "{of_independent}");
    // The square root of 1.6 / 0.4.
    let of_drifting = inflation(&[&drifting]);
    assert!((1.75..2.25).contains(&of_drifting), "{of_drifting}");
    assert_eq!(inflation(&[&[1.0, 1.0, 1.0]]), 1.0);
    assert_eq!(inflation(&[]), 1.0);
}

#[test]
fn widening_adds_errors_in_quadrature() {
    let effect = Effect {
        ratio: 1.0,
        low: f64::exp(-0.03),
        high: f64::exp(0.06),
        confidence: 0.95,
        method: Method::RankSum,
    };
    let wide = effect.widened(1.0, 0.04 / 1.96);
    assert!((wide.low.ln() + 0.05).abs() < 1e-4, "{wide:?}");
    assert!((wide.high.ln() - 0.0721).abs() < 1e-4, "{wide:?}");
    let twice = effect.widened(2.0, 0.0);
    assert!((twice.high.ln() - 0.12).abs() < 1e-9);
    assert_eq!(effect.widened(1.0, 0.0).ratio, 1.0);
}

proptest! {
    /// Compares the bounds with those found by testing every shift.
    #[test]
    fn interval_contains_shifts_not_rejected(
        a in prop::collection::vec(1.0_f64..2.0, 4..8),
        b in prop::collection::vec(1.0_f64..2.0, 4..8),
    ) {
        let effect = independent(&a, &b);
        let most = rank_by_counting(a.len(), b.len(), 0.95).expect("four of each reach 95 %");
        let is_refused = |shift: f64| {
            let above = a
                .iter()
                .flat_map(|from| b.iter().map(move |to| to / from))
                .filter(|ratio| *ratio > shift)
                .count();
            above <= most || a.len() * b.len() - above <= most
        };
        prop_assert!(!is_refused(effect.low * (1.0 + 1e-9)) && is_refused(effect.low * (1.0 - 1e-9)));
        prop_assert!(!is_refused(effect.high * (1.0 - 1e-9)) && is_refused(effect.high * (1.0 + 1e-9)));
        prop_assert!(effect.low <= effect.ratio && effect.ratio <= effect.high);
    }

    /// Compares the signed-rank distribution with full enumeration.
    #[test]
    fn signed_rank_matches_enumeration(pairs in 1_usize..11) {
        let counts = signed_rank_counts(pairs);
        for (value, ways) in counts.ways.iter().enumerate() {
            let sum = |bits: u32| -> usize { (0..pairs).filter(|at| bits >> at & 1 == 1).map(|at| at + 1).sum() };
            let counted = (0..1_u32 << pairs).filter(|bits| sum(*bits) == value).count();
            prop_assert_eq!(*ways, counted as i128);
        }
    }
}
