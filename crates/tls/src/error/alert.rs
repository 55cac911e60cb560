//! Alerts (RFC 8446 6).

use std::fmt;

use onrush_engine::{Error, Kind, Op, alert_name};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Alert(pub(crate) u8);

impl Alert {
    pub(crate) const CLOSE_NOTIFY: Alert = Alert(0);
    pub(crate) const UNEXPECTED_MESSAGE: Alert = Alert(10);
    pub(crate) const BAD_RECORD_MAC: Alert = Alert(20);
    pub(crate) const RECORD_OVERFLOW: Alert = Alert(22);
    pub(crate) const HANDSHAKE_FAILURE: Alert = Alert(40);
    pub(crate) const ILLEGAL_PARAMETER: Alert = Alert(47);
    pub(crate) const DECODE_ERROR: Alert = Alert(50);
    pub(crate) const PROTOCOL_VERSION: Alert = Alert(70);
    pub(crate) const USER_CANCELED: Alert = Alert(90);
    pub(crate) const NO_RENEGOTIATION: Alert = Alert(100);
    pub(crate) const MISSING_EXTENSION: Alert = Alert(109);

    /// Level and number. All are fatal except close_notify and no_renegotiation (RFC 5246 7.2.2).
    pub(crate) fn message(self) -> [u8; 2] {
        let level = match self {
            Alert::CLOSE_NOTIFY | Alert::NO_RENEGOTIATION => 1,
            _ => 2,
        };
        [level, self.0]
    }

    pub(crate) fn error(self, op: Op) -> Error {
        Error::new(op, Kind::Alert(self.0))
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match alert_name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "alert {}", self.0),
        }
    }
}
