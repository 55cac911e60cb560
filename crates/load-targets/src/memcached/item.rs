//! Items and their expiration.

use std::rc::Rc;

/// Seconds of the monotonic clock. Expiration is based on it, so setting the date expires nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Seconds(pub(crate) u64);

/// A moment on both clocks that a client may refer to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) seconds: Seconds,
    /// Seconds since 1970.
    pub(crate) unix: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expiry {
    Never,
    At(Seconds),
}

/// Longer expiration times are seconds since 1970 (protocol.txt, "Expiration times").
const RELATIVE_MAX: i32 = 60 * 60 * 24 * 30;

impl Expiry {
    /// Converts a client's expiration time; a negative one expires at once.
    pub(crate) fn from_exptime(exptime: i32, now: Moment) -> Self {
        let Seconds(seconds) = now.seconds;
        match u64::try_from(exptime) {
            Ok(0) => Expiry::Never,
            Ok(relative) if exptime <= RELATIVE_MAX => Expiry::At(Seconds(seconds + relative)),
            Ok(date) => Expiry::At(Seconds(seconds + date.saturating_sub(now.unix))),
            Err(_) => Expiry::At(now.seconds),
        }
    }

    pub(crate) fn is_expired(self, now: Seconds) -> bool {
        match self {
            Expiry::Never => false,
            Expiry::At(at) => at <= now,
        }
    }

    /// Returns the remaining seconds; `None` if it never expires.
    pub(crate) fn left(self, now: Seconds) -> Option<u64> {
        match self {
            Expiry::Never => None,
            Expiry::At(Seconds(at)) => Some(at.saturating_sub(now.0)),
        }
    }
}

/// Value of a key with its metadata. A clone shares the bytes of the value.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Includes CR LF, as it is sent to clients.
    pub(crate) value: Rc<[u8]>,
    /// Opaque flags of the client.
    pub(crate) flags: u32,
    /// CAS unique, which differs for each change.
    pub(crate) cas: u64,
    pub(crate) expiry: Expiry,
    pub(crate) accessed: Seconds,
    /// Whether it was read since it was set.
    pub(crate) is_fetched: bool,
    /// Whether a client has marked it as stale (meta commands, flag I).
    pub(crate) is_stale: bool,
    /// Whether a client was told that it may store the next value (flag W).
    pub(crate) is_won: bool,
}

pub(crate) const END: &[u8; 2] = b"\r\n";

impl Item {
    /// Creates an item that was not read yet. `value` includes CR LF.
    pub(crate) fn new(value: Rc<[u8]>, flags: u32, expiry: Expiry) -> Self {
        debug_assert!(value.ends_with(END));
        Self {
            value,
            flags,
            cas: 0,
            expiry,
            accessed: Seconds::default(),
            is_fetched: false,
            is_stale: false,
            is_won: false,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.value[..self.value.len() - END.len()]
    }
}

/// Concatenates the parts and adds CR LF.
pub(crate) fn value(parts: &[&[u8]]) -> Rc<[u8]> {
    let mut bytes = parts.concat();
    bytes.extend_from_slice(END);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exptime_over_thirty_days_is_absolute() {
        let now = Moment {
            seconds: Seconds(100),
            unix: 1_800_000_000,
        };
        for (exptime, expiry) in [
            (0, Expiry::Never),
            (5, Expiry::At(Seconds(105))),
            (RELATIVE_MAX, Expiry::At(Seconds(100 + 2_592_000))),
            (RELATIVE_MAX + 1, Expiry::At(Seconds(100))),
            (1_800_000_010, Expiry::At(Seconds(110))),
            (-1, Expiry::At(Seconds(100))),
        ] {
            assert_eq!(Expiry::from_exptime(exptime, now), expiry, "{exptime}");
        }
        assert!(Expiry::At(Seconds(100)).is_expired(now.seconds));
        assert!(!Expiry::At(Seconds(101)).is_expired(now.seconds));
        assert!(!Expiry::Never.is_expired(now.seconds));
    }
}
