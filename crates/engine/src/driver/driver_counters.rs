//! The private counters of a network driver (`ethtool -S`), which alone show packets that a cloud has held back.
//!
//! The kernel provides them by ioctl only; its netlink messages have the names without the values. rustix has no safe
//! wrapper, so this is in the one crate with `unsafe`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::limits::{DRIVER_COUNTERS_MAX, DRIVER_COUNTERS_SPARE};

// Commands and sizes of include/uapi/linux/ethtool.h.
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETH_SS_STATS: u32 = 1;
const NAME_BYTES: usize = 32;
/// Header sizes: a command and two numbers before names, a command and one number before values.
const NAMES_HEAD: usize = 12;
const VALUES_HEAD: usize = 8;

/// The counters of an interface's driver, by the driver's names and in its order; empty if it has none.
///
/// Fails if there is no such interface, or if its driver does not support the call.
pub fn driver_counters(interface: &str) -> io::Result<Vec<(String, u64)>> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    let count = count(&socket, interface)?;
    if count > DRIVER_COUNTERS_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the driver reports {count} counters"),
        ));
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    // The kernel ignores the requested number and writes all counters that the driver has by then.
    let room = count + DRIVER_COUNTERS_SPARE;
    let mut names = vec![0u64; (NAMES_HEAD + room * NAME_BYTES).div_ceil(8)];
    put(&mut names, &[ETHTOOL_GSTRINGS, ETH_SS_STATS, count as u32]);
    ask(&socket, interface, &mut names)?;
    let mut values = vec![0u64; VALUES_HEAD / 8 + room];
    put(&mut values, &[ETHTOOL_GSTATS, count as u32]);
    ask(&socket, interface, &mut values)?;
    let names = bytes(&names);
    let name = |name: &[u8]| {
        let end = name.iter().position(|byte| *byte == 0);
        String::from_utf8_lossy(&name[..end.unwrap_or(NAME_BYTES)])
            .trim()
            .to_owned()
    };
    let names = names[NAMES_HEAD..].chunks_exact(NAME_BYTES).map(name);
    let values = values[VALUES_HEAD / 8..].iter().copied();
    Ok(names.zip(values).take(count).collect())
}

/// Number of counters. The message is `cmd`, `reserved`, a mask of the supported sets, and one number for each of them.
fn count(socket: &OwnedFd, interface: &str) -> io::Result<usize> {
    let mut question = vec![0u64; 3];
    put(&mut question, &[ETHTOOL_GSSET_INFO]);
    question[1] = 1 << ETH_SS_STATS;
    ask(socket, interface, &mut question)?;
    let answer = bytes(&question);
    // An empty mask is followed by no number.
    Ok(match question[1] {
        0 => 0,
        _ => u32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]) as usize,
    })
}

/// Writes numbers to the start of a message; the smallest message has room for them.
fn put(message: &mut [u64], numbers: &[u32]) {
    for (at, pair) in numbers.chunks(2).enumerate() {
        let mut word = [0; 8];
        for (number, part) in pair.iter().zip(word.chunks_exact_mut(4)) {
            part.copy_from_slice(&number.to_ne_bytes());
        }
        message[at] = u64::from_ne_bytes(word);
    }
}

fn bytes(message: &[u64]) -> Vec<u8> {
    message.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Passes a message about an interface to the kernel, which overwrites it with the reply.
fn ask(socket: &OwnedFd, interface: &str, message: &mut [u64]) -> io::Result<()> {
    let name = interface.as_bytes();
    // The last byte stays zero.
    if name.len() >= libc::IFNAMSIZ || name.contains(&0) {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_data: message.as_mut_ptr().cast(),
        },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    // SAFETY: the kernel reads the request, which outlives the call, and writes its reply to `message`, which is
    // borrowed for as long and has room for it: three words for the number of counters; for names and values the number
    // just reported and DRIVER_COUNTERS_SPARE more, since a driver's number may have grown in between.
    let outcome =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_interface_is_an_error() {
        for name in ["no-such-if0", "a-name-of-more-than-15", "lo\0", ""] {
            let error = driver_counters(name).expect_err("there is none");
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name:?}");
        }
    }

    #[test]
    fn loopback_has_no_driver_counters() {
        assert_eq!(driver_counters("lo").ok(), Some(Vec::new()));
    }

    #[test]
    fn put_preserves_byte_order() {
        let mut message = [0; 2];
        put(&mut message, &[1, 2, 3]);
        let numbers: Vec<u8> = [1u32, 2, 3, 0]
            .iter()
            .flat_map(|number| number.to_ne_bytes())
            .collect();
        assert_eq!(bytes(&message), numbers);
    }
}
