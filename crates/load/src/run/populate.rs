//! Stores all keys in memcached before a run: a separate, unmeasured run over connections to the same server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::limits::socket::{FILL_DATAGRAM_BYTES, FILL_DATAGRAMS};
use crate::limits::{BATCH_BYTES_MAX, FILL_BATCH, FILL_SILENCE_S};
use crate::pace::error::Error;
use crate::pace::stop::Stop;
use crate::pace::{Pace, Start};
use crate::plan::{Connecting, Options, Plan, Shard};
use crate::protocol::Protocol;
use crate::report::Report;
use crate::requests::memcached::populate_result::PopulateResult;
use crate::requests::memcached::workload::Workload;
use crate::requests::memcached::{Populate, TransportKind};
use crate::run;

/// Stores all keys if configured, and keeps the result for the report. Each generator stores its share.
///
/// # Errors
/// As [`run::start`] and [`run::Running::finish`]; and [`Error::Unreachable`] if nothing could be stored.
pub fn populate(plan: &mut Plan) -> Result<Option<&PopulateResult>, Error> {
    let options = &plan.options;
    if !options.target.scheme.is_memcached() || options.memcached.populate == Populate::No {
        return Ok(None);
    }
    let filled = fill(&plan.options)?;
    if filled.keys > 0 && filled.stored == 0 {
        let complaint = filled.failure_message().unwrap_or_default();
        return Err(Error::Unreachable(complaint));
    }
    Ok(Some(plan.filled.insert(filled)))
}

fn fill(options: &Options) -> Result<PopulateResult, Error> {
    let Options {
        shard: Shard { index, count },
        seed,
        ..
    } = *options;
    let filling = Workload::populate(&options.memcached, seed, (index, count));
    let (workload, keys) = filling.map_err(Error::Invalid)?;
    if keys == 0 {
        return Ok(PopulateResult::default());
    }
    let protocol = Protocol::Memcached(Arc::new(workload));
    let own = options.shard.share().count_of(options.connections as u64);
    let bytes = protocol.request_bytes() as u64;
    let (connections, pipeline) = match protocol.carrier() {
        TransportKind::Streams => {
            let fitting = BATCH_BYTES_MAX as u64 / bytes;
            (own.clamp(1, keys), fitting.clamp(1, FILL_BATCH))
        }
        TransportKind::Datagrams => (1, (FILL_DATAGRAM_BYTES / bytes).clamp(1, FILL_DATAGRAMS)),
    };
    let options = Options {
        // A single thread takes keys in sequence, so none is skipped.
        threads: 1,
        connections: connections as usize,
        cpus: options.cpus.first().copied().into_iter().collect(),
        shard: Shard::default(),
        pipeline,
        stop: Stop {
            after: None,
            count: Some(keys),
        },
        pace: Pace::Closed,
        start: Start::default(),
        warm_up: Duration::ZERO,
        connecting: Connecting::AtStart,
        catch_up: None,
        start_at: None,
        skip_first: false,
        requests_per_connection: None,
        busy_poll: false,
        ..options.clone()
    };
    let running = run::start(Plan::of(options, protocol)?)?;
    let stopper = running.stopper();
    let (mut answers, mut silent) = (0, 0);
    let report = running.finish(|moment| {
        silent = if moment.responses > answers {
            0
        } else {
            silent + 1
        };
        answers = moment.responses;
        // Otherwise the requests in flight would time out one after the other.
        if silent >= FILL_SILENCE_S {
            stopper.stop_because("no value was stored for too long");
        }
    })?;
    Ok(filled(keys, &report))
}

fn filled(keys: u64, report: &Report) -> PopulateResult {
    let row = report.memcached.as_ref();
    let mut errors: BTreeMap<String, u64> = row.map(|row| row.errors.clone()).unwrap_or_default();
    // Error lines are already counted by text.
    let kinds = report.errors_by_kind.iter();
    let kinds = kinds.filter(|(kind, count)| **count > 0 && *kind != "unexpected_status");
    errors.extend(kinds.map(|(kind, count)| (kind.replace('_', " "), *count)));
    let said = report.statuses.iter();
    let said = said.filter(|(said, _)| *said == "not_stored" || *said == "exists");
    errors.extend(said.map(|(said, count)| (said.replace('_', " "), *count)));
    PopulateResult {
        keys,
        stored: row.map_or(0, |row| row.stored),
        value_bytes: row.map_or(0, |row| row.value_bytes_written),
        duration_s: report.duration_s,
        errors,
    }
}
