//! Validated requests of a run: maps a request number to its command, keys and bytes. Pure.

pub(crate) mod gets;
mod lines;

use onrush_engine::random::{Random, scaled};

use super::check::{REST_BYTES_MAX, check, digits, get_bytes};
use super::keys::KeySelector;
use super::kinds::kind;
use super::opaque::Opaque;
use super::ratio::{Command, Ratio};
use super::sizes::LengthDistribution;
use super::value::Values;
use super::{CasUnique, Dialect, MemcachedOptions, TransportKind, Verify};
use crate::limits::KEY_BYTES_MAX;
use crate::requests::request::RequestKind;
use gets::GetTemplate;

/// Constants that separate the random sequences of one seed.
const COMMAND_STREAM: u64 = 0x636f_6d6d_616e_6473;
const KEY_SIZE_STREAM: u64 = 0x6b65_7973_697a_6573;
const VALUE_SIZE_STREAM: u64 = 0x7661_6c75_6573_697a;

#[derive(Debug)]
pub(crate) struct Workload {
    dialect: Dialect,
    carrier: TransportKind,
    /// Commands with a nonzero weight.
    commands: Box<[Command]>,
    kinds: Box<[RequestKind]>,
    /// Cumulative weights of the commands.
    weights: Box<[u64]>,
    order: Order,
    keys: u64,
    /// Share of the keys in gets that have a value.
    hit_ratio: Option<f64>,
    key_sizes: LengthDistribution,
    value_sizes: LengthDistribution,
    values: Values,
    expiry: u64,
    multiget: u64,
    versions: CasUnique,
    verify: Verify,
    seed: u64,
    gets: Option<GetTemplate>,
}

#[derive(Debug)]
enum Order {
    Drawn(KeySelector),
    /// Storing all keys: request `n` stores key number `n` counted from this one, where counters follow the keys with
    /// values.
    Populate(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    space: KeySpace,
    number: u64,
}

/// Disjoint sets of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KeySpace {
    /// Keys with values.
    Stored,
    /// Keys that are never stored.
    Absent,
    Counter,
}

impl KeySpace {
    fn letter(self) -> u8 {
        match self {
            KeySpace::Stored => b'k',
            KeySpace::Absent => b'a',
            KeySpace::Counter => b'c',
        }
    }
}

impl Workload {
    /// Checks `asks`.
    ///
    /// # Errors
    /// A sentence with the reason and a remedy.
    pub(crate) fn new(asks: &MemcachedOptions, seed: u64) -> Result<Workload, String> {
        check(asks)?;
        let (commands, weights): (Vec<Command>, Vec<u64>) = asks.ratio.weights().unzip();
        let sums = weights.iter().scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        let kinds = commands.iter().map(|command| kind(asks, *command));
        let mut workload = Workload {
            dialect: asks.dialect,
            carrier: asks.carrier,
            kinds: kinds.collect(),
            commands: commands.into(),
            weights: sums.collect(),
            order: Order::Drawn(KeySelector::new(asks.distribution, asks.keys)),
            keys: asks.keys,
            hit_ratio: asks.hit_ratio,
            key_sizes: asks.key_sizes.clone(),
            value_sizes: asks.value_sizes.clone(),
            values: Values::new(),
            expiry: asks.expiry.map_or(0, |expiry| expiry.as_secs().max(1)),
            multiget: asks.multiget,
            versions: asks.versions,
            verify: asks.verify,
            seed,
            gets: None,
        };
        workload.gets = GetTemplate::of(&workload);
        Ok(workload)
    }

    /// Creates the workload that stores all keys of `asks`. Returns it with the number of requests in part `index` of
    /// `count`.
    pub(crate) fn populate(
        asks: &MemcachedOptions,
        seed: u64,
        (index, count): (u64, u64),
    ) -> Result<(Workload, u64), String> {
        let counters = match asks.ratio.has(Command::Increment) {
            true => asks.keys,
            false => 0,
        };
        let all = asks.keys + counters;
        let [from, to] = [index, index + 1].map(|part| all * part / count);
        let sets = MemcachedOptions {
            ratio: Ratio::SETS,
            dialect: Dialect::Text,
            hit_ratio: None,
            multiget: 1,
            versions: CasUnique::No,
            ..asks.clone()
        };
        let workload = Workload {
            order: Order::Populate(from),
            ..Workload::new(&sets, seed)?
        };
        Ok((workload, to - from))
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn carrier(&self) -> TransportKind {
        self.carrier
    }

    pub(crate) fn versions(&self) -> CasUnique {
        self.versions
    }

    pub(crate) fn verify(&self) -> Verify {
        self.verify
    }

    /// Returns the fast path of gets, if the requests permit it.
    #[inline]
    pub(crate) fn gets(&self) -> Option<&GetTemplate> {
        self.gets.as_ref()
    }

    pub(crate) fn kinds(&self) -> &[RequestKind] {
        &self.kinds
    }

    /// Returns the index of the kind of request `number`.
    #[inline]
    pub(crate) fn kind_of(&self, number: u64) -> usize {
        match self.commands.len() {
            1 => 0,
            kinds => {
                let bits = Random::stream(self.seed ^ COMMAND_STREAM, number).bits();
                let point = scaled(bits, self.weights[kinds - 1]);
                self.weights.partition_point(|end| *end <= point)
            }
        }
    }

    #[inline]
    pub(crate) fn command(&self, number: u64) -> Command {
        self.commands[self.kind_of(number)]
    }

    /// Returns the number of keys of a request with `command`.
    #[inline]
    pub(crate) fn keys_of(&self, command: Command) -> u64 {
        match command {
            Command::Get => self.multiget,
            Command::Set | Command::Delete | Command::Increment => 1,
        }
    }

    #[inline]
    pub(crate) fn key(&self, command: Command, number: u64, index: u64) -> Key {
        let place = match self.multiget {
            1 => number,
            keys => number.wrapping_mul(keys).wrapping_add(index),
        };
        let picker = match &self.order {
            Order::Drawn(picker) => picker,
            Order::Populate(from) => return self.filled(from + number),
        };
        let random = Random::stream(self.seed, place);
        let key = picker.pick(&random, place, self.keys);
        let space = match (command, self.hit_ratio) {
            (Command::Increment, _) => KeySpace::Counter,
            (Command::Get, Some(share)) if random.unit() >= share => KeySpace::Absent,
            (Command::Get | Command::Set | Command::Delete, _) => KeySpace::Stored,
        };
        Key { space, number: key }
    }

    /// Returns the key that is stored at position `place`.
    fn filled(&self, place: u64) -> Key {
        match place.checked_sub(self.keys) {
            None => Key {
                space: KeySpace::Stored,
                number: place,
            },
            Some(number) => Key {
                space: KeySpace::Counter,
                number,
            },
        }
    }

    fn key_bytes(&self, number: u64) -> usize {
        let bytes = self.key_sizes.of(self.seed ^ KEY_SIZE_STREAM, number);
        match self.key_sizes {
            LengthDistribution::FacebookKeys => bytes.clamp(1 + digits(number), KEY_BYTES_MAX),
            LengthDistribution::Fixed(_)
            | LengthDistribution::Range(..)
            | LengthDistribution::Weighted(_)
            | LengthDistribution::FacebookValues => bytes,
        }
    }

    #[inline]
    pub(crate) fn value_bytes(&self, key: Key) -> usize {
        match key.space {
            KeySpace::Stored | KeySpace::Absent => self
                .value_sizes
                .of(self.seed ^ VALUE_SIZE_STREAM, key.number),
            KeySpace::Counter => COUNTER.len(),
        }
    }

    /// Whether `bytes` equal the value of `key` from offset `from`.
    pub(crate) fn matches(&self, key: Key, from: usize, bytes: &[u8]) -> bool {
        self.values.matches(key.number, from, bytes)
    }

    /// Returns the opaque for key `index` of request `number` in the meta protocols.
    #[inline]
    pub(crate) fn opaque(&self, number: u64, index: u64) -> Opaque {
        Opaque::of(number.wrapping_mul(self.multiget).wrapping_add(index))
    }

    /// Returns the difference between the opaques of two consecutive requests.
    pub(crate) fn opaques_of_request(&self) -> u64 {
        self.multiget
    }

    /// Returns an upper bound of a request's bytes.
    pub(crate) fn bytes_max(&self) -> usize {
        let key = 1 + self.key_sizes.max();
        let largest = self.commands.iter().map(|command| match command {
            Command::Get => get_bytes(self.dialect, key, self.multiget as usize),
            Command::Delete | Command::Increment => REST_BYTES_MAX + key,
            Command::Set => REST_BYTES_MAX + key + self.value_sizes.max().max(COUNTER.len()),
        });
        largest.max().unwrap_or(REST_BYTES_MAX)
    }
}

const COUNTER: &[u8] = b"0";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::requests::memcached::keys::Distribution;

    fn asks(change: impl FnOnce(&mut MemcachedOptions)) -> MemcachedOptions {
        let mut asks = MemcachedOptions {
            keys: 100,
            key_sizes: LengthDistribution::Fixed(5),
            value_sizes: LengthDistribution::Fixed(4),
            ..MemcachedOptions::default()
        };
        change(&mut asks);
        asks
    }

    fn workload(change: impl FnOnce(&mut MemcachedOptions)) -> Workload {
        Workload::new(&asks(change), 0).unwrap()
    }

    fn written(workload: &Workload, numbers: std::ops::Range<u64>) -> String {
        let mut out = Vec::new();
        for number in numbers {
            let before = out.len();
            workload.write(number, &mut out);
            assert!(out.len() - before <= workload.bytes_max());
        }
        String::from_utf8(out).unwrap()
    }

    /// Returns a request for the first key.
    fn first(dialect: Dialect, ratio: &str, change: impl FnOnce(&mut MemcachedOptions)) -> String {
        let workload = workload(|asks| {
            asks.dialect = dialect;
            asks.ratio = Ratio::parse(ratio).unwrap();
            asks.distribution = Distribution::Sequential;
            change(asks);
        });
        written(&workload, 0..1)
    }

    #[test]
    fn requests_match_memcached_protocol() {
        let mark = {
            let mut out = Vec::new();
            Values::new().write(0, 4, &mut out);
            String::from_utf8(out).unwrap()
        };
        let same = |_: &mut MemcachedOptions| ();
        for (dialect, ratio, expected) in [
            (Dialect::Text, "1", "get k0000\r\n".to_owned()),
            (
                Dialect::Text,
                "0:1",
                format!("set k0000 0 0 4\r\n{mark}\r\n"),
            ),
            (Dialect::Text, "0:0:1", "delete k0000\r\n".to_owned()),
            (Dialect::Text, "0:0:0:1", "incr c0000 1\r\n".to_owned()),
            (Dialect::Meta, "1", "mg k0000 v Oaaaa\r\n".to_owned()),
            (
                Dialect::Meta,
                "0:1",
                format!("ms k0000 4 Oaaaa\r\n{mark}\r\n"),
            ),
            (Dialect::Meta, "0:0:1", "md k0000 Oaaaa\r\n".to_owned()),
            (Dialect::Meta, "0:0:0:1", "ma c0000 Oaaaa\r\n".to_owned()),
            (Dialect::MetaQuiet, "1", "mg k0000 v q Oaaaa\r\n".to_owned()),
        ] {
            assert_eq!(first(dialect, ratio, same), expected);
        }
        assert_eq!(
            first(Dialect::Text, "1", |asks| {
                asks.multiget = 3;
                asks.versions = CasUnique::Yes;
            }),
            "gets k0000 k0001 k0002\r\n"
        );
        assert_eq!(
            first(Dialect::Text, "0:1", |asks| {
                asks.expiry = Some(Duration::from_secs(60));
            }),
            format!("set k0000 0 60 4\r\n{mark}\r\n")
        );
        assert_eq!(
            first(Dialect::Meta, "0:1", |asks| {
                asks.expiry = Some(Duration::from_secs(60));
            }),
            format!("ms k0000 4 T60 Oaaaa\r\n{mark}\r\n")
        );
        assert_eq!(
            first(Dialect::Meta, "1", |asks| asks.versions = CasUnique::Yes),
            "mg k0000 v c Oaaaa\r\n"
        );
    }

    #[test]
    fn requests_are_reproducible() {
        let workload = workload(|asks| {
            asks.ratio = Ratio::parse("5:3:1:1").unwrap();
            asks.distribution = Distribution::Zipf(0.99);
            asks.value_sizes = LengthDistribution::of_values("facebook").unwrap();
            asks.key_sizes = LengthDistribution::FacebookKeys;
            asks.hit_ratio = Some(0.5);
        });
        let once = written(&workload, 0..500);
        assert_eq!(once, written(&workload, 0..500));
        for word in ["get k", "get a", "set k", "delete k", "incr c"] {
            assert!(once.contains(word), "{word}");
        }
        assert_ne!(once, written(&workload, 500..1000));
    }

    #[test]
    fn commands_follow_ratio() {
        let workload = workload(|asks| asks.ratio = Ratio::parse("8:1:1").unwrap());
        let mut counts = [0_u64; 3];
        for number in 0..100_000 {
            counts[workload.kind_of(number)] += 1;
        }
        // Five standard deviations of a binomial with n = 100,000 and p = 0.1 are 474.
        assert!(counts[0].abs_diff(80_000) < 633, "{counts:?}");
        assert!(counts[1].abs_diff(10_000) < 474, "{counts:?}");
    }

    #[test]
    fn meta_multiget_sends_command_per_key() {
        let two = |asks: &mut MemcachedOptions| asks.multiget = 2;
        let text = first(Dialect::Meta, "1", two);
        assert_eq!(text, "mg k0000 v Oaaaa\r\nmg k0001 v Oaaab\r\n");
        let workload = workload(|asks| (asks.multiget, asks.dialect) = (2, Dialect::MetaQuiet));
        assert!(written(&workload, 5..6).ends_with(" q Oaaal\r\n"));
    }

    #[test]
    fn hit_ratio_is_share_of_stored_keys() {
        for share in [0.0, 0.3, 1.0] {
            let workload = workload(|asks| asks.hit_ratio = Some(share));
            let keys = (0..10_000).map(|number| workload.key(Command::Get, number, 0));
            let stored = keys.filter(|key| key.space == KeySpace::Stored).count();
            assert!(
                (stored as f64 / 1e4 - share).abs() < 0.025,
                "{share}: {stored}"
            );
        }
    }

    #[test]
    fn population_stores_each_key_once_across_shards() {
        let asks = asks(|asks| asks.ratio = Ratio::parse("1:0:0:1").unwrap());
        let mut keys = Vec::new();
        for index in 0..3 {
            let (workload, count) = Workload::populate(&asks, 0, (index, 3)).unwrap();
            for number in 0..count {
                let text = written(&workload, number..number + 1);
                keys.push(text.split(' ').nth(1).unwrap().to_owned());
            }
        }
        keys.sort();
        let expected =
            ["c", "k"].map(|letter| (0..100).map(move |key| format!("{letter}{key:04}")));
        assert_eq!(keys, expected.into_iter().flatten().collect::<Vec<_>>());
    }

    #[test]
    fn contradicting_options_are_refused() {
        type Change = fn(&mut MemcachedOptions);
        let cases: [(Change, &str); 7] = [
            (|asks| asks.keys = 0, "--keys 0 is out of range"),
            (|asks| asks.multiget = 0, "--multiget 0 is out of range"),
            (
                |asks| (asks.multiget, asks.dialect) = (1000, Dialect::Meta),
                "use 468 keys at most",
            ),
            (
                |asks| asks.keys = 100_000,
                "--key-size 5 is too short for 100000 different keys: expected 6 bytes",
            ),
            (
                |asks| asks.expiry = Some(Duration::from_secs(31 * 86_400)),
                "30 days at most",
            ),
            (|asks| asks.hit_ratio = Some(1.5), "is out of range"),
            (
                |asks| (asks.hit_ratio, asks.ratio) = (Some(0.5), Ratio::SETS),
                "--ratio has none",
            ),
        ];
        for (change, part) in cases {
            let error = Workload::new(&asks(change), 0).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
