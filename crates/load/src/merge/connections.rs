//! Connections, connect times and handshakes of several results.

use super::part::Part;
use super::span::round_to_thousandths;
use crate::report::Report;
use crate::report::rows::TlsRow;

pub(super) fn add_connections(sum: &mut Report, parts: &[Part]) {
    sum.connections = parts.iter().map(|part| part.report.connections).sum();
    sum.connect_own_us = connect_own(parts);
    sum.tls = tls(parts);
}

fn tls(parts: &[Part]) -> Option<TlsRow> {
    let rows = parts.iter().filter_map(|part| part.report.tls.clone());
    rows.reduce(sum_tls)
}

/// Mean of the generators' own part of the connect time, over all connections.
fn connect_own(parts: &[Part]) -> Option<f64> {
    let known = parts.iter().map(|part| &part.report);
    let known = known.filter_map(|report| Some((report.connect_own_us?, report.connections)));
    let (sum, count) = known.fold((0.0, 0), |(sum, count), (own_us, connections)| {
        (sum + own_us * connections as f64, count + connections)
    });
    (count > 0).then(|| round_to_thousandths(sum / count as f64))
}

fn sum_tls(one: TlsRow, other: TlsRow) -> TlsRow {
    let handshakes = one.handshakes + other.handshakes;
    let mean = |of: fn(&TlsRow) -> f64| {
        let sum = of(&one) * one.handshakes as f64 + of(&other) * other.handshakes as f64;
        round_to_thousandths(sum / handshakes.max(1) as f64)
    };
    TlsRow {
        handshakes,
        resumed: one.resumed + other.resumed,
        mean_us: mean(|row| row.mean_us),
        own_us: mean(|row| row.own_us),
        ..one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(connections: u64, connect_own_us: Option<f64>, own_us: f64) -> Part {
        let report = Report {
            connections,
            connect_own_us,
            tls: Some(TlsRow {
                handshakes: connections,
                mean_us: 2.0 * own_us,
                own_us,
                ..TlsRow::default()
            }),
            ..Report::default()
        };
        Part {
            name: "part".to_owned(),
            report,
        }
    }

    #[test]
    fn means_cover_all_known_connections() {
        let mut sum = Report::default();
        // The last part is of a version that did not measure it.
        let parts = [
            part(1, Some(10.0), 100.0),
            part(3, Some(30.0), 300.0),
            part(6, None, 0.0),
        ];
        add_connections(&mut sum, &parts);
        assert_eq!(sum.connections, 10);
        assert_eq!(sum.connect_own_us, Some(25.0));
        let tls = sum.tls.clone().unwrap();
        assert_eq!(
            (tls.handshakes, tls.own_us, tls.mean_us),
            (10, 100.0, 200.0)
        );
        add_connections(&mut sum, &[part(5, None, 0.0)]);
        assert_eq!(sum.connect_own_us, None);
    }
}
