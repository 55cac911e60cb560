//! Networks in CIDR notation, or single addresses.

use std::net::IpAddr;

use super::Invalid;
use crate::plan::Network;

/// Parses a network, such as `10.0.0.0/8` or `2001:db8::/32`, or an address. Bits after the prefix must be zero:
/// otherwise one of the two numbers is probably wrong.
pub fn parse_network(text: &str) -> Result<Network, Invalid> {
    let invalid = || {
        Invalid::new(format!(
            "{text:?} is not a network: expected one such as \"10.0.0.0/8\", or an address such as \"192.0.2.1\""
        ))
    };
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| invalid())?;
    let bits: u8 = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        // The parser of `u8` also accepts `+8`.
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().map_err(|_| invalid())?
        }
        Some(_) => return Err(invalid()),
        None => bits,
    };
    let network = Network::new(address, prefix).ok_or_else(|| {
        Invalid::new(format!(
            "{text:?}: the prefix of {address} has 0 to {bits} bits"
        ))
    })?;
    if network.address() != address {
        return Err(Invalid::new(format!(
            "{text:?} has bits set after its prefix: expected \"{network}\" for the network, or {address} alone"
        )));
    }
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_parsed() {
        let not = |text: &str| {
            format!(
                "error: {text:?} is not a network: expected one such as \"10.0.0.0/8\", or an address such as \"192.0.2.1\""
            )
        };
        for (text, expected) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("192.0.2.1", "192.0.2.1/32"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("::1", "::1/128"),
            (
                "10.0.0.1/8",
                "error: \"10.0.0.1/8\" has bits set after its prefix: expected \"10.0.0.0/8\" for the network, or 10.0.0.1 alone",
            ),
            (
                "10.0.0.0/33",
                "error: \"10.0.0.0/33\": the prefix of 10.0.0.0 has 0 to 32 bits",
            ),
            ("10.0.0.0/+8", &not("10.0.0.0/+8")),
            ("10.0.0.0/", &not("10.0.0.0/")),
            ("10.0.0.0/999", &not("10.0.0.0/999")),
            ("10/8", &not("10/8")),
            ("example.com", &not("example.com")),
            ("", &not("")),
        ] {
            let outcome = match parse_network(text) {
                Ok(network) => network.to_string(),
                Err(error) => format!("error: {error}"),
            };
            assert_eq!(outcome, expected, "of {text:?}");
        }
    }
}
