//! TLS parameters and PROXY protocol addresses of connections, indexed by the connection's place in the engine's table,
//! so that connections without them need no memory.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

use onrush_tls::Info;

#[derive(Default)]
pub(crate) struct Identities {
    /// By place; only as long as the last TLS connection requires.
    tls: RefCell<Vec<Option<Rc<Info>>>>,
    introduced: RefCell<HashMap<u32, SocketAddr>>,
}

impl Identities {
    /// Stores the TLS parameters of a connection.
    pub(crate) fn set_tls(&self, place: u32, info: Rc<Info>) {
        let all = &mut *self.tls.borrow_mut();
        let index = place as usize;
        if all.len() <= index {
            all.resize(index + 1, None);
        }
        all[index] = Some(info);
    }

    /// Stores the client address from a PROXY header.
    pub(crate) fn set_proxy_client(&self, place: u32, client: SocketAddr) {
        self.introduced.borrow_mut().insert(place, client);
    }

    /// Removes a connection.
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
