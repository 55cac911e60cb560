//! What one core counts of connections of HTTP/2 that it has ended for what their clients did, or did not do in time.

use std::cell::Cell;
use std::ops::AddAssign;

use onrush_http::http2::code::ConnectionError;
use onrush_http::http2::guard::Flood;

/// Why a connection was ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// A rule of the protocol was broken, or a bound on floods.
    Error(ConnectionError),
    /// A head, or another frame, took too long.
    Head,
    /// Windows were not opened, or the socket took nothing, for too long.
    Window,
}

/// What is counted beside floods.
const OTHERS: [&str; 3] = ["malformed", "late_head", "late_window"];

const KINDS: usize = Flood::ALL.len() + OTHERS.len();

impl Cut {
    fn place(self) -> usize {
        let other = match self {
            Cut::Error(ConnectionError {
                flood: Some(flood), ..
            }) => return flood as usize,
            Cut::Error(ConnectionError { flood: None, .. }) => 0,
            Cut::Head => 1,
            Cut::Window => 2,
        };
        Flood::ALL.len() + other
    }
}

/// Of one core.
#[derive(Debug, Default)]
pub(crate) struct Cuts([Cell<u64>; KINDS]);

impl Cuts {
    pub(crate) fn count(&self, cut: Cut) {
        let counter = &self.0[cut.place()];
        counter.set(counter.get() + 1);
    }

    pub(crate) fn view(&self) -> CutsView {
        CutsView(std::array::from_fn(|kind| self.0[kind].get()))
    }
}

/// Connections of HTTP/2 that were ended for what their clients did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CutsView([u64; KINDS]);

impl CutsView {
    /// How many there were for which reason.
    pub fn reasons(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let floods = Flood::ALL.into_iter().map(Flood::name);
        floods.chain(OTHERS).zip(self.0)
    }
}

impl AddAssign for CutsView {
    fn add_assign(&mut self, other: CutsView) {
        let counts = self.0.iter_mut().zip(other.0);
        counts.for_each(|(sum, more)| *sum += more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_http::http2::code::Code;

    #[test]
    fn each_reason_is_counted_by_itself() {
        let cuts = Cuts::default();
        let error = |flood| ConnectionError {
            code: Code::ENHANCE_YOUR_CALM,
            reason: "",
            flood,
        };
        for flood in Flood::ALL {
            cuts.count(Cut::Error(error(Some(flood))));
        }
        for cut in [Cut::Error(error(None)), Cut::Head, Cut::Window] {
            cuts.count(cut);
        }
        let mut sum = cuts.view();
        sum += cuts.view();
        assert!(sum.reasons().all(|(_, count)| count == 2));
        let places = Flood::ALL.map(|flood| Cut::Error(error(Some(flood))).place());
        assert!(places.into_iter().eq(0..Flood::ALL.len()));
    }
}
