//! Receives secrets through rustls's key log: the traffic secrets of TLS 1.3 only.

use rustls::KeyLog;

use crate::handshake_facts;
use crate::secret::Secret;

/// Labels of the traffic secrets (RFC 8446 7.1) in key logs.
const OF_CLIENT: &str = "CLIENT_TRAFFIC_SECRET_0";
const OF_SERVER: &str = "SERVER_TRAFFIC_SECRET_0";

/// Notes the traffic secrets of the current handshake.
#[derive(Debug)]
pub(crate) struct SecretListener;

impl KeyLog for SecretListener {
    fn will_log(&self, label: &str) -> bool {
        [OF_CLIENT, OF_SERVER].contains(&label)
    }

    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        let secret = Some(Secret::new(secret));
        handshake_facts::note(|heard| match label {
            OF_CLIENT => heard.secrets.client = secret,
            _ => heard.secrets.server = secret,
        });
    }
}
