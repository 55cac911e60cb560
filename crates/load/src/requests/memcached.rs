//! What a run asks of memcached: commands, keys and values, as users describe them. Pure.
//!
//! ```text
//!  flags ──> Asks ──> workload::Workload ── number of a request ──> its command, its keys, their values
//! ```
//!
//! Everything about a request follows from its number in the run and the seed, and everything about a value from the
//! number of its key: so what a get must bring is known without remembering what was set.

pub mod filled;
pub mod keys;
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
use sizes::Sizes;

/// What is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Asks {
    /// The commands that are spoken.
    pub dialect: Dialect,
    /// What they are carried by.
    pub carrier: Carrier,
    /// How often each command comes.
    pub ratio: Ratio,
    /// Whether a get also asks for the unique number of the value's version.
    pub versions: Versions,
    /// How many keys have values.
    pub keys: u64,
    /// Which of them is asked for how often.
    pub distribution: Distribution,
    /// Bytes of keys.
    pub key_sizes: Sizes,
    /// Bytes of values.
    pub value_sizes: Sizes,
    /// After how long what is stored may be forgotten; none for never.
    pub expiry: Option<Duration>,
    /// The share of keys asked for by gets that are among those with values; the others never are.
    pub hit_ratio: Option<f64>,
    /// Keys of a get.
    pub multiget: u64,
    /// Whether all keys are stored before the run.
    pub populate: Populate,
    /// What is looked at of values.
    pub verify: Verify,
}

impl Default for Asks {
    /// Gets of the text protocol, one key each.
    fn default() -> Asks {
        Asks {
            dialect: Dialect::default(),
            carrier: Carrier::default(),
            ratio: Ratio::default(),
            versions: Versions::default(),
            keys: KEYS_DEFAULT,
            distribution: Distribution::default(),
            key_sizes: Sizes::Fixed(KEY_BYTES_DEFAULT),
            value_sizes: Sizes::Fixed(VALUE_BYTES_DEFAULT),
            expiry: None,
            hit_ratio: None,
            multiget: 1,
            populate: Populate::default(),
            verify: Verify::default(),
        }
    }
}

/// The commands that are spoken (memcached, doc/protocol.txt).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// `get`, `set`, `delete`, `incr`.
    #[default]
    Text,
    /// `mg`, `ms`, `md`, `ma`, each with an opaque that its answer carries.
    Meta,
    /// The same, quiet: misses, and what went as it should, are left unsaid; one `mn` ends what is sent at once.
    MetaQuiet,
}

impl Dialect {
    /// Its name on command lines and in results.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Text => "text",
            Dialect::Meta => "meta",
            Dialect::MetaQuiet => "meta-quiet",
        }
    }

    /// Reads a name.
    ///
    /// # Errors
    /// A sentence with what is expected; what is not spoken is refused with the reason.
    pub fn parse(text: &str) -> Result<Dialect, String> {
        match text {
            "text" => Ok(Dialect::Text),
            "meta" => Ok(Dialect::Meta),
            "meta-quiet" => Ok(Dialect::MetaQuiet),
            "binary" => Err("the binary protocol is not spoken: memcached has deprecated it since 1.6.0, and it gets no new commands; its quiet commands are those of meta-quiet".to_owned()),
            "sasl" => Err("SASL is not spoken: it exists in the binary protocol only, which memcached has deprecated since 1.6.0; give the server of a test no -S".to_owned()),
            _ => Err(format!("{text:?} is no protocol of memcached: expected text, meta or meta-quiet")),
        }
    }
}

/// What carries requests and answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Carrier {
    /// Connections: TCP, TLS or a Unix socket.
    #[default]
    Streams,
    /// UDP: a request is one datagram, an answer may be many.
    Datagrams,
}

/// Whether gets ask for the unique number of a value's version (CAS), too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Versions {
    /// `get`.
    #[default]
    No,
    /// `gets`, or `mg` with the flag `c`.
    Yes,
}

/// Whether all keys are stored before the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Populate {
    /// What is there is there.
    #[default]
    No,
    /// They are.
    Yes,
}

/// What is looked at of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verify {
    /// Their length, and that an end of line follows.
    #[default]
    No,
    /// All of their bytes, which must be those that belong to the key.
    Yes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_read_by_its_name_and_what_is_not_spoken_has_its_reason() {
        for dialect in [Dialect::Text, Dialect::Meta, Dialect::MetaQuiet] {
            assert_eq!(Dialect::parse(dialect.name()), Ok(dialect));
        }
        for (text, part) in [
            ("binary", "deprecated it since 1.6.0"),
            ("sasl", "in the binary protocol only"),
            ("redis", "expected text, meta or meta-quiet"),
        ] {
            let error = Dialect::parse(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
