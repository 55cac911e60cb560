//! Pressure stall information: time in which work waited for a resource (Documentation/accounting/psi.rst of the
//! kernel).

/// Parses a file below `/proc/pressure` into kinds and microseconds since boot: `some` is the time in which at least
/// one thread waited, `full` the time in which all non-idle threads waited.
///
/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=1217586064`
pub fn stalls(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (kind, _) = line.split_once(' ')?;
        let (_, total) = line.rsplit_once("total=")?;
        Some((kind, total.trim().parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psi_some_and_full_times_are_parsed() {
        let text =
            "some avg10=75.05 total=137673693\nfull avg10=0.00 total=12\nsome total=\nnothing\n";
        let found: Vec<_> = stalls(text).collect();
        assert_eq!(found, [("some", 137_673_693), ("full", 12)]);
    }
}
