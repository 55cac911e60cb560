//! The seconds of a run as comma-separated values. Pure.

use crate::report::Report;
use crate::report::rows::SecondRow;

/// Names of the columns before the status classes.
const HEADER: &str = "time_s,unix_s,connections,requests,errors,rps,bytes_per_s,ttfb_us,ttlb_us,p50_us,p99_us,p99_9_us,max_us,service_p99_us";

/// Returns a header and one row per second. Unknown values are empty, never 0; missing classes have no column.
pub fn of(report: &Report) -> String {
    let classes = report.class_names();
    let names = classes.iter().filter(|name| !name.is_empty());
    let names: String = names
        .map(|name| format!(",{}", name.replace(' ', "_")))
        .collect();
    let mut text = format!("{HEADER}{names}\n");
    for row in &report.seconds {
        text.push_str(&line(row, &classes, report.began_unix_s));
        text.push('\n');
    }
    text
}

fn line(row: &SecondRow, classes: &[&str], began: Option<f64>) -> String {
    let known = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let at = began.map_or(String::new(), |began| format!("{:.3}", began + row.t));
    let mut cells = vec![
        row.t.to_string(),
        at,
        row.connections.to_string(),
        row.requests.to_string(),
        row.errors.to_string(),
        row.rps.to_string(),
        row.bytes_per_s.to_string(),
    ];
    let times = [
        row.ttfb_us,
        row.ttlb_us,
        row.p50_us,
        row.p99_us,
        row.p99_9_us,
        row.max_us,
        row.service_p99_us,
    ];
    cells.extend(times.map(known));
    let counts = classes.iter().zip(row.statuses);
    let counts = counts.filter(|(name, _)| !name.is_empty());
    cells.extend(counts.map(|(_, count)| count.to_string()));
    cells.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_rows_have_cell_per_column() {
        let report = Report {
            began_unix_s: Some(1_000.5),
            seconds: vec![
                SecondRow {
                    t: 1.0,
                    connections: 3,
                    requests: 50,
                    rps: 50.0,
                    p50_us: Some(12.5),
                    statuses: [0, 49, 0, 1, 0],
                    ..SecondRow::default()
                },
                SecondRow::default(),
            ],
            ..Report::default()
        };
        let text = of(&report);
        let cells: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(cells, [19, 19, 19]);
        assert_eq!(
            text.lines().nth(1),
            Some("1,1001.500,3,50,0,50,0,,,12.5,,,,,0,49,0,1,0")
        );
    }

    #[test]
    fn unused_status_class_has_no_column() {
        let report = Report {
            target: "grpc://h/a.B/C".to_owned(),
            seconds: vec![SecondRow {
                statuses: [1, 2, 0, 4, 5],
                ..SecondRow::default()
            }],
            ..Report::default()
        };
        let text = of(&report);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(",service_p99_us,not_gRPC,OK,4xx_codes,5xx_codes"));
        assert!(lines[1].ends_with(",1,2,4,5"), "{text}");
        let cells: Vec<usize> = lines.iter().map(|line| line.split(',').count()).collect();
        assert_eq!(cells, [18, 18]);
    }
}
