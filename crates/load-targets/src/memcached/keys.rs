//! Keys of get commands. Their number is unlimited, so they are answered one by one, and neither the whole line nor all
//! responses are held.

use super::cache::Cache;
use super::classic::answer_value;
use super::item::{Expiry, Moment};
use super::limits::KEY_BYTES_MAX;
use super::line::without_return;
use super::number::signed_32;
use super::output::ResponseBuffer;

/// A get whose keys are being answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    number: ReturnCas,
    /// New expiration time of the items (gat, gats).
    touch: Option<i32>,
}

/// Whether the CAS unique is returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReturnCas {
    Asked,
    Unasked,
}

/// Result of a part of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeysProgress {
    /// The end of the line was reached.
    All,
    /// The rest of the line has not arrived.
    SoFar,
    /// There is no room for more responses.
    UpTo,
    /// A key is too long; the rest of the line is skipped.
    Bad,
}

/// Start of a line.
#[derive(Debug)]
pub(super) enum LineStart {
    /// The keys start after this many bytes.
    Keys(Keys, usize),
    Bad(&'static str),
    /// Another command.
    No,
}

const BAD_LINE: &str = "CLIENT_ERROR bad command line format";

/// Parses the start of a line. If `line` is `None`, its end has not arrived, and only `get` and `gets` are recognized.
pub(super) fn begin(bytes: &[u8], line: Option<&[u8]>) -> LineStart {
    let shown = line.unwrap_or(bytes);
    let start = shown.iter().take_while(|&&byte| byte == b' ').count();
    let words = &shown[start..];
    let name = words.split(|&byte| byte == b' ').next().unwrap_or_default();
    let (number, touches) = match name {
        b"get" => (ReturnCas::Unasked, false),
        b"gets" => (ReturnCas::Asked, false),
        b"gat" => (ReturnCas::Unasked, true),
        b"gats" => (ReturnCas::Asked, true),
        _ => return LineStart::No,
    };
    let behind = start + name.len();
    let Some(line) = line else {
        return match touches {
            true => LineStart::No,
            false => LineStart::Keys(
                Keys {
                    number,
                    touch: None,
                },
                behind,
            ),
        };
    };
    let mut rest = line[behind..].split(|&byte| byte == b' ');
    let mut rest = rest.by_ref().filter(|word| !word.is_empty());
    let Some(first) = rest.next() else {
        return LineStart::Bad("ERROR");
    };
    let (touch, behind) = match touches {
        false if first.len() > KEY_BYTES_MAX => return LineStart::Bad(BAD_LINE),
        false => (None, behind),
        true => match signed_32(first) {
            None => return LineStart::Bad("CLIENT_ERROR invalid exptime argument"),
            Some(exptime) => {
                let before = line[behind..].iter().take_while(|&&byte| byte == b' ');
                (Some(exptime), behind + before.count() + first.len())
            }
        },
    };
    // Checked before any key is answered.
    if rest.any(|key| key.len() > KEY_BYTES_MAX) {
        return LineStart::Bad(BAD_LINE);
    }
    LineStart::Keys(Keys { number, touch }, behind)
}

impl Keys {
    /// Answers the keys received so far. Returns the number of bytes consumed.
    pub(super) fn answer(
        self,
        bytes: &[u8],
        cache: &mut Cache,
        now: Moment,
        answers: &mut ResponseBuffer,
    ) -> (usize, KeysProgress) {
        let mut done = 0;
        loop {
            let rest = &bytes[done..];
            let Some(end) = memchr::memchr2(b' ', b'\n', rest) else {
                return match rest.len() > KEY_BYTES_MAX + 1 {
                    true => (done, KeysProgress::Bad),
                    false => (done, KeysProgress::SoFar),
                };
            };
            let is_last = rest[end] == b'\n';
            let key = match is_last {
                true => without_return(&rest[..end]),
                false => &rest[..end],
            };
            if key.len() > KEY_BYTES_MAX {
                return (done, KeysProgress::Bad);
            }
            if answers.are_full() && !key.is_empty() {
                return (done, KeysProgress::UpTo);
            }
            done += end + 1;
            if !key.is_empty() {
                self.answer_one(key, cache, now, answers);
            }
            if is_last {
                answers.line(b"END");
                return (done, KeysProgress::All);
            }
        }
    }

    fn answer_one(self, key: &[u8], cache: &mut Cache, now: Moment, answers: &mut ResponseBuffer) {
        let found = match self.touch {
            None => cache.get(key, now.seconds),
            Some(exptime) => {
                cache.counts.touches += 1;
                let found = cache.get(key, now.seconds).is_some();
                cache.counts.touch_hits += u64::from(found);
                let mut item = cache.find(key, now.seconds);
                if let Some(item) = &mut item {
                    item.expiry = Expiry::from_exptime(exptime, now);
                }
                item
            }
        };
        let Some(item) = found else {
            return;
        };
        item.is_fetched = true;
        item.accessed = now.seconds;
        let cas = (self.number == ReturnCas::Asked).then_some(item.cas);
        answer_value(key, item, cas, answers);
    }
}
