//! Predictions, their errors and link capacities as text for a terminal.

use onrush_measure::table::Table;
use onrush_measure::units;

use super::cost::Cost;
use super::cross_validation::{CrossValidated, median_error};
use super::measured::{Disturbance, Measured};
use super::model::{Limiter, Prediction};
use super::rows::Row;
use super::wire::{LinkRate, PacketsPerRequest, Size, TCP_HEADERS_BYTES};

/// A prediction with all its limits.
pub fn prediction(prediction: &Prediction) -> String {
    let mut text = format!(
        "{} of requests; first limit: {}\n\n",
        rate(prediction.rps),
        prediction.limiter
    );
    let rows = prediction.limits.iter().map(|limit| {
        vec![
            limit.limiter.to_string(),
            rate(limit.rps),
            limit.reason.clone(),
        ]
    });
    text.push_str(&table(&["limit", "allows", "why"], rows));
    text
}

/// A note for a prediction with more CPUs than the costs were measured with; otherwise empty.
pub fn extrapolation(measured: usize, predicted: usize) -> String {
    if predicted <= measured {
        return String::new();
    }
    format!(
        "\nExtrapolated: the costs were measured with {measured} CPUs at most, and the application has {predicted}. Contention \
         between more\ncores is not in them, so the prediction is an upper bound (docs/predict.md, \"The model\").\n"
    )
}

/// The packet costs of a prediction; empty if unknown.
pub fn packet_costs(cost: &Cost) -> String {
    let Some(packet) = &cost.packet else {
        return String::new();
    };
    format!(
        "\nA packet costs {:.2} us of its interrupt's CPU, {:.2} us in the stack; notifying another CPU costs {:.2} us, one of \
         another\nnode {:.2} us. Published figures are used where the cost file has none (docs/predict.md).\n",
        packet.driver_us, packet.stack_us, packet.interrupt_us, packet.far_interrupt_us
    )
}

/// One line per named prediction.
pub fn predictions(named: &[(String, String, Option<Prediction>)]) -> String {
    let rows = named.iter().map(|(work, variant, prediction)| {
        let (rps, limiter) = match prediction {
            Some(prediction) => (rate(prediction.rps), prediction.limiter.to_string()),
            None => (NOTHING.to_owned(), NOTHING.to_owned()),
        };
        vec![work.clone(), variant.clone(), rps, limiter]
    });
    table(&["work", "variant", "predicted", "full first"], rows)
}

/// Published rows with the prediction from the others and its error.
pub fn published(checked: &[CrossValidated<Row>]) -> String {
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    for one in checked {
        let row = &one.row;
        let mark = match row.note.is_empty() {
            true => String::new(),
            false => {
                notes.push(row.note.clone());
                format!(" [{}]", notes.len())
            }
        };
        let mut cells = vec![row.table.clone(), format!("{}{mark}", row.name)];
        cells.extend(cells_of(one));
        cells.push(row.full.map_or(NOTHING.to_owned(), |full| full.to_string()));
        rows.push(cells);
    }
    let mut text = table(
        &[
            "",
            "row",
            "figure",
            "predicted",
            "error",
            "full first",
            "was full",
        ],
        rows,
    );
    for (number, note) in (1..).zip(&notes) {
        text.push_str(&format!("[{number}] {note}\n"));
    }
    text.push('\n');
    for name in ["B", "C", "D"] {
        let of_table: Vec<CrossValidated<Row>> = checked
            .iter()
            .filter(|one| one.row.table == name)
            .cloned()
            .collect();
        text.push_str(&format!("{name}: {}\n", median(&of_table)));
    }
    let requests: Vec<CrossValidated<Row>> = checked
        .iter()
        .filter(|one| one.row.is_of_requests())
        .cloned()
        .collect();
    text.push_str(&format!(
        "requests, without packets and frames: {}\n",
        median(&requests)
    ));
    let named = |one: &&CrossValidated<Row>| one.row.full.is_some();
    let agrees =
        |one: &&CrossValidated<Row>| one.predicted.map(|(_, limiter)| limiter) == one.row.full;
    let known = checked.iter().filter(named).count();
    text.push_str(&format!(
        "all: {}; the full resource is known for {known} rows and predicted for {} of them\n",
        median(checked),
        checked.iter().filter(named).filter(agrees).count()
    ));
    text
}

/// Rows of a run with the prediction from the others of their series.
pub fn measured(checked: &[CrossValidated<Measured>]) -> String {
    let rows = checked.iter().map(|one| {
        let mut cells = vec![one.row.work.clone(), one.row.variant.clone()];
        cells.push(units::count(u64::from(one.row.connections)));
        cells.extend(cells_of(one));
        cells
    });
    let heads = [
        "work",
        "variant",
        "connections",
        "figure",
        "predicted",
        "error",
        "full first",
    ];
    let mut text = table(&heads, rows);
    let predicted: Vec<CrossValidated<Measured>> = checked
        .iter()
        .filter(|one| one.predicted.is_some())
        .cloned()
        .collect();
    text.push_str(&format!("\n{}", median(&predicted)));
    let alone = checked.len() - predicted.len();
    if alone > 0 {
        text.push_str(&format!(
            "; {alone} rows have no other row that differs in connections or CPUs only"
        ));
    }
    text.push('\n');
    let disturbed = checked
        .iter()
        .filter(|one| one.row.quiet == Disturbance::Disturbed)
        .count();
    if disturbed > 0 {
        text.push_str(&format!(
            "{disturbed} rows were disturbed in every round: other programs used part of the machine\n"
        ));
    }
    text
}

/// Capacity of a link for packets of several sizes.
pub fn wire(link: LinkRate, sizes: &[Size], packets: PacketsPerRequest) -> String {
    let rows = sizes.iter().map(|size| {
        let frames = link.frames(*size);
        let payload = size.payload_bytes();
        let payload_rate = match payload {
            0 => "no room".to_owned(),
            bytes => format!("{:.3} Gb/s", frames * bytes as f64 * 8.0 / 1e9),
        };
        vec![
            size.to_string(),
            size.frame_bytes().to_string(),
            size.wire_bytes().to_string(),
            units::count(frames.floor() as u64),
            payload.to_string(),
            payload_rate,
            units::count((frames / packets.count()).floor() as u64),
        ]
    });
    let heads = [
        "size",
        "frame",
        "on the link",
        "frames/s",
        "payload",
        "payload rate",
        "requests/s",
    ];
    let mut text = table(&heads, rows);
    text.push_str(&format!(
        "\nIn one direction, {} packets a request. Sizes from 68 on are MTUs, what IP may fill; smaller ones are frames.\n\
         A frame has 14 bytes of header and 4 of check sequence, 64 at least; 8 of preamble and 12 of gap are around it.\n\
         Payload is without {TCP_HEADERS_BYTES} bytes of IPv4 and TCP with time stamps.\n",
        packets.count()
    ));
    text
}

const NOTHING: &str = "–";

/// Cells of a row: figure, prediction, error, and predicted bottleneck.
pub fn cells_of<R>(one: &CrossValidated<R>) -> Vec<String> {
    let predicted = one.predicted.map(|(rps, _)| rate(rps));
    let error = one.error().map(|error| format!("{:+.0} %", error * 100.0));
    let full = one
        .predicted
        .map(|(_, limiter): (f64, Limiter)| limiter.to_string());
    let or_nothing = |cell: Option<String>| cell.unwrap_or(NOTHING.to_owned());
    vec![
        rate(one.figure),
        or_nothing(predicted),
        or_nothing(error),
        or_nothing(full),
    ]
}

/// The median error as a sentence.
pub fn median<R>(checked: &[CrossValidated<R>]) -> String {
    let rows = checked.len();
    match median_error(checked) {
        Some(error) => format!("median error {:.1} % over {rows} rows", error * 100.0),
        None => format!("no median error over {rows} rows"),
    }
}

fn rate(rps: f64) -> String {
    units::rate(rps)
}

fn table(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new(heads, 0..0);
    rows.into_iter().for_each(|row| table.push(row));
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extrapolated_predictions_are_marked() {
        assert_eq!(extrapolation(2, 2), "");
        assert!(extrapolation(2, 36).contains("with 2 CPUs at most, and the application has 36"));
    }
}
