//! What is heard of a peer in the middle of a handshake: rustls tells it to those it asks, the resolver, the verifiers and
//! the ticketer, and to nobody else. They note it here, for the handshake that is in hand on this thread.

use std::cell::RefCell;
use std::mem;

use crate::certificate::names::Served;
use crate::secret::HeardSecrets;

/// What has been heard in one handshake.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Heard {
    /// The name that the client asked for, once its hello has been read.
    pub(crate) name: Option<Box<str>>,
    /// The certificate that the client gets, if requests are compared with it.
    pub(crate) served: Option<Served>,
    /// Whether the client's hello has been read.
    pub(crate) has_hello: bool,
    /// When what the session stands on ends, in seconds of Unix time: its client's certificate, or the session that was
    /// resumed. `None` when it stands on nothing that ends.
    pub(crate) ends: Option<u64>,
    /// Why the peer's certificate was refused, in a sentence.
    pub(crate) refused: Option<Box<str>>,
    /// Whether the record in hand could not be opened.
    pub(crate) is_unopened: bool,
    /// The traffic secrets of TLS 1.3, once rustls has them.
    pub(crate) secrets: HeardSecrets,
}

thread_local! {
    static HEARD: RefCell<Heard> = RefCell::new(Heard::default());
}

impl Heard {
    /// Does a piece of `work` of the handshake that this has been heard in.
    pub(crate) fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        HEARD.replace(mem::take(self));
        let result = work();
        *self = HEARD.take();
        result
    }
}

/// Notes something about the handshake in hand.
pub(crate) fn note(change: impl FnOnce(&mut Heard)) {
    HEARD.with_borrow_mut(change);
}

/// Whether the client's hello has been read.
pub(crate) fn has_hello() -> bool {
    HEARD.with_borrow(|heard| heard.has_hello)
}

/// Looks at the name that the client has asked for.
pub(crate) fn name<T>(look: impl FnOnce(Option<&str>) -> T) -> T {
    HEARD.with_borrow(|heard| look(heard.name.as_deref()))
}

/// When what the session in hand stands on ends.
pub(crate) fn ends() -> Option<u64> {
    HEARD.with_borrow(|heard| heard.ends)
}
