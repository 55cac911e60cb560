//! Flow control (RFC 9113 5.2, 6.9) in both directions.
//!
//! ```text
//!   received ──> ReceiveWindow: allowed -= bytes ──> the user releases ──> due += bytes ──> half of the window: WINDOW_UPDATE
//!   WINDOW_UPDATE ──> SendWindow: window += increment ──> sent: window -= bytes
//! ```

use super::frame::NUMBER_MAX;

/// Send window of a stream or the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendWindow {
    /// Negative when SETTINGS_INITIAL_WINDOW_SIZE was reduced below what is already sent (RFC 9113 6.9.2). At least
    /// -(2^31-1), since only that setting makes it negative, by at most its former value.
    window: i32,
}

/// The window would exceed 2^31-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

/// Whether an exhausted window became usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Opened,
    Same,
}

impl SendWindow {
    pub(crate) fn new(initial: u32) -> Self {
        debug_assert!(initial <= NUMBER_MAX);
        SendWindow {
            window: initial as i32,
        }
    }

    /// Bytes that may be sent.
    #[inline]
    pub(crate) fn room(self) -> u32 {
        self.window.max(0) as u32
    }

    /// Subtracts bytes that are sent; they must fit.
    #[inline]
    pub(crate) fn take(&mut self, bytes: u32) {
        debug_assert!(bytes <= self.room());
        self.window -= bytes as i32;
    }

    /// Adjusts the window by an increment of the peer or the difference of two initial windows.
    #[inline]
    pub(crate) fn change(&mut self, by: i64) -> Result<Change, Overflow> {
        let had_room = self.window > 0;
        let window = i64::from(self.window) + by;
        if window > i64::from(NUMBER_MAX) {
            return Err(Overflow);
        }
        self.window = i32::try_from(window).unwrap_or(i32::MIN);
        match !had_room && self.window > 0 {
            true => Ok(Change::Opened),
            false => Ok(Change::Same),
        }
    }
}

/// Receive window of a stream or the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveWindow {
    /// Negative only while the peer has not acknowledged an initial window below the default.
    allowed: i32,
    /// Released bytes not yet announced to the peer; allowed + due + what the user holds = the window.
    due: u32,
}

/// More data was received than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded;

impl ReceiveWindow {
    pub(crate) fn new(window: u32) -> Self {
        debug_assert!(window <= NUMBER_MAX);
        ReceiveWindow {
            allowed: window as i32,
            due: 0,
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, bytes: u32) -> Result<(), Exceeded> {
        if i64::from(bytes) > i64::from(self.allowed) {
            return Err(Exceeded);
        }
        self.allowed -= bytes as i32;
        Ok(())
    }

    /// Records that the user has released received bytes. Returns the increment to announce once it reaches half of the
    /// `window`: a fast sender never has to wait, at a cost of at most two frames per window.
    #[inline]
    pub(crate) fn release(&mut self, bytes: u32, window: u32) -> Option<u32> {
        self.due += bytes;
        let is_due = self.due > 0 && self.due >= window / 2;
        is_due.then(|| self.announce())
    }

    /// Returns the due increment, to be announced now.
    fn announce(&mut self) -> u32 {
        let due = std::mem::take(&mut self.due);
        self.allowed += due as i32;
        due
    }

    /// The peer has acknowledged a smaller initial window.
    pub(crate) fn shrink(&mut self, by: u32) {
        self.allowed -= by as i32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_send_window_reopens() {
        let mut window = SendWindow::new(100);
        window.take(100);
        assert_eq!(window.change(-60), Ok(Change::Same));
        assert_eq!(window.room(), 0);
        assert_eq!(window.change(60), Ok(Change::Same));
        assert_eq!(window.change(1), Ok(Change::Opened));
        assert_eq!(window.change(1), Ok(Change::Same));
        assert_eq!(window.room(), 2);
    }

    #[test]
    fn window_beyond_31_bits_overflows() {
        let mut window = SendWindow::new(NUMBER_MAX - 1);
        assert_eq!(window.change(1), Ok(Change::Same));
        assert_eq!(window.change(1), Err(Overflow));
        assert_eq!(window.room(), NUMBER_MAX);
    }

    #[test]
    fn window_update_is_sent_after_half_window() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.take(100), Ok(()));
        assert_eq!(window.take(1), Err(Exceeded));
        assert_eq!(window.release(49, 100), None);
        assert_eq!(window.release(1, 100), Some(50));
        assert_eq!(window.take(51), Err(Exceeded));
        assert_eq!(window.take(50), Ok(()));
        assert_eq!(window.release(0, 0), None);
    }
}
