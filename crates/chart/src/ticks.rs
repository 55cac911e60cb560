//! Axis ticks and labels.

/// About `count` round numbers from 0 to at least `largest`.
pub fn linear_ticks(largest: f64, count: usize) -> Vec<f64> {
    if largest <= 0.0 || !largest.is_finite() {
        return vec![0.0, 1.0];
    }
    let rough = largest / count as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let steps = (largest / step - 1e-9).ceil() as usize;
    (0..=steps).map(|index| index as f64 * step).collect()
}

/// 1, 2, 5, 10 … from below `min` to above `max`; only powers of ten if the range is wide.
pub fn log_ticks(min: f64, max: f64) -> Vec<f64> {
    let min = min.max(1e-3);
    let max = max.max(min * 1.5);
    let factors: &[f64] = if (max / min).log10() > 3.2 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let first = min.log10().floor() as i32;
    let last = max.log10().ceil() as i32;
    let all: Vec<f64> = (first..=last)
        .flat_map(|power| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powi(power))
        })
        .collect();
    let from = all
        .iter()
        .rposition(|tick| *tick <= min * 1.0001)
        .unwrap_or(0);
    let to = all
        .iter()
        .position(|tick| *tick >= max * 0.9999)
        .unwrap_or(all.len() - 1);
    all[from..=to].to_vec()
}

/// Ticks of a percentile axis, which is linear in log(1 / (1 - p)): 50, 90, 99, 99.9 … and `last`.
pub fn percentile_ticks(last: f64) -> Vec<(f64, String)> {
    let named = |percentile: f64| {
        let name = onrush_measure::units::percentile(percentile);
        (tail(percentile), format!("{name} %"))
    };
    let nines = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999].into_iter();
    let mut ticks: Vec<(f64, String)> = nines
        .filter(|percentile| tail(*percentile) <= last * 1.001)
        .map(named)
        .collect();
    let Some((highest, _)) = ticks.last() else {
        return ticks;
    };
    if last <= highest * 1.02 {
        return ticks;
    }
    // As many digits as the neighbouring ticks have.
    let digits = 10_f64.powf((last.log10().floor() - 1.0).max(0.0));
    let end = ((100.0 - 100.0 / last) * digits).round() / digits;
    // Drop the last tick if its label would overlap that of the end.
    let room = (last / highest).ln() / (last / 2.0).ln();
    if room < END_ROOM && ticks.len() > 1 {
        ticks.pop();
    }
    ticks.push((last, named(end).1));
    ticks
}

/// Fraction of the axis that a percentile label needs: 45 of 320 units.
const END_ROOM: f64 = 0.15;

/// `1 / (1 - p)`: one request in this many is slower.
pub fn tail(percentile: f64) -> f64 {
    100.0 / (100.0 - percentile)
}

/// A number without trailing zeros: `2.5`, `50k`, `1.2M`.
pub fn plain_number(value: f64) -> String {
    let (scaled, suffix) = if value.abs() >= 1e6 {
        (value / 1e6, "M")
    } else if value.abs() >= 1e4 {
        (value / 1e3, "k")
    } else {
        (value, "")
    };
    let text = format!("{scaled:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{suffix}")
}

/// A time in microseconds as a label: `50 µs`, `2 ms`, `1 s`.
pub fn time_tick(us: f64) -> String {
    if us >= 1e6 {
        return format!("{} s", plain_number(us / 1e6));
    }
    if us >= 1e3 {
        return format!("{} ms", plain_number(us / 1e3));
    }
    format!("{} µs", plain_number(us))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    #[test]
    fn ticks_are_round_and_cover_the_data() {
        assert_eq!(linear_ticks(4.9, 5), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(
            linear_ticks(190_000.0, 4),
            [0.0, 50_000.0, 100_000.0, 150_000.0, 200_000.0]
        );
        assert_eq!(linear_ticks(0.0, 4), [0.0, 1.0]);
        assert_eq!(
            log_ticks(80.0, 3_000.0),
            [50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0]
        );
        assert_eq!(log_ticks(100.0, 100.0), [100.0, 200.0]);
        assert_eq!(
            log_ticks(3.0, 50_000.0),
            [1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]
        );
    }

    #[test]
    fn percentile_axis_spaces_nines_equally() {
        let scale = Scale::Log(2.0, 20_000.0);
        let nines = [90.0, 99.0, 99.9].map(|percentile| scale.place(tail(percentile)));
        assert!(((nines[1] - nines[0]) - (nines[2] - nines[1])).abs() < 1e-9);
        let labels: Vec<_> = percentile_ticks(1_000.0)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        assert_eq!(labels, ["50 %", "90 %", "99 %", "99.9 %"]);
    }

    #[test]
    fn percentile_axis_labels_last_percentile() {
        let labels = |last: f64| -> Vec<String> {
            let ticks = percentile_ticks(last);
            assert!((ticks[ticks.len() - 1].0 - last).abs() <= last * 0.02);
            ticks.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(labels(1_000.0), ["50 %", "90 %", "99 %", "99.9 %"]);
        assert_eq!(labels(501.0), ["50 %", "90 %", "99 %", "99.8 %"]);
        assert_eq!(labels(126.0), ["50 %", "90 %", "99.2 %"]);
        assert_eq!(
            labels(6_310.0),
            ["50 %", "90 %", "99 %", "99.9 %", "99.98 %"]
        );
        assert_eq!(labels(5.0), ["50 %", "80 %"]);
    }

    #[test]
    fn axis_numbers_are_abbreviated() {
        assert_eq!(plain_number(2.5), "2.5");
        assert_eq!(plain_number(150_000.0), "150k");
        assert_eq!(time_tick(2_000.0), "2 ms");
        assert_eq!(time_tick(50.0), "50 µs");
    }
}
