//! Facts of a handshake in progress that rustls passes only to its callbacks: the resolver, the verifiers and the
//! ticketer. They note them here, for the current handshake of this thread.

use std::cell::RefCell;
use std::mem;

use crate::certificate::names::ServedCertificate;
use crate::secret::HandshakeSecrets;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct HandshakeFacts {
    /// Name requested by the client, once its hello has been read.
    pub(crate) name: Option<Box<str>>,
    /// Certificate sent to the client, if requests are checked against it.
    pub(crate) served: Option<ServedCertificate>,
    pub(crate) has_hello: bool,
    /// Unix time at which the session ends, with the client's certificate or the resumed session; `None` without a
    /// limit.
    pub(crate) ends: Option<u64>,
    /// Why the peer's certificate was refused, as a sentence.
    pub(crate) refused: Option<Box<str>>,
    /// Whether the current record could not be decrypted.
    pub(crate) is_unopened: bool,
    /// Traffic secrets of TLS 1.3, once rustls has derived them.
    pub(crate) secrets: HandshakeSecrets,
}

thread_local! {
    static HEARD: RefCell<HandshakeFacts> = RefCell::new(HandshakeFacts::default());
}

impl HandshakeFacts {
    /// Runs a part of the handshake whose facts these are.
    pub(crate) fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        HEARD.replace(mem::take(self));
        let result = work();
        *self = HEARD.take();
        result
    }
}

/// Notes a fact of the current handshake.
pub(crate) fn note(change: impl FnOnce(&mut HandshakeFacts)) {
    HEARD.with_borrow_mut(change);
}

pub(crate) fn has_hello() -> bool {
    HEARD.with_borrow(|heard| heard.has_hello)
}

/// Passes the requested name to `look`.
pub(crate) fn name<T>(look: impl FnOnce(Option<&str>) -> T) -> T {
    HEARD.with_borrow(|heard| look(heard.name.as_deref()))
}

pub(crate) fn ends() -> Option<u64> {
    HEARD.with_borrow(|heard| heard.ends)
}
