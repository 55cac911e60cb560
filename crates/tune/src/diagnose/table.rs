//! Full kernel tables: connection tracking and neighbours.

use super::{Case, Confidence, Finding, Limiter, finding};

/// Share of a table that counts as nearly full.
const NEARLY: f64 = 0.95;
/// No share of dropped connections is too small to report.
const ANY: f64 = 0.0;

impl Case<'_> {
    pub(super) fn tracked(&self) -> Option<Finding> {
        let number = |name: &str| self.facts.system.setting(name)?.parse::<u64>().ok();
        let samples = || {
            self.after
                .samples
                .iter()
                .filter_map(|sample| sample.tracked)
        };
        // The fullest sample counts; without samples, the value read before.
        let fullest = samples().max_by_key(|tracked| tracked.entries);
        let (entries, most) = match fullest {
            Some(tracked) => (tracked.entries, tracked.most),
            None => (
                number("net/netfilter/nf_conntrack_count")?,
                number("net/netfilter/nf_conntrack_max")?,
            ),
        };
        let dropped = samples().next_back().zip(samples().next());
        let dropped = dropped.map_or(0, |(now, then)| now.dropped.saturating_sub(then.dropped));
        let is_near = most > 0 && entries as f64 >= most as f64 * NEARLY;
        (is_near || dropped > 0).then_some(())?;
        let confidence = match most > 0 && entries >= most {
            true => Confidence::High,
            // A nearly full table does not prove drops.
            false if dropped == 0 => Confidence::Medium,
            false => self.confidence(dropped, 0, ANY),
        };
        let dropped = match dropped {
            0 => String::new(),
            dropped => format!("; {dropped} were dropped or removed early meanwhile"),
        };
        finding(
            Limiter::Conntrack,
            confidence,
            format!(
                "{entries} connections are tracked (limit {most}): when the table is full, packets of new ones are \
                 dropped{dropped}"
            ),
            "rules that do not track the service's connections (notrack), or nf_conntrack_max and its hash size",
        )
    }

    /// A full neighbour table: packets to new neighbours are dropped until entries expire.
    pub(super) fn neighbours(&self) -> Option<Finding> {
        let (first, last) = (self.after.samples.first()?, self.after.samples.last()?);
        let found = last.neighbours.as_ref()?.iter().filter_map(|table| {
            let then = first.neighbours.iter().flatten();
            let then = then
                .filter(|old| old.name == table.name)
                .map(|old| old.overflows);
            // Without an earlier sample the growth is unknown.
            let overflows = table
                .overflows
                .saturating_sub(then.max().unwrap_or(table.overflows));
            let is_near = table.most > 0 && table.entries as f64 >= table.most as f64 * NEARLY;
            let confidence = match overflows {
                0 if is_near => Confidence::Medium,
                0 => return None,
                overflows => self.confidence(overflows, 0, ANY),
            };
            let words = format!(
                "{} has {} entries (limit {}), and {overflows} new entries were rejected",
                table.name, table.entries, table.most
            );
            Some((confidence, words))
        });
        let (confidence, evidence) = found.min_by_key(|(confidence, _)| *confidence)?;
        finding(
            Limiter::Neighbours,
            confidence,
            evidence,
            "net.ipv4.neigh.default.gc_thresh1, 2 and 3 above the number of neighbours (net.ipv6 the same), or a \
             router in front of them",
        )
    }
}
