//! What rustls would write to a log of keys, for the handshake in hand: the traffic secrets of TLS 1.3, and nothing else.

use rustls::KeyLog;

use crate::heard;
use crate::secret::Secret;

/// What the traffic secrets of the two directions are called (RFC 8446 7.1) in the words of key logs.
const OF_CLIENT: &str = "CLIENT_TRAFFIC_SECRET_0";
const OF_SERVER: &str = "SERVER_TRAFFIC_SECRET_0";

/// Notes the traffic secrets of the handshake in hand.
#[derive(Debug)]
pub(crate) struct Listener;

impl KeyLog for Listener {
    fn will_log(&self, label: &str) -> bool {
        [OF_CLIENT, OF_SERVER].contains(&label)
    }

    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        let secret = Some(Secret::new(secret));
        heard::note(|heard| match label {
            OF_CLIENT => heard.secrets.client = secret,
            _ => heard.secrets.server = secret,
        });
    }
}
