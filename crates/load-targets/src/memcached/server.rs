//! State that the clients of a listener share on one core: the items, and a buffer for responses.

use std::cell::RefCell;

use onrush_config::plan::Memcached;
use onrush_engine::Core;

use super::cache::Cache;
use super::item::{Moment, Seconds};
use super::output::{Piece, ResponseBuffer};
use super::session::{Next, Session};

/// The store of a listener on one core.
pub struct Server {
    plan: Memcached,
    inner: RefCell<Inner>,
}

struct Inner {
    cache: Cache,
    answers: ResponseBuffer,
}

impl Server {
    pub(crate) fn new(plan: Memcached, now: Moment) -> Self {
        Self {
            plan,
            inner: RefCell::new(Inner {
                cache: Cache::new(plan, now),
                answers: ResponseBuffer::default(),
            }),
        }
    }

    pub(crate) fn plan(&self) -> Memcached {
        self.plan
    }

    /// Executes the complete commands in `input` and passes their responses to `send`. Returns the number of bytes
    /// consumed, the next step, and the result of `send`.
    pub(super) fn answer<T>(
        &self,
        session: &mut Session,
        input: &[u8],
        now: Moment,
        send: impl FnOnce(&mut dyn Iterator<Item = Piece<'_>>) -> T,
    ) -> (usize, Next, T) {
        let Inner { cache, answers } = &mut *self.inner.borrow_mut();
        let (done, next) = session.execute(input, cache, now, answers);
        let sent = send(&mut answers.pieces());
        answers.clear();
        (done, next, sent)
    }
}

pub(crate) fn now(core: &Core) -> Moment {
    Moment {
        seconds: Seconds(core.now().nanoseconds() / 1_000_000_000),
        unix: core.unix_seconds(),
    }
}

/// Checks that the responses to any input do not depend on how it is split; the first byte is the size of the pieces.
/// For the fuzzer and tests.
///
/// # Panics
/// If the responses differ.
pub fn check_any_input(bytes: &[u8]) {
    let Some((&cut, bytes)) = bytes.split_first() else {
        return;
    };
    let whole = answers_to(bytes, bytes.len().max(1));
    let pieces = answers_to(bytes, usize::from(cut) + 1);
    assert!(
        whole == pieces,
        "in pieces of {}: {} and as a whole {}",
        usize::from(cut) + 1,
        pieces.escape_ascii(),
        whole.escape_ascii()
    );
}

/// Returns the responses of a small cache to a new client whose bytes arrive in pieces of this size.
fn answers_to(bytes: &[u8], piece: usize) -> Vec<u8> {
    let now = Moment {
        seconds: Seconds(1_000),
        unix: 1_700_000_000,
    };
    let plan = Memcached::Stored {
        memory: 4 * 1024,
        item_bytes_max: 2 * 1024,
    };
    let (mut cache, mut answers) = (Cache::new(plan, now), ResponseBuffer::default());
    let (mut session, mut all, mut input) = (Session::default(), Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        input.extend_from_slice(piece);
        loop {
            let (done, next) = session.execute(&input, &mut cache, now, &mut answers);
            input.drain(..done);
            for piece in answers.pieces() {
                match piece {
                    Piece::Text(text) => all.extend_from_slice(text),
                    Piece::Value(value) => all.extend_from_slice(value),
                }
            }
            answers.clear();
            match next {
                Next::Flush => {}
                Next::Receive => break,
                Next::Close => return all,
            }
        }
    }
    all
}
