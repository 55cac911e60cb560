//! Sizes of datagrams: constant, round robin, uniform in a range, or the internet mix.

use std::fmt;

use onrush_engine::random::Random;
use onrush_measure::amount;
use onrush_packet::header::HEADER_BYTES;

use crate::limits::{DATAGRAM_BYTES_MAX, DATAGRAM_SIZES_MAX};

/// Sizes of payloads, in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// The text as given by the user.
    text: String,
    kind: SizeKind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum SizeKind {
    /// Round robin. Invariant: not empty.
    Listed(Box<[u16]>),
    /// Uniform in an inclusive range.
    Between(u16, u16),
}

/// Bytes of the IPv4 and UDP headers (RFC 791, RFC 768).
const IPV4_UDP_BYTES: u16 = 28;

/// The simple internet mix: 7 IP packets of 40 bytes, 4 of 576, 1 of 1,500 (RFC 6985 section 2), as UDP payloads. The
/// payload of the shortest is enlarged to hold a test header.
const IMIX: [(u16, usize); 3] = [
    (HEADER_BYTES as u16, 7),
    (576 - IPV4_UDP_BYTES, 4),
    (1500 - IPV4_UDP_BYTES, 1),
];

impl Sizes {
    /// Constant size, which must be within the limits.
    pub fn one(bytes: u16) -> Sizes {
        Sizes {
            text: bytes.to_string(),
            kind: SizeKind::Listed([bytes].into()),
        }
    }

    /// Parses `64`, `64,512,1400`, `64-1400` or `imix`. The plan checks that the header fits.
    ///
    /// # Errors
    /// A sentence with the text and the expected form.
    pub fn parse(text: &str) -> Result<Sizes, String> {
        let expected = |why: String| {
            format!(
                "{text:?} is not a datagram size: {why}; expected bytes of payload up to {DATAGRAM_BYTES_MAX} such as \
                 64, several in turn such as 64,512,1400, any of a range such as 64-1400, or imix"
            )
        };
        let one = |text: &str| -> Result<u16, String> {
            let bytes = amount::size(text).map_err(|why| why.to_string())?;
            if bytes == 0 {
                return Err("0 bytes cannot identify a datagram".to_owned());
            }
            match u16::try_from(bytes) {
                Ok(size) if usize::from(size) <= DATAGRAM_BYTES_MAX => Ok(size),
                Ok(_) | Err(_) => Err(format!(
                    "{bytes} bytes are more than UDP over IPv4 can carry"
                )),
            }
        };
        let kind = match text.split_once('-') {
            _ if text == "imix" => SizeKind::Listed(imix().into()),
            Some((low, high)) => match (one(low), one(high)) {
                (Ok(low), Ok(high)) if low <= high => SizeKind::Between(low, high),
                (Ok(_), Ok(_)) => return Err(expected("the range ends before it begins".into())),
                (Err(why), _) | (_, Err(why)) => return Err(expected(why)),
            },
            None => {
                let sizes: Result<Vec<u16>, String> = text.split(',').map(one).collect();
                let sizes = sizes.map_err(expected)?;
                if sizes.len() > DATAGRAM_SIZES_MAX {
                    return Err(expected(format!(
                        "it has more than {DATAGRAM_SIZES_MAX} sizes"
                    )));
                }
                SizeKind::Listed(sizes.into())
            }
        };
        Ok(Sizes {
            text: text.to_owned(),
            kind,
        })
    }

    /// Returns the bytes of datagram `number` of a flow; `random` is the flow's generator.
    #[inline]
    pub(crate) fn of(&self, number: u64, random: &Random) -> u16 {
        match &self.kind {
            SizeKind::Listed(sizes) => match **sizes {
                [size] => size,
                _ => sizes[(number % sizes.len() as u64) as usize],
            },
            SizeKind::Between(low, high) => {
                let width = f64::from(high - low) + 1.0;
                low + (random.unit_at(number) * width) as u16
            }
        }
    }

    /// Returns the size of all datagrams, if they have one size.
    pub fn constant(&self) -> Option<u16> {
        match &self.kind {
            SizeKind::Listed(sizes) => sizes
                .iter()
                .all(|size| *size == sizes[0])
                .then_some(sizes[0]),
            SizeKind::Between(low, high) => (low == high).then_some(*low),
        }
    }

    /// Returns the smallest size.
    pub fn smallest(&self) -> u16 {
        match &self.kind {
            SizeKind::Listed(sizes) => sizes.iter().copied().min().unwrap_or_default(),
            SizeKind::Between(low, _) => *low,
        }
    }

    /// Returns the largest size.
    pub fn largest(&self) -> u16 {
        match &self.kind {
            SizeKind::Listed(sizes) => sizes.iter().copied().max().unwrap_or_default(),
            SizeKind::Between(_, high) => *high,
        }
    }

    /// Returns the mean size.
    pub fn mean(&self) -> f64 {
        match &self.kind {
            SizeKind::Listed(sizes) => {
                let sum: f64 = sizes.iter().copied().map(f64::from).sum();
                sum / sizes.len() as f64
            }
            SizeKind::Between(low, high) => (f64::from(*low) + f64::from(*high)) / 2.0,
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// Returns one period of the mix, with equal sizes spread evenly (weighted round robin).
fn imix() -> Vec<u16> {
    let rounds: usize = IMIX.iter().map(|(_, weight)| weight).sum();
    let mut credit = [0; IMIX.len()];
    let mut sizes = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        for (credit, (_, weight)) in credit.iter_mut().zip(IMIX) {
            *credit += weight as i64;
        }
        let richest = (0..IMIX.len()).max_by_key(|at| credit[*at]).unwrap_or(0);
        credit[richest] -= rounds as i64;
        sizes.push(IMIX[richest].0);
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_and_used_in_turn() {
        let random = Random::new(1);
        let of = |text: &str, count: u64| -> Vec<u16> {
            let sizes = Sizes::parse(text).unwrap();
            (0..count).map(|number| sizes.of(number, &random)).collect()
        };
        assert_eq!(of("64", 3), [64, 64, 64]);
        assert_eq!(of("64,512", 3), [64, 512, 64]);
        let some = of("64-66", 1000);
        assert!([64, 65, 66].iter().all(|size| some.contains(size)));
        assert!(some.iter().all(|size| (64..=66).contains(size)));
        assert_eq!(some, of("64-66", 1000), "they are the same each time");
    }

    #[test]
    fn imix_has_ratio_7_4_1() {
        let sizes = imix();
        let count = |size: u16| sizes.iter().filter(|one| **one == size).count();
        assert_eq!((count(18), count(548), count(1472)), (7, 4, 1));
        let mean = Sizes::parse("imix").unwrap().mean();
        assert!((mean - (7.0 * 18.0 + 4.0 * 548.0 + 1472.0) / 12.0).abs() < 1e-9);
    }

    #[test]
    fn invalid_sizes_are_refused() {
        for (text, part) in [
            ("0", "cannot identify a datagram"),
            ("65508", "more than UDP over IPv4 can carry"),
            ("99999", "99999 bytes are more than UDP over IPv4 can carry"),
            ("", "is not a size"),
            ("64-", "is not a size"),
            ("100-64", "ends before it begins"),
            ("64,x", "is not a size"),
        ] {
            let sentence = Sizes::parse(text).unwrap_err();
            assert!(sentence.contains(part), "{sentence}");
        }
    }

    #[test]
    fn constant_and_largest_size_are_detected() {
        assert_eq!(Sizes::parse("64,64").unwrap().constant(), Some(64));
        assert_eq!(Sizes::parse("64-65").unwrap().constant(), None);
        assert_eq!(Sizes::parse("64-1400").unwrap().largest(), 1400);
    }
}
