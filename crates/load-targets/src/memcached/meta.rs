//! Key and flags of a meta command. Many flags are returned in the response, in their order.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::limits::KEY_BYTES_MAX;
use super::number::{signed_32, unsigned, unsigned_32};
use super::output::ResponseBuffer;
use super::reply::{Refusal, Reply};

/// Parsed arguments of a meta command.
#[derive(Debug)]
pub(super) struct Meta<'l> {
    pub(super) key: Cow<'l, [u8]>,
    /// Whether the key is in base64, in the response as well.
    is_encoded: bool,
    /// All flags as written.
    flags: &'l [&'l [u8]],
    /// Whether success is answered (flag q).
    pub(super) reply: Reply,
    pub(super) wants_value: bool,
    /// Whether the access is not recorded (flag u).
    pub(super) is_untracked: bool,
    pub(super) is_invalidating: bool,
    pub(super) touch: Option<i32>,
    pub(super) vivify: Option<i32>,
    pub(super) recache: Option<i32>,
    pub(super) client_flags: u32,
    pub(super) cas: Option<u64>,
    pub(super) mode: Option<u8>,
    pub(super) initial: u64,
    pub(super) delta: u64,
}

/// Maximum of words of a command including its flags, as in memcached.
const WORDS_MAX: usize = 19;

/// Maximum size in bytes of an opaque, including its letter (protocol.txt, "The flags used by the 'mg' command").
const OPAQUE_BYTES_MAX: usize = 32;

impl<'l> Meta<'l> {
    /// Checks the lengths of the key, which is the second of `words`, and of the line.
    pub(super) fn check(words: &[&[u8]]) -> Result<(), Refusal> {
        if words[1].len() > KEY_BYTES_MAX {
            return Err(Refusal::with_text("CLIENT_ERROR bad command line format"));
        }
        match (words.len() > WORDS_MAX, words[0]) {
            (false, _) => Ok(()),
            (true, b"mg") => Err(Refusal::with_text(
                "CLIENT_ERROR options flags are too long",
            )),
            (true, _) => Err(Refusal::with_text("CLIENT_ERROR options flags too long")),
        }
    }

    /// Parses a command whose key is the second of `words`; its flags start after `fixed` words.
    pub(super) fn read(words: &'l [&'l [u8]], fixed: usize) -> Result<Self, Refusal> {
        Self::check(words)?;
        let key = words[1];
        let mut meta = Meta {
            key: Cow::Borrowed(key),
            is_encoded: false,
            flags: &words[fixed.min(words.len())..],
            reply: Reply::Wanted,
            wants_value: false,
            is_untracked: false,
            is_invalidating: false,
            touch: None,
            vivify: None,
            recache: None,
            client_flags: 0,
            cas: None,
            mode: None,
            initial: 0,
            delta: 1,
        };
        meta.read_flags()?;
        if meta.all(b'O').any(|flag| flag.len() > OPAQUE_BYTES_MAX) {
            return Err(Refusal::with_text("CLIENT_ERROR opaque token too long"));
        }
        Ok(meta)
    }

    /// An unknown or repeated flag is reported at once; of other mistakes, the last one.
    fn read_flags(&mut self) -> Result<(), Refusal> {
        let mut seen = 0_u128;
        let mut wrong = None;
        for flag in self.flags {
            let letter = flag[0];
            if letter >= 127 || seen & (1 << letter) != 0 {
                return Err(Refusal::with_text("CLIENT_ERROR duplicate flag"));
            }
            seen |= 1 << letter;
            wrong = self.read_flag(letter, &flag[1..])?.or(wrong);
        }
        match wrong {
            Some(text) => Err(Refusal::with_text(text)),
            None => Ok(()),
        }
    }

    /// Parses a flag; returns the mistake in its value, if any.
    fn read_flag(&mut self, letter: u8, value: &[u8]) -> Result<Option<&'static str>, Refusal> {
        const BAD: &str = "CLIENT_ERROR bad token in command line format";
        let is_good = |is: bool, text: &'static str| (!is).then_some(text);
        Ok(match letter {
            b'b' => {
                self.is_encoded = true;
                let decoded = STANDARD.decode(&self.key).ok();
                let decoded = decoded.filter(|key| !key.is_empty());
                let is = decoded.map(|key| self.key = Cow::Owned(key)).is_some();
                is_good(is, "CLIENT_ERROR error decoding key")
            }
            b'N' => is_good(put(&mut self.vivify, signed_32(value)), BAD),
            b'T' => is_good(put(&mut self.touch, signed_32(value)), BAD),
            b'R' => is_good(put(&mut self.recache, signed_32(value)), BAD),
            b'C' => is_good(put(&mut self.cas, unsigned(value)), BAD),
            b'F' => {
                let flags = unsigned_32(value);
                self.client_flags = flags.unwrap_or_default();
                is_good(flags.is_some(), "CLIENT_ERROR bad command line format")
            }
            b'M' => {
                self.mode = value.first().copied();
                is_good(
                    value.len() == 1,
                    "CLIENT_ERROR incorrect length for M token",
                )
            }
            b'J' => {
                let initial = unsigned(value);
                self.initial = initial.unwrap_or_default();
                is_good(
                    initial.is_some(),
                    "CLIENT_ERROR invalid numeric initial value",
                )
            }
            b'D' => {
                let delta = unsigned(value);
                self.delta = delta.unwrap_or_default();
                is_good(delta.is_some(), "CLIENT_ERROR invalid numeric delta value")
            }
            b'v' => {
                self.wants_value = true;
                None
            }
            b'u' => {
                self.is_untracked = true;
                None
            }
            b'q' => {
                self.reply = Reply::Unwanted;
                None
            }
            b'I' => {
                self.is_invalidating = true;
                None
            }
            b'O' | b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' | b'l' | b'h' => None,
            _ => return Err(Refusal::with_text("CLIENT_ERROR invalid flag")),
        })
    }

    fn all(&self, letter: u8) -> impl Iterator<Item = &'l [u8]> {
        let flags = self.flags.iter();
        flags.copied().filter(move |flag| flag[0] == letter)
    }

    /// Writes the flags in order: opaque and key here, others by `answer`, which gets their letters.
    pub(super) fn answer_flags(
        &self,
        answers: &mut ResponseBuffer,
        mut answer: impl FnMut(u8, &mut ResponseBuffer),
    ) {
        for flag in self.flags {
            match flag[0] {
                b'O' => {
                    answers.text(b" ");
                    answers.text(flag);
                }
                b'k' => self.answer_key(answers),
                letter => answer(letter, answers),
            }
        }
    }

    fn answer_key(&self, answers: &mut ResponseBuffer) {
        answers.text(b" k");
        self.put_key(answers);
        if self.is_encoded {
            answers.text(b" b");
        }
    }

    /// Writes the key as the client wrote it.
    pub(super) fn put_key(&self, answers: &mut ResponseBuffer) {
        match self.is_encoded {
            false => answers.text(&self.key),
            true => answers.text(STANDARD.encode(&self.key).as_bytes()),
        }
    }
}

/// Stores a parsed value; returns whether there is one.
fn put<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let is_there = value.is_some();
    *place = value;
    is_there
}
