//! Flags of requests to memcached.

use std::time::Duration;

use onrush_load::memcached::keys::{self, Distribution};
use onrush_load::memcached::ratio::Ratio;
use onrush_load::memcached::sizes::LengthDistribution;
use onrush_load::memcached::{
    CasUnique, Dialect, MemcachedOptions, Populate, TransportKind, Verify,
};
use onrush_load::target::Target;
use onrush_measure::amount::{count, duration};

/// What is asked of memcached.
#[derive(clap::Args, Debug, Default)]
#[command(next_help_heading = "memcached")]
pub(super) struct MemcachedArgs {
    /// Protocol: text (get, set ...), meta (mg, ms ...), or meta-quiet (no responses for the normal case) [default: text]
    #[arg(long, value_name = "NAME", value_parser = Dialect::parse, hide_short_help = true)]
    protocol: Option<Dialect>,

    /// Use UDP: one datagram per request; a response that does not arrive within the timeout (1s) is lost; the port is that of memcached -U
    #[arg(long, hide_short_help = true)]
    pub(super) udp: bool,

    /// Mix of commands, get:set:delete:incr, such as 9:1 [default: 1, gets only]
    #[arg(long, value_name = "RATIO", value_parser = Ratio::parse, hide_short_help = true)]
    ratio: Option<Ratio>,

    /// Number of keys [default: 10k]
    #[arg(long, value_name = "COUNT", value_parser = count, hide_short_help = true)]
    keys: Option<u64>,

    /// Distribution of keys: uniform, zipf:S, sequential, or hot:SHARE for one key [default: uniform]
    #[arg(long, value_name = "HOW", value_parser = Distribution::parse, hide_short_help = true)]
    key_distribution: Option<Distribution>,

    /// Key size in bytes: a number, a range 20-40, weights 20:9,40:1, or facebook [default: 16]
    #[arg(long, value_name = "SIZE", value_parser = LengthDistribution::of_keys, hide_short_help = true)]
    key_size: Option<LengthDistribution>,

    /// Value size in bytes, in the same forms [default: 100]
    #[arg(long, value_name = "SIZE", value_parser = LengthDistribution::of_values, hide_short_help = true)]
    value_size: Option<LengthDistribution>,

    /// Expiry time of stored values, in whole seconds up to 30 days [default: never]
    #[arg(long, value_name = "TIME", value_parser = expiry, hide_short_help = true)]
    expiry: Option<Duration>,

    /// Store all keys before the run; these requests are counted separately
    #[arg(long, hide_short_help = true)]
    populate: bool,

    /// Share of gets whose key is stored, such as 0.9 or 90% [default: all]
    #[arg(long, value_name = "SHARE", value_parser = share, hide_short_help = true)]
    hit_ratio: Option<f64>,

    /// Number of keys per get [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = count, hide_short_help = true)]
    multiget: Option<u64>,

    /// Also request the CAS value (gets, or mg with c)
    #[arg(long, hide_short_help = true)]
    gets: bool,

    /// Compare every byte of each value with the expected one
    #[arg(long, hide_short_help = true)]
    verify: bool,
}

fn expiry(text: &str) -> Result<Duration, String> {
    let expiry = duration(text).map_err(|why| why.to_string())?;
    if expiry.is_zero() || expiry.subsec_nanos() > 0 {
        return Err(format!(
            "{text:?} is not an expiry time of memcached: expected whole seconds of at least 1s; without --expiry items do not expire"
        ));
    }
    Ok(expiry)
}

fn share(text: &str) -> Result<f64, String> {
    keys::share(text).ok_or_else(|| {
        format!("{text:?} is not a share: expected 0 to 1 or 0% to 100%, such as 0.9")
    })
}

impl MemcachedArgs {
    /// The first of these flags that is given.
    pub(super) fn first_given(&self) -> Option<&'static str> {
        let flags = [
            ("--protocol", self.protocol.is_some()),
            ("--udp", self.udp),
            ("--ratio", self.ratio.is_some()),
            ("--keys", self.keys.is_some()),
            ("--key-distribution", self.key_distribution.is_some()),
            ("--key-size", self.key_size.is_some()),
            ("--value-size", self.value_size.is_some()),
            ("--expiry", self.expiry.is_some()),
            ("--populate", self.populate),
            ("--hit-ratio", self.hit_ratio.is_some()),
            ("--multiget", self.multiget.is_some()),
            ("--gets", self.gets),
            ("--verify", self.verify),
        ];
        let mut given = flags.into_iter().filter(|(_, is_given)| *is_given);
        given.next().map(|(flag, _)| flag)
    }

    /// Requests to the server of `urls`, which is not empty; `other` is a given flag that memcached does not have.
    pub(super) fn asks(
        self,
        urls: &[Target],
        other: Option<&str>,
    ) -> Result<MemcachedOptions, String> {
        if let [_, second, ..] = urls {
            return Err(format!(
                "{} is a second URL, and a run uses one memcached server: start one run per server at the same time, and combine them with onrush load merge",
                second.url
            ));
        }
        if let Some(flag) = other {
            return Err(format!(
                "{flag} is only for HTTP, and {} uses memcached: remove the option; use --ratio, --keys and --value-size",
                urls[0].url
            ));
        }
        let none = MemcachedOptions::default();
        Ok(MemcachedOptions {
            dialect: self.protocol.unwrap_or(none.dialect),
            carrier: match self.udp {
                true => TransportKind::Datagrams,
                false => TransportKind::Streams,
            },
            ratio: self.ratio.unwrap_or(none.ratio),
            versions: match self.gets {
                true => CasUnique::Yes,
                false => CasUnique::No,
            },
            keys: self.keys.unwrap_or(none.keys),
            distribution: self.key_distribution.unwrap_or(none.distribution),
            key_sizes: self.key_size.unwrap_or(none.key_sizes),
            value_sizes: self.value_size.unwrap_or(none.value_sizes),
            expiry: self.expiry,
            hit_ratio: self.hit_ratio,
            multiget: self.multiget.unwrap_or(none.multiget),
            populate: match self.populate {
                true => Populate::Yes,
                false => Populate::No,
            },
            verify: match self.verify {
                true => Verify::Yes,
                false => Verify::No,
            },
        })
    }
}
