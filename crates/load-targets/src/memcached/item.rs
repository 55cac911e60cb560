//! What a key stands for.

use std::rc::Rc;

/// Seconds of the server's own clock. Expiry is told by them, so a change of the date expires nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Seconds(pub(crate) u64);

/// A moment, by both clocks that a client can mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) seconds: Seconds,
    /// Since 1970.
    pub(crate) unix: u64,
}

/// When an item is no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expiry {
    Never,
    At(Seconds),
}

/// Times up to this are from now on, longer ones since 1970 (protocol.txt, "Expiration times").
const RELATIVE_MAX: i32 = 60 * 60 * 24 * 30;

impl Expiry {
    /// What a client means by this number: negative is at once.
    pub(crate) fn meant(exptime: i32, now: Moment) -> Self {
        let Seconds(seconds) = now.seconds;
        match u64::try_from(exptime) {
            Ok(0) => Expiry::Never,
            Ok(relative) if exptime <= RELATIVE_MAX => Expiry::At(Seconds(seconds + relative)),
            Ok(date) => Expiry::At(Seconds(seconds + date.saturating_sub(now.unix))),
            Err(_) => Expiry::At(now.seconds),
        }
    }

    pub(crate) fn has_come(self, now: Seconds) -> bool {
        match self {
            Expiry::Never => false,
            Expiry::At(at) => at <= now,
        }
    }

    /// Seconds that are left; `None` for ever.
    pub(crate) fn left(self, now: Seconds) -> Option<u64> {
        match self {
            Expiry::Never => None,
            Expiry::At(Seconds(at)) => Some(at.saturating_sub(now.0)),
        }
    }
}

/// What a key stands for. Cloning it copies no bytes of the value.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// With CR LF behind it, as it goes to a client.
    pub(crate) value: Rc<[u8]>,
    /// The client's, and nothing to us.
    pub(crate) flags: u32,
    /// Another one for each change.
    pub(crate) cas: u64,
    pub(crate) expiry: Expiry,
    pub(crate) accessed: Seconds,
    /// Somebody has got it since it was set.
    pub(crate) is_fetched: bool,
    /// A client has said that it is out of date (meta commands, flag I).
    pub(crate) is_stale: bool,
    /// A client has been told that it may make the next value.
    pub(crate) is_won: bool,
}

/// What stands behind each value.
pub(crate) const END: &[u8; 2] = b"\r\n";

impl Item {
    /// One that nobody has got yet. `value` has CR LF behind it.
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

    /// The value without what stands behind it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.value[..self.value.len() - END.len()]
    }
}

/// A value of these parts, with CR LF behind it.
pub(crate) fn value(parts: &[&[u8]]) -> Rc<[u8]> {
    let mut bytes = parts.concat();
    bytes.extend_from_slice(END);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_for_thirty_days_and_dates_beyond() {
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
            assert_eq!(Expiry::meant(exptime, now), expiry, "{exptime}");
        }
        assert!(Expiry::At(Seconds(100)).has_come(now.seconds));
        assert!(!Expiry::At(Seconds(101)).has_come(now.seconds));
        assert!(!Expiry::Never.has_come(now.seconds));
    }
}
