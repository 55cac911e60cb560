//! Parsing of percentages in flags, such as `2%`.

use onrush_measure::amount::percent;

/// Parses a share above 0 % and up to 50 %: half of a figure is neither a small effect nor noise between runs.
pub(super) fn share(text: &str) -> Result<f64, String> {
    match percent(text) {
        Ok(percent) if percent > 0.0 && percent <= 50.0 => Ok(percent / 100.0),
        _ => Err("expected a share above 0 % and up to 50 %, such as 2% or 0.5%".into()),
    }
}

/// Parses a confidence from 50 % to 99.9 %.
pub(super) fn confidence(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(str::trim_end);
    let percent: Option<f64> = number.and_then(|number| number.parse().ok());
    match percent {
        // The permutation test of a history resolves 0.1 % (999 permutations).
        Some(percent) if (50.0..=99.9).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a confidence from 50 % to 99.9 %, such as 95% or 99%".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_require_sign_and_bounds() {
        assert_eq!(share("2%"), Ok(0.02));
        assert_eq!(share("0.5 %"), Ok(0.005));
        assert_eq!(confidence("95%"), Ok(0.95));
        for text in ["", "%", "2", "0%", "-1%", "51%", "NaN%", "inf%", "x%"] {
            assert!(share(text).is_err(), "{text}");
        }
        for text in ["", "95", "49%", "100%", "NaN%"] {
            assert!(confidence(text).is_err(), "{text}");
        }
    }
}
