//! The results in a merged result, each counted once. A part may itself be merged. Pure.

use std::collections::BTreeMap;

use super::part::Part;
use crate::report::Report;
use crate::report::reported_options::ShardRow;
use crate::report::rows::PartRow;
use crate::verdict::reason::{Reason, State};

/// Returns the results in all `parts`, in an order that does not depend on that of the parts.
///
/// # Errors
/// When a result or a share of the run occurs twice, or two results divide the run differently.
pub(super) fn of(parts: &[Part]) -> Result<Vec<PartRow>, String> {
    let members = || {
        let of_part = |part: &Part| -> Vec<(String, PartRow)> {
            let rows = rows(&part.report).into_iter();
            rows.map(|row| (part.name.clone(), row)).collect()
        };
        parts.iter().flat_map(of_part)
    };
    check_shards(members())?;
    check_distinct(members())?;
    let mut rows: Vec<PartRow> = members().map(|(_, row)| row).collect();
    rows.sort_by(|one, other| one.digest.cmp(&other.digest));
    Ok(rows)
}

/// Results in `report`: itself, if it is not merged.
fn rows(report: &Report) -> Vec<PartRow> {
    match report.parts.is_empty() {
        true => vec![PartRow {
            digest: digest(report),
            shard: report.options.shard,
        }],
        false => report.parts.clone(),
    }
}

/// Digest of the measurements. Two generators do not start in the same microsecond and measure exactly the same.
fn digest(report: &Report) -> String {
    let began_us = report
        .began_unix_s
        .map(|began| (began * 1e6).round() as u64);
    let times = report.histograms.as_ref();
    let text = format!(
        "{began_us:?} {:?} {:?} {} {} {} {:?}",
        report.clock.id,
        report.options.shard,
        report.requests,
        report.errors,
        report.bytes,
        times.map(|times| [&times.response, &times.service, &times.send_lag]),
    );
    format!("{:016x}", fnv_1a(text.as_bytes()))
}

/// 64-bit FNV-1a (Fowler, Noll, Vo): the same in every version and on every machine.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Rejects a result that occurs twice, as the same file, a copy, or within a merged result: it would be counted twice.
fn check_distinct(members: impl Iterator<Item = (String, PartRow)>) -> Result<(), String> {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for (name, row) in members {
        if let Some(other) = known.insert(row.digest, name.clone()) {
            return Err(format!(
                "{other} and {name} cannot be merged: they are the same result, or share a part, which would count \
                 twice; name the file of each generator once, and no sum beside its parts"
            ));
        }
    }
    Ok(())
}

/// Rejects results with the same share of the run, or that divide the run differently.
fn check_shards(members: impl Iterator<Item = (String, PartRow)>) -> Result<(), String> {
    let mut made: BTreeMap<ShardRow, String> = BTreeMap::new();
    for (name, row) in members {
        let Some(shard) = row.shard else {
            continue;
        };
        let ShardRow { part, of } = shard;
        if let Some((other, other_name)) = made.iter().find(|(other, _)| other.of != of) {
            return Err(format!(
                "{other_name} and {name} cannot be merged: one is a part of {}, the other of {of}",
                other.of
            ));
        }
        if let Some(other_name) = made.insert(shard, name.clone()) {
            return Err(format!(
                "{other_name} and {name} cannot be merged: both contain part {part} of {of}, which was run twice"
            ));
        }
    }
    Ok(())
}

/// Reason if shares of the run are missing; `None` if any result has no share.
pub(super) fn missing(rows: &[PartRow]) -> Option<Reason> {
    let shards = rows.iter().map(|row| row.shard);
    let shards: Vec<ShardRow> = shards.collect::<Option<_>>()?;
    let of = shards.first()?.of;
    let is_missing = |part: &u64| shards.iter().all(|shard| shard.part != *part);
    // Naming one is enough: the number of shares is unbounded.
    let first = (1..=of).find(is_missing)?;
    Some(Reason {
        state: State::Suspect,
        what: "parts of the run are missing".to_owned(),
        measured: format!("{} of {of}", of - shards.len() as u64),
        bound: "none".to_owned(),
        remedy: format!(
            "the load was smaller than planned, or result files are missing: name the files of all parts, such as that \
             of --shard {first}/{of}"
        ),
    })
}
