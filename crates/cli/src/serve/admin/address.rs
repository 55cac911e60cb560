//! Address of the admin interface, which the predecessor may still hold.

use std::path::PathBuf;

use anyhow::bail;
use onrush_admin::location;
use onrush_config::plan::{self, Address as PlanAddress};
use onrush_engine::{Address, Claim, PassedSocket};

use crate::serve::user::User;

/// Holder of the address at the start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::serve) enum AddressHolder {
    Nobody,
    /// The process that this one replaces.
    Predecessor,
}

impl AddressHolder {
    /// The predecessor, if it `handed` sockets to this process.
    pub(in crate::serve) fn of<T>(handed: Option<&T>) -> AddressHolder {
        match handed {
            Some(_) => AddressHolder::Predecessor,
            None => AddressHolder::Nobody,
        }
    }
}

/// Address of the interface.
pub(in crate::serve) enum AdminAddress {
    /// The interface is off.
    Nowhere,
    Claimed(Claim),
    /// The predecessor still holds it.
    Awaited(Address),
    /// It is not available, and the server runs without the interface: the reason.
    Missed(String),
}

impl AdminAddress {
    pub(in crate::serve) fn claim(&self) -> Option<&Claim> {
        match self {
            AdminAddress::Claimed(claim) => Some(claim),
            AdminAddress::Nowhere | AdminAddress::Awaited(_) | AdminAddress::Missed(_) => None,
        }
    }
}

/// Name of a socket that a service manager passes for the admin interface (`FileDescriptorName=`).
const PASSED_NAME: &str = "admin";

/// Separates the socket passed for the interface, recognized by its name or its address, from the others.
///
/// # Errors
/// When the plan sets another address, or turns the interface off.
pub(in crate::serve) fn split_passed(
    plan: &plan::Admin,
    mut passed: Vec<PassedSocket>,
) -> anyhow::Result<(Option<PassedSocket>, Vec<PassedSocket>)> {
    let planned = match plan {
        plan::Admin::Off | plan::Admin::Default => None,
        plan::Admin::Unix(path) => Some(Address::Unix(path.clone())),
        plan::Admin::Tcp { address, .. } => Some(address_of(address)),
    };
    let is_meant = |passed: &PassedSocket| {
        passed.name == PASSED_NAME || Some(&passed.address) == planned.as_ref()
    };
    let Some(at) = passed.iter().position(is_meant) else {
        return Ok((None, passed));
    };
    let own = passed.remove(at);
    let is_tcp = matches!(own.address, Address::Tcp(_));
    let wanted = match (plan, planned) {
        (plan::Admin::Off, _) => "[admin] address is \"off\"".to_owned(),
        // Anybody who reaches it could stop the server.
        (plan::Admin::Default, _) if is_tcp => {
            "[admin] has no token_file, which a TCP address needs".to_owned()
        }
        (_, Some(planned)) if planned != own.address => {
            format!("[admin] address is {planned}")
        }
        _ => return Ok((Some(own), passed)),
    };
    bail!(
        "the service manager passed the socket {} ({PASSED_NAME}) for the admin interface, but {wanted}",
        own.address
    )
}

/// Claims the interface's address. The default address depends on `user` if the process will change to that user.
///
/// # Errors
/// When a configured address is not available.
pub(in crate::serve) fn claim(
    plan: &plan::Admin,
    before: AddressHolder,
    user: Option<&User>,
) -> anyhow::Result<AdminAddress> {
    let address = match address(plan, user) {
        Ok(Some(address)) => address,
        Ok(None) => return Ok(AdminAddress::Nowhere),
        Err(why) => return Ok(AdminAddress::Missed(why)),
    };
    match Claim::new(&address) {
        Ok(claim) => Ok(AdminAddress::Claimed(claim)),
        Err(error) if error.is_address_in_use() && before == AddressHolder::Predecessor => {
            Ok(AdminAddress::Awaited(address))
        }
        // The predecessor has stopped accepting orders: serving matters more than the interface.
        Err(error) if *plan == plan::Admin::Default || before == AddressHolder::Predecessor => Ok(
            AdminAddress::Missed(format!("no admin interface on {address}: {error}")),
        ),
        Err(error) => Err(anyhow::Error::new(error).context(format!("[admin] address {address}"))),
    }
}

/// Address of the interface; `None` when it is off.
///
/// # Errors
/// Why the default address cannot be used.
fn address(plan: &plan::Admin, user: Option<&User>) -> Result<Option<Address>, String> {
    Ok(Some(match plan {
        plan::Admin::Off => return Ok(None),
        plan::Admin::Default => Address::Unix(default_path(user)?),
        plan::Admin::Unix(path) => Address::Unix(path.clone()),
        plan::Admin::Tcp { address, .. } => address_of(address),
    }))
}

fn address_of(address: &PlanAddress) -> Address {
    match address {
        PlanAddress::Tcp(address) => Address::Tcp(*address),
        PlanAddress::Unix(path) => Address::Unix(path.clone()),
    }
}

fn default_path(user: Option<&User>) -> Result<PathBuf, String> {
    let identity = user.map(|user| &user.identity);
    let another = identity.filter(|identity| !identity.is_of_this_process());
    let path = match another {
        Some(identity) => location::own_socket_as(identity.user, identity.group),
        None => location::own_socket(),
    };
    path.map_err(|error| {
        let place = another.map_or_else(location::directory, |identity| {
            location::user_directory(identity.user)
        });
        format!("no admin interface in {}: {error}", place.display())
    })
}
