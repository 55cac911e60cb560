//! Operations on items, shared by classic and meta commands.

use std::rc::Rc;

use super::cache::{Cache, StoreResult};
use super::command::{Direction, Mode, Step};
use super::item::{Expiry, Item, Seconds, value};
use super::number::unsigned;

#[derive(Clone, Copy, Debug)]
pub(super) struct StoreRequest<'l> {
    pub(super) key: &'l [u8],
    pub(super) mode: Mode,
    pub(super) flags: u32,
    pub(super) expiry: Expiry,
    pub(super) value: &'l [u8],
    /// For append and prepend: the required CAS unique.
    pub(super) required_cas: Option<u64>,
    /// With [`Mode::Cas`] and an outdated CAS unique, the value is stored nevertheless and marked as stale.
    pub(super) is_invalidating: bool,
}

/// Stores a value if the condition of its mode is met.
pub(super) fn store(cache: &mut Cache, wish: StoreRequest<'_>, now: Seconds) -> StoreResult {
    cache.counts.sets += 1;
    let there = cache.find(wish.key, now).cloned();
    let new = || Item::new(value(&[wish.value]), wish.flags, wish.expiry);
    let item = match (wish.mode, there) {
        (Mode::Set, _) | (Mode::Add, None) | (Mode::Replace, Some(_)) => new(),
        (Mode::Add, Some(_)) => return StoreResult::Not,
        (Mode::Replace | Mode::Append | Mode::Prepend, None) => return StoreResult::Not,
        (Mode::Cas(_), None) => return StoreResult::NotFound,
        (Mode::Cas(cas), Some(there)) if cas == there.cas => new(),
        (Mode::Cas(cas), Some(there)) if wish.is_invalidating && cas < there.cas => Item {
            expiry: there.expiry,
            is_stale: true,
            is_won: there.is_won,
            ..new()
        },
        (Mode::Cas(_), Some(_)) => return StoreResult::Exists,
        (mode, Some(there)) => {
            if wish
                .required_cas
                .is_some_and(|cas| cas != 0 && cas != there.cas)
            {
                return StoreResult::Exists;
            }
            let parts = match mode {
                Mode::Prepend => [wish.value, there.bytes()],
                _ => [there.bytes(), wish.value],
            };
            let length = parts.iter().map(|part| part.len()).sum::<usize>();
            if !u32::try_from(length).is_ok_and(|length| cache.takes(length)) {
                return StoreResult::Not;
            }
            Item::new(value(&parts), there.flags, there.expiry)
        }
    };
    cache.set(wish.key, item, now)
}

/// Result of an increment or decrement.
#[derive(Debug)]
pub(super) enum CountResult {
    To(u64),
    NotFound,
    /// The CAS unique differs.
    Exists,
    NotNumeric,
}

/// Increments or decrements a number. An increment wraps at 64 bits; a decrement stops at 0.
pub(super) fn increment(
    cache: &mut Cache,
    (key, step): (&[u8], Step),
    required_cas: Option<u64>,
    now: Seconds,
) -> CountResult {
    cache.counts.counts += 1;
    let Some(there) = cache.find(key, now).cloned() else {
        return CountResult::NotFound;
    };
    cache.counts.count_hits += 1;
    if there.bytes().is_empty() {
        return CountResult::NotNumeric;
    }
    if required_cas.is_some_and(|cas| cas != 0 && cas != there.cas) {
        return CountResult::Exists;
    }
    let Some(before) = unsigned(&there.value) else {
        return CountResult::NotNumeric;
    };
    let number = match step.direction {
        Direction::Up => before.wrapping_add(step.by),
        Direction::Down => before.saturating_sub(step.by),
    };
    let item = Item {
        value: padded(number, there.bytes().len()),
        ..there
    };
    cache.set(key, item, now);
    CountResult::To(number)
}

/// Formats a number; a value does not become shorter by a decrement (protocol.txt, "Increment/Decrement").
fn padded(number: u64, length: usize) -> Rc<[u8]> {
    let mut text = number.to_string();
    while text.len() < length {
        text.push(' ');
    }
    value(&[text.as_bytes()])
}
