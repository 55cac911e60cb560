//! Who is at the other end of connections that say so themselves: what few have stands here, by the places of the
//! connections in the engine's table, so that the others keep no room for it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

use onrush_tls::Info;

/// What connections of a core have said of themselves.
#[derive(Default)]
pub(crate) struct Identities {
    /// By place; as long as the last one that is encrypted needs.
    tls: RefCell<Vec<Option<Rc<Info>>>>,
    introduced: RefCell<HashMap<u32, SocketAddr>>,
}

impl Identities {
    /// This was agreed on in its handshake.
    pub(crate) fn agree(&self, place: u32, info: Rc<Info>) {
        let all = &mut *self.tls.borrow_mut();
        let index = place as usize;
        if all.len() <= index {
            all.resize(index + 1, None);
        }
        all[index] = Some(info);
    }

    /// It has been introduced as somebody else, by the PROXY protocol.
    pub(crate) fn introduce(&self, place: u32, client: SocketAddr) {
        self.introduced.borrow_mut().insert(place, client);
    }

    /// It ends.
    pub(crate) fn forget(&self, place: u32) {
        let mut tls = self.tls.borrow_mut();
        let info = tls.get_mut(place as usize).and_then(Option::take);
        drop(tls);
        drop(info);
        let mut introduced = self.introduced.borrow_mut();
        if !introduced.is_empty() {
            introduced.remove(&place);
        }
    }

    pub(crate) fn tls(&self, place: u32) -> Option<Rc<Info>> {
        self.tls.borrow().get(place as usize)?.clone()
    }

    pub(crate) fn introduced(&self, place: u32) -> Option<SocketAddr> {
        let introduced = self.introduced.borrow();
        match introduced.is_empty() {
            true => None,
            false => introduced.get(&place).copied(),
        }
    }
}
