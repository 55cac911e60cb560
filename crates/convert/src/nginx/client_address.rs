//! Conditions on `$remote_addr`.

use std::net::IpAddr;

use super::field::Comparison;
use crate::expression::condition::{Atom, network};
use crate::expression::decide::Formula;

/// The condition that the client address equals a text. nginx compares texts, so only the canonical text of an address
/// can be equal, and no client equals a network.
pub(super) fn client(wanted: &Comparison<'_>) -> Result<Formula, String> {
    let text = match wanted {
        Comparison::Equal(text) => (*text).to_owned(),
        Comparison::Alike(text) => text.to_ascii_lowercase(),
        Comparison::Found(_) | Comparison::FoundFilled(_) => {
            return Err(
                "client addresses can be compared with networks, not with expressions".to_owned(),
            );
        }
        Comparison::Set => return Ok(Formula::always()),
    };
    match text.parse::<IpAddr>() {
        Ok(address) if address.to_string() != text => Ok(Formula::never()),
        Ok(_) => network(&text)
            .map(|address| Formula::Atom(Atom::From(vec![address])))
            .ok_or_else(|| {
                format!("{text:?} is an IPv4-mapped address, which Onrush compares as IPv4")
            }),
        Err(_) if text.starts_with("unix:") => Err(format!("{text:?} is not an address")),
        Err(_) => Ok(Formula::never()),
    }
}
