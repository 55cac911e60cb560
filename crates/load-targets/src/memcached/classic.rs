//! Classic commands: set, delete, incr and others.

use super::cache::{Cache, Counts, StoreResult};
use super::change::{CountResult, StoreRequest, increment, store};
use super::command::{Step, Store};
use super::item::{Expiry, Item, Moment, Seconds};
use super::output::ResponseBuffer;
use super::reply::Reply;

/// Response to `version`: the version whose commands are implemented, since clients derive the available commands from
/// it, and libmemcached refuses a server with a major version of 0.
const VERSION_NUMBER: &str = concat!("1.6.18-onrush-", env!("CARGO_PKG_VERSION"));

/// Writes the response of a classic command unless it has `noreply`.
pub(super) struct ReplyWriter<'a> {
    pub(super) answers: &'a mut ResponseBuffer,
    pub(super) reply: Reply,
}

impl ReplyWriter<'_> {
    pub(super) fn write(self, text: &str) {
        if self.reply == Reply::Wanted {
            self.answers.line(text.as_bytes());
        }
    }
}

/// Writes a value of a `get`, or of a `gets` with its CAS unique.
pub(super) fn answer_value(
    key: &[u8],
    item: &Item,
    cas: Option<u64>,
    answers: &mut ResponseBuffer,
) {
    answers.text(b"VALUE ");
    answers.text(key);
    answers.text(b" ");
    answers.number(item.flags.into());
    answers.text(b" ");
    answers.number(item.bytes().len() as u64);
    if let Some(cas) = cas {
        answers.text(b" ");
        answers.number(cas);
    }
    answers.text(b"\r\n");
    answers.value(&item.value);
}

/// Stores the data block of a storage command.
pub(super) fn put(cache: &mut Cache, asked: Store<'_>, value: &[u8], now: Moment) -> &'static str {
    let wish = StoreRequest {
        key: asked.key,
        mode: asked.mode,
        flags: asked.flags,
        expiry: Expiry::from_exptime(asked.exptime, now),
        value,
        required_cas: None,
        is_invalidating: false,
    };
    match store(cache, wish, now.seconds) {
        StoreResult::As(_) => "STORED",
        StoreResult::Not => "NOT_STORED",
        StoreResult::Exists => "EXISTS",
        StoreResult::NotFound => "NOT_FOUND",
    }
}

pub(super) fn delete(cache: &mut Cache, key: &[u8], now: Seconds) -> &'static str {
    cache.counts.deletes += 1;
    match cache.remove(key, now) {
        true => {
            cache.counts.delete_hits += 1;
            "DELETED"
        }
        false => "NOT_FOUND",
    }
}

pub(super) fn step(
    cache: &mut Cache,
    key: &[u8],
    step: Step,
    now: Seconds,
    teller: ReplyWriter<'_>,
) {
    match increment(cache, (key, step), None, now) {
        CountResult::To(number) => teller.write(itoa::Buffer::new().format(number)),
        // Classic commands have no CAS unique.
        CountResult::NotFound | CountResult::Exists => teller.write("NOT_FOUND"),
        CountResult::NotNumeric => {
            teller.write("CLIENT_ERROR cannot increment or decrement non-numeric value");
        }
    }
}

pub(super) fn touch(cache: &mut Cache, key: &[u8], exptime: i32, now: Moment) -> &'static str {
    cache.counts.touches += 1;
    let Some(item) = cache.find(key, now.seconds) else {
        return "NOT_FOUND";
    };
    item.expiry = Expiry::from_exptime(exptime, now);
    // memcached counts a touch as an access.
    item.is_fetched = true;
    item.accessed = now.seconds;
    cache.counts.touch_hits += 1;
    "TOUCHED"
}

pub(super) fn flush_all(cache: &mut Cache, delay: i32, now: Moment) -> &'static str {
    cache.counts.flushes += 1;
    let at = match Expiry::from_exptime(delay, now) {
        Expiry::At(at) if delay > 0 => at,
        Expiry::At(_) | Expiry::Never => now.seconds,
    };
    cache.flush(at);
    "OK"
}

pub(super) fn version(answers: &mut ResponseBuffer) {
    answers.text(b"VERSION ");
    answers.line(VERSION_NUMBER.as_bytes());
}

/// Writes the counters of this core. Some tools request other topics as well; topics without data get only `END`.
pub(super) fn stats(
    cache: &mut Cache,
    topic: Option<&[u8]>,
    now: Moment,
    answers: &mut ResponseBuffer,
) {
    match topic {
        None => {
            // Not a number, but expected by the tools that read the statistics.
            answers.text(b"STAT version ");
            answers.line(VERSION_NUMBER.as_bytes());
            answer_stats(&general(cache, now), answers);
        }
        Some(b"settings") => {
            let of_settings = [
                ("maxbytes", cache.store().map_or(0, |store| store.memory())),
                ("item_size_max", cache.item_bytes_max().into()),
            ];
            answer_stats(&of_settings, answers);
        }
        Some(b"items" | b"slabs" | b"sizes" | b"conns") => answer_stats(&[], answers),
        Some(b"reset") => {
            cache.counts = Counts::default();
            answers.line(b"RESET");
        }
        Some(_) => answers.line(b"ERROR"),
    }
}

fn answer_stats(all: &[(&str, u64)], answers: &mut ResponseBuffer) {
    for (name, number) in all {
        answers.text(b"STAT ");
        answers.text(name.as_bytes());
        answers.text(b" ");
        answers.number(*number);
        answers.text(b"\r\n");
    }
    answers.line(b"END");
}

/// Returns the general statistics under memcached's names.
fn general(cache: &Cache, now: Moment) -> Vec<(&'static str, u64)> {
    let counts = cache.counts;
    let store = |of: fn(&super::store::Store) -> u64| cache.store().map_or(0, of);
    vec![
        ("pid", std::process::id().into()),
        ("uptime", cache.age(now.seconds)),
        ("time", now.unix),
        ("pointer_size", 8 * size_of::<usize>() as u64),
        ("cmd_get", counts.gets),
        ("cmd_set", counts.sets),
        ("cmd_flush", counts.flushes),
        ("cmd_touch", counts.touches),
        ("cmd_meta", counts.metas),
        ("get_hits", counts.get_hits),
        ("get_misses", counts.gets - counts.get_hits),
        ("delete_hits", counts.delete_hits),
        ("delete_misses", counts.deletes - counts.delete_hits),
        ("touch_hits", counts.touch_hits),
        ("touch_misses", counts.touches - counts.touch_hits),
        ("total_items", counts.stored),
        ("limit_maxbytes", store(|store| store.memory())),
        ("curr_items", store(|store| store.len() as u64)),
        ("bytes", store(|store| store.bytes())),
        ("evictions", store(|store| store.evicted())),
    ]
}
