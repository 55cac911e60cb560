//! Counts of HTTP/2 connections that a core closed because of the client's behaviour.

use std::cell::Cell;
use std::ops::AddAssign;

use onrush_http::http2::code::ConnectionError;
use onrush_http::http2::flood_guard::Flood;

/// Why a connection was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CloseReason {
    /// A protocol error, or a flood limit was exceeded.
    Error(ConnectionError),
    /// A head, or another frame, took too long.
    Head,
    /// The client did not open windows or did not read from the socket for too long.
    Window,
}

/// Labels of the reasons other than floods.
const OTHERS: [&str; 3] = ["malformed", "late_head", "late_window"];

const KINDS: usize = Flood::ALL.len() + OTHERS.len();

impl CloseReason {
    fn place(self) -> usize {
        let other = match self {
            CloseReason::Error(ConnectionError {
                flood: Some(flood), ..
            }) => return flood as usize,
            CloseReason::Error(ConnectionError { flood: None, .. }) => 0,
            CloseReason::Head => 1,
            CloseReason::Window => 2,
        };
        Flood::ALL.len() + other
    }
}

#[derive(Debug, Default)]
pub(crate) struct Cuts([Cell<u64>; KINDS]);

impl Cuts {
    pub(crate) fn count(&self, cut: CloseReason) {
        let counter = &self.0[cut.place()];
        counter.set(counter.get() + 1);
    }

    pub(crate) fn view(&self) -> CloseCountsView {
        CloseCountsView(std::array::from_fn(|kind| self.0[kind].get()))
    }
}

/// HTTP/2 connections closed because of the client's behaviour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CloseCountsView([u64; KINDS]);

impl CloseCountsView {
    /// Number of connections by reason.
    pub fn reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let floods = Flood::ALL.into_iter().map(Flood::name);
        floods.chain(OTHERS).zip(self.0)
    }
}

impl AddAssign for CloseCountsView {
    fn add_assign(&mut self, other: CloseCountsView) {
        let counts = self.0.iter_mut().zip(other.0);
        counts.for_each(|(sum, more)| *sum += more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_http::http2::code::Code;

    #[test]
    fn close_reasons_are_counted_separately() {
        let cuts = Cuts::default();
        let error = |flood| ConnectionError {
            code: Code::ENHANCE_YOUR_CALM,
            reason: "",
            flood,
        };
        for flood in Flood::ALL {
            cuts.count(CloseReason::Error(error(Some(flood))));
        }
        for cut in [
            CloseReason::Error(error(None)),
            CloseReason::Head,
            CloseReason::Window,
        ] {
            cuts.count(cut);
        }
        let mut sum = cuts.view();
        sum += cuts.view();
        assert!(sum.reasons().all(|(_, count)| count == 2));
        let places = Flood::ALL.map(|flood| CloseReason::Error(error(Some(flood))).place());
        assert!(places.into_iter().eq(0..Flood::ALL.len()));
    }
}
