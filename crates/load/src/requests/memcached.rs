//! Workload of a memcached run: commands, keys and values. Pure.
//!
//! ```text
//!  flags ──> Asks ──> workload::Workload ── request number ──> its command, its keys, their values
//! ```
//!
//! A request depends only on its number in the run and the seed, and a value only on the number of its key. So the
//! value that a get must return is known without storing what was set.

pub mod keys;
pub mod populate_result;
pub mod ratio;
pub mod sizes;

pub(crate) mod opaque;
pub(crate) mod value;
pub(crate) mod workload;

mod check;
mod kinds;

use std::time::Duration;

use crate::limits::{KEY_BYTES_DEFAULT, KEYS_DEFAULT, VALUE_BYTES_DEFAULT};
use keys::Distribution;
use ratio::Ratio;
use sizes::LengthDistribution;

/// Options of a memcached run.
#[derive(Clone, PartialEq, Debug)]
pub struct MemcachedOptions {
    /// Protocol of the commands.
    pub dialect: Dialect,
    /// Transport.
    pub carrier: TransportKind,
    /// Weights of the commands.
    pub ratio: Ratio,
    /// Whether a get also requests the CAS unique of the value.
    pub versions: CasUnique,
    /// Number of keys with values.
    pub keys: u64,
    /// Distribution of requests over keys.
    pub distribution: Distribution,
    /// Lengths of keys.
    pub key_sizes: LengthDistribution,
    /// Lengths of values.
    pub value_sizes: LengthDistribution,
    /// Expiration time of stored values; `None` for never.
    pub expiry: Option<Duration>,
    /// Share of the keys in gets that have a value; the others are never stored.
    pub hit_ratio: Option<f64>,
    /// Keys per get.
    pub multiget: u64,
    /// Whether all keys are stored before the run.
    pub populate: Populate,
    /// Verification of values.
    pub verify: Verify,
}

impl Default for MemcachedOptions {
    /// Gets of one key in the text protocol.
    fn default() -> MemcachedOptions {
        MemcachedOptions {
            dialect: Dialect::default(),
            carrier: TransportKind::default(),
            ratio: Ratio::default(),
            versions: CasUnique::default(),
            keys: KEYS_DEFAULT,
            distribution: Distribution::default(),
            key_sizes: LengthDistribution::Fixed(KEY_BYTES_DEFAULT),
            value_sizes: LengthDistribution::Fixed(VALUE_BYTES_DEFAULT),
            expiry: None,
            hit_ratio: None,
            multiget: 1,
            populate: Populate::default(),
            verify: Verify::default(),
        }
    }
}

/// Protocol of the commands (memcached, doc/protocol.txt).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// `get`, `set`, `delete`, `incr`.
    #[default]
    Text,
    /// `mg`, `ms`, `md`, `ma`, each with an opaque that the response repeats.
    Meta,
    /// The same in quiet mode: misses and ordinary successes have no response, and one `mn` ends a batch.
    MetaQuiet,
}

impl Dialect {
    /// Returns the name on command lines and in results.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Text => "text",
            Dialect::Meta => "meta",
            Dialect::MetaQuiet => "meta-quiet",
        }
    }

    /// Parses a name.
    ///
    /// # Errors
    /// A sentence with the expected names, and the reason for unsupported protocols.
    pub fn parse(text: &str) -> Result<Dialect, String> {
        match text {
            "text" => Ok(Dialect::Text),
            "meta" => Ok(Dialect::Meta),
            "meta-quiet" => Ok(Dialect::MetaQuiet),
            "binary" => Err("the binary protocol is not supported: memcached has deprecated it since 1.6.0; meta-quiet \
                replaces its quiet commands".to_owned()),
            "sasl" => Err("SASL is not supported: it needs the binary protocol, which memcached has deprecated since \
                1.6.0; start the test server without -S".to_owned()),
            _ => Err(format!("{text:?} is not a memcached protocol: expected text, meta or meta-quiet")),
        }
    }
}

/// Transport of requests and responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TransportKind {
    /// Connections over TCP, TLS or a Unix socket.
    #[default]
    Streams,
    /// UDP: a request is one datagram, a response one or more.
    Datagrams,
}

/// Whether gets also request the CAS unique of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CasUnique {
    /// `get`.
    #[default]
    No,
    /// `gets`, or `mg` with the flag `c`.
    Yes,
}

/// Whether all keys are stored before the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Populate {
    /// No key is stored in advance.
    #[default]
    No,
    /// All keys are stored.
    Yes,
}

/// Verification of received values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verify {
    /// Only the length and the line end.
    #[default]
    No,
    /// All bytes must equal the key's value.
    Yes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_are_parsed_and_unsupported_ones_refused() {
        for dialect in [Dialect::Text, Dialect::Meta, Dialect::MetaQuiet] {
            assert_eq!(Dialect::parse(dialect.name()), Ok(dialect));
        }
        for (text, part) in [
            ("binary", "deprecated it since 1.6.0"),
            ("sasl", "needs the binary protocol"),
            ("redis", "expected text, meta or meta-quiet"),
        ] {
            let error = Dialect::parse(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
