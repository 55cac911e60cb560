//! `[admin]`: address of the admin interface.

use super::kinds::place_of_value;
use crate::address::parse_listen;
use crate::diagnostic::Diagnostics;
use crate::plan::{Address, Admin, Listener};
use crate::section::{Keys, Kind, Section};

const KEYS: Keys = Keys::new(&["address", "token_file"]);

enum AddressValue {
    Off,
    At(Address),
}

const ADDRESS: Kind<AddressValue> = Kind {
    expected: "\"unix:/run/onrush/site.sock\", an address such as \"127.0.0.1:9901\", or \"off\"",
    parse: |text| match text {
        "off" => Ok(AddressValue::Off),
        _ => parse_listen(text).map(|listen| AddressValue::At(listen.address)),
    },
};

/// Reads `[admin]`. The address must not be one of `listen`: connections would go to either at random.
pub(super) fn read_admin(
    file: &Section<'_, '_>,
    listen: &[Listener],
    findings: &mut Diagnostics<'_>,
) -> Option<Admin> {
    const EXPECTED: &str = "a table such as { address = \"unix:/run/onrush/site.sock\" }";
    let value = file.value("admin")?;
    let section = Section::of("[admin]", value, EXPECTED, KEYS, findings)?;
    let address = match section.read("address", ADDRESS, findings) {
        Some(AddressValue::At(Address::Unix(path))) => {
            let path = findings.resolve(&path, &place_of_value(&section, "address"));
            Some(AddressValue::At(Address::Unix(path)))
        }
        address => address,
    };
    if let Some(AddressValue::At(own)) = &address
        && let Some(other) = listen.iter().find(|listen| overlap(own, &listen.address))
    {
        findings.error(
            section.place("address"),
            format!(
                "{own} overlaps the address {} of [[listen]]: expected another one",
                other.address
            ),
        );
    }
    let token_file = section.path("token_file", "\"/etc/onrush/admin.token\"", findings);
    match (address, token_file) {
        (Some(AddressValue::At(address @ Address::Tcp(_))), Some(token_file)) => Some(Admin::Tcp {
            address,
            token_file: token_file.to_path_buf(),
        }),
        (Some(AddressValue::At(Address::Tcp(address))), None) => {
            if !section.is_present_or_misspelt("token_file") {
                let why = "anyone who can connect could stop the server; expected token_file, a file with a line of at least 16 characters, which clients must send";
                findings.error(
                    section.place("address"),
                    format!("{address} has no token: {why}"),
                );
            }
            None
        }
        (address, Some(_)) => {
            if address.is_some() || !section.has("address") {
                let why = "a Unix socket admits only this user and root; expected address = \"IP:PORT\" as well";
                findings.error(
                    section.place("token_file"),
                    format!("token_file needs a TCP address: {why}"),
                );
            }
            None
        }
        (Some(AddressValue::At(Address::Unix(path))), None) => Some(Admin::Unix(path)),
        (Some(AddressValue::Off), None) => Some(Admin::Off),
        (None, None) => None,
    }
}

/// Whether connections to one address may reach the other's listener.
fn overlap(one: &Address, other: &Address) -> bool {
    match (one, other) {
        (Address::Tcp(one), Address::Tcp(other)) => {
            let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
            one.port() == other.port() && one.port() != 0 && (one.ip() == other.ip() || is_any)
        }
        (one, other) => one == other,
    }
}
