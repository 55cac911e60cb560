//! Checks options of a memcached run that exclude each other. Pure.

use super::ratio::Command;
use super::{Dialect, MemcachedOptions, TransportKind};
use crate::limits::{
    EXPIRY_MAX, KEY_BYTES_MAX, KEYS_MAX, MULTIGET_MAX, REQUEST_BYTES_MAX, VALUE_BYTES_MAX,
};

pub(super) fn check(asks: &MemcachedOptions) -> Result<(), String> {
    if !(1..=KEYS_MAX).contains(&asks.keys) {
        return Err(format!(
            "--keys {} is out of range: expected 1 to {KEYS_MAX}",
            asks.keys
        ));
    }
    if !(1..=MULTIGET_MAX).contains(&asks.multiget) {
        return Err(format!(
            "--multiget {} is out of range: expected 1 to {MULTIGET_MAX} keys for a get",
            asks.multiget
        ));
    }
    if asks.carrier == TransportKind::Datagrams && asks.dialect == Dialect::MetaQuiet {
        return Err(
            "--protocol meta-quiet leaves some requests without a response, which over UDP cannot be distinguished \
             from a loss: use text or meta with --udp".to_owned(),
        );
    }
    let shortest = 1 + digits(asks.keys - 1);
    if asks.key_sizes.min() < shortest {
        return Err(format!(
            "--key-size {} is too short for {} different keys: expected {shortest} bytes at least, a letter and the \
             key's number",
            asks.key_sizes.min(),
            asks.keys
        ));
    }
    if asks.key_sizes.max() > KEY_BYTES_MAX || asks.value_sizes.max() > VALUE_BYTES_MAX {
        return Err(format!(
            "keys are limited to {KEY_BYTES_MAX} bytes, and values to {VALUE_BYTES_MAX}"
        ));
    }
    if asks.expiry.is_some_and(|expiry| expiry > EXPIRY_MAX) {
        return Err(format!(
            "--expiry is too long: expected 30 days at most ({}h), since memcached reads a larger number as a date",
            EXPIRY_MAX.as_secs() / 3600
        ));
    }
    let bytes = |keys| get_bytes(asks.dialect, 1 + asks.key_sizes.max(), keys);
    if asks.multiget > 1 && bytes(asks.multiget as usize) > REQUEST_BYTES_MAX {
        let each = bytes(2) - bytes(1);
        return Err(format!(
            "--multiget {} with keys of {} bytes is more than {REQUEST_BYTES_MAX} bytes per get: use {} keys at most",
            asks.multiget,
            asks.key_sizes.max(),
            1 + (REQUEST_BYTES_MAX - bytes(1)) / each
        ));
    }
    if let Some(share) = asks.hit_ratio {
        if !(0.0..=1.0).contains(&share) {
            return Err(format!(
                "--hit-ratio {share} is out of range: expected 0 to 1"
            ));
        }
        if !asks.ratio.has(Command::Get) {
            return Err("--hit-ratio applies to gets, and --ratio has none".to_owned());
        }
    }
    Ok(())
}

pub(super) fn digits(number: u64) -> usize {
    number
        .checked_ilog10()
        .map_or(1, |digits| digits as usize + 1)
}

/// Maximum bytes of a request besides its keys and its value: a command, flags, two numbers, an opaque, two line ends,
/// and the `mn` of the batch.
pub(super) const REST_BYTES_MAX: usize = 64;

/// Returns an upper bound of the bytes of a get of `keys` keys, each with `key` bytes including a space.
pub(super) fn get_bytes(dialect: Dialect, key: usize, keys: usize) -> usize {
    match dialect {
        Dialect::Text => REST_BYTES_MAX + key * keys,
        Dialect::Meta | Dialect::MetaQuiet => (REST_BYTES_MAX + key) * keys,
    }
}
