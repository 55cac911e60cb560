//! Rates of the last seconds, drawn as sparklines.

use std::collections::{BTreeMap, VecDeque};

use crate::moment::Snapshot;

const KEPT: usize = 240;

/// From the lowest bar to the highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Rates of the last seconds by name: [`History::TOTAL`], [`of_route`] or [`of_server`].
#[derive(Debug, Default)]
pub struct History {
    rates: BTreeMap<String, VecDeque<f64>>,
}

impl History {
    /// Name of the total over all clients. It collides with no route, whose names have a prefix.
    pub const TOTAL: &'static str = "";

    /// Appends a second. Routes and servers that are missing in it are forgotten.
    pub fn push(&mut self, moment: &Snapshot) {
        let mut before = std::mem::take(&mut self.rates);
        let mut keep = |name: String, rate: f64| {
            let mut rates = before.remove(&name).unwrap_or_default();
            if rates.len() == KEPT {
                rates.pop_front();
            }
            rates.push_back(rate);
            self.rates.insert(name, rates);
        };
        keep(History::TOTAL.to_owned(), moment.total.rate);
        for route in &moment.routes {
            keep(of_route(&route.name), route.rate);
        }
        for server in moment.servers() {
            keep(
                of_server(&server.group, &server.address),
                server.traffic.rate,
            );
        }
    }

    /// The last `width` seconds, one bar each, scaled to the highest of them.
    pub fn bars(&self, name: &str, width: usize) -> String {
        let rates = self.rates.get(name);
        let rates = rates.into_iter().flatten();
        let rates: Vec<f64> = rates.rev().take(width).copied().collect();
        let most = rates.iter().copied().fold(0.0, f64::max);
        let bar = |rate: &f64| match most > 0.0 {
            true => BARS[((rate / most * 7.0).round() as usize).min(7)],
            false => BARS[0],
        };
        rates.iter().rev().map(bar).collect()
    }
}

/// Name of a route's rates.
pub fn of_route(name: &str) -> String {
    format!("route {name}")
}

/// Name of a server's rates.
pub fn of_server(group: &str, address: &str) -> String {
    format!("server {group} {address}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Traffic;

    #[test]
    fn bar_heights_are_relative_to_maximum() {
        let mut history = History::default();
        assert_eq!(history.bars(History::TOTAL, 5), "");
        for rate in [0.0, 7.0, 14.0] {
            let mut moment = Snapshot::default();
            moment.total.rate = rate;
            if rate < 10.0 {
                moment.routes.push(Traffic {
                    name: "/x*".to_owned(),
                    ..Traffic::default()
                });
            }
            history.push(&moment);
        }
        assert_eq!(history.bars(History::TOTAL, 5), "▁▅█");
        assert_eq!(history.bars(History::TOTAL, 2), "▅█");
        assert_eq!(history.bars(&of_route("/x*"), 5), "", "it is gone");
    }
}
