//! Where the admin interface of a server is to be, and who has that place before.

use std::path::PathBuf;

use anyhow::bail;
use onrush_admin::location;
use onrush_config::plan::{self, Address as PlanAddress};
use onrush_engine::{Address, Claim, Passed};

use crate::serve::account::User;

/// Who has the address before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::serve) enum Before {
    Nobody,
    /// The process whose place this one takes.
    Predecessor,
}

impl Before {
    /// What was `handed` to this process says.
    pub(in crate::serve) fn of<T>(handed: Option<&T>) -> Before {
        match handed {
            Some(_) => Before::Predecessor,
            None => Before::Nobody,
        }
    }
}

/// The address of an interface.
pub(in crate::serve) enum Place {
    /// There is to be none.
    Nowhere,
    Claimed(Claim),
    /// The process before still has it.
    Awaited(Address),
    /// It cannot be had, and the server serves without it: why.
    Missed(String),
}

impl Place {
    /// What holds it.
    pub(in crate::serve) fn claim(&self) -> Option<&Claim> {
        match self {
            Place::Claimed(claim) => Some(claim),
            Place::Nowhere | Place::Awaited(_) | Place::Missed(_) => None,
        }
    }
}

/// What a socket of a service manager is called that is for the admin interface (`FileDescriptorName=`).
const PASSED_NAME: &str = "admin";

/// Parts the socket that was passed for the interface, by its name or its address, from the others.
///
/// # Errors
/// When the plan has it elsewhere, or nowhere.
pub(in crate::serve) fn split_passed(
    plan: &plan::Admin,
    mut passed: Vec<Passed>,
) -> anyhow::Result<(Option<Passed>, Vec<Passed>)> {
    let planned = match plan {
        plan::Admin::Off | plan::Admin::Default => None,
        plan::Admin::Unix(path) => Some(Address::Unix(path.clone())),
        plan::Admin::Tcp { address, .. } => Some(address_of(address)),
    };
    let is_meant =
        |passed: &Passed| passed.name == PASSED_NAME || Some(&passed.address) == planned.as_ref();
    let Some(at) = passed.iter().position(is_meant) else {
        return Ok((None, passed));
    };
    let own = passed.remove(at);
    let is_tcp = matches!(own.address, Address::Tcp(_));
    let wanted = match (plan, planned) {
        (plan::Admin::Off, _) => "[admin] address is \"off\"".to_owned(),
        // Whoever reaches it could stop the server.
        (plan::Admin::Default, _) if is_tcp => {
            "[admin] has no token_file, which a TCP address needs".to_owned()
        }
        (_, Some(planned)) if planned != own.address => {
            format!("[admin] address is {planned}")
        }
        _ => return Ok((Some(own), passed)),
    };
    bail!(
        "the service manager has passed the socket {} ({PASSED_NAME}) for the admin interface, and {wanted}",
        own.address
    )
}

/// Claims the address of the interface that a plan asks for, which `user` will have, if the process is to be another.
///
/// # Errors
/// When one was asked for and cannot be.
pub(in crate::serve) fn claim(
    plan: &plan::Admin,
    before: Before,
    user: Option<&User>,
) -> anyhow::Result<Place> {
    let address = match address(plan, user) {
        Ok(Some(address)) => address,
        Ok(None) => return Ok(Place::Nowhere),
        Err(why) => return Ok(Place::Missed(why)),
    };
    match Claim::new(&address) {
        Ok(claim) => Ok(Place::Claimed(claim)),
        Err(error) if error.is_address_in_use() && before == Before::Predecessor => {
            Ok(Place::Awaited(address))
        }
        // The process before has given its place up already: what is asked for most is that somebody serves.
        Err(error) if *plan == plan::Admin::Default || before == Before::Predecessor => Ok(
            Place::Missed(format!("there is no admin interface on {address}: {error}")),
        ),
        Err(error) => Err(anyhow::Error::new(error).context(format!("[admin] address {address}"))),
    }
}

/// Where it is to be; nowhere when it is not to be.
///
/// # Errors
/// Why it cannot be where nobody has asked for it.
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
        Some(identity) => location::of_this_process_as(identity.user, identity.group),
        None => location::of_this_process(),
    };
    path.map_err(|error| {
        let place = another.map_or_else(location::directory, |identity| {
            location::of_user(identity.user)
        });
        format!(
            "there is no admin interface in {}: {error}",
            place.display()
        )
    })
}
