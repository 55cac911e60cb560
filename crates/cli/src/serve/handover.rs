//! Passes the sockets of a server to the process that replaces it, over a pair of Unix sockets whose other end is that
//! process's standard input. The socket type keeps message boundaries, and each message carries at most one descriptor
//! (unix(7), SCM_RIGHTS).
//!
//! ```text
//!   server in force                                     the next one
//!     {"version": 1, "cores": 2, "io": "epoll", …}  ──>
//!     {"socket": 0} with a descriptor, for each     ──>   claims, starts its cores
//!     {"socket": "admin"}, if a service manager keeps the admin interface's
//!                                                   <──   {"taken": [0, 1]}, or end of file
//! ```

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use anyhow::{Context, bail, ensure};
use onrush_engine::{Address, ClaimSockets, Io, SocketOwner};
use onrush_serve::{HandedAddress, Handover, ListenSettings};
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde_json::{Value, json};

use super::privileges::Inherited;

/// Version of these messages. A program of another version is refused.
const VERSION: u64 = 2;

/// Maximum bytes of a message: a long list of addresses.
const MESSAGE_MAX: usize = 256 * 1024;

/// Sends `handover` to the process at the other end of `socket`.
pub(super) fn send_handover(
    socket: impl AsFd,
    handover: &Handover,
    beside: HandoverExtras<&HandedAddress>,
) -> anyhow::Result<()> {
    let listening = handover.listening.iter();
    let listening: Vec<Value> = listening.map(described).collect();
    let head = json!({
        "version": VERSION,
        "cores": handover.manner.cores,
        "io": io_name(handover.manner.io),
        "by_cpu": handover.manner.is_by_cpu,
        "listening": listening,
        "admin": beside.admin.map(described),
        "seccomp": beside.inherited.seccomp,
        "landlock": beside.inherited.landlock,
    });
    send(&socket, &head, None)?;
    for (place, handed) in handover.listening.iter().enumerate() {
        let sockets = &handed.sockets;
        for descriptor in std::iter::once(&sockets.claim).chain(&sockets.listeners) {
            send(&socket, &json!({ "socket": place }), Some(descriptor))?;
        }
    }
    if let Some(admin) = beside.admin {
        let descriptor = &admin.sockets.claim;
        send(&socket, &json!({ "socket": ADMIN }), Some(descriptor))?;
    }
    Ok(())
}

/// Passed along with the listening sockets.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandoverExtras<H> {
    /// Socket of the admin interface, if a service manager keeps it.
    pub(super) admin: Option<H>,
    /// Rights already given up, which child processes inherit. A second filter would only add cost.
    pub(super) inherited: Inherited,
}

/// Name of the admin interface's socket in a message.
const ADMIN: &str = "admin";

/// Receives what [`send_handover`] sends.
pub(super) fn receive_handover(
    socket: impl AsFd,
) -> anyhow::Result<(Handover, HandoverExtras<HandedAddress>)> {
    let (head, _) = receive(&socket)?.context("the running server has ended")?;
    let version = head["version"].as_u64();
    ensure!(
        version == Some(VERSION),
        "the running server uses version {} of the handover protocol, this one version {VERSION}; stop the running server, then start this one",
        head["version"]
    );
    let io = head["io"].as_str().and_then(io_named);
    let cores = head["cores"]
        .as_u64()
        .and_then(|cores| usize::try_from(cores).ok());
    let manner = ListenSettings {
        cores: cores.context("handover message without a number of cores")?,
        io: io.context("handover message with an unknown I/O driver")?,
        is_by_cpu: head["by_cpu"] == true,
    };
    let listening = head["listening"]
        .as_array()
        .context("handover message without addresses")?;
    let handed = listening.iter().enumerate();
    let handed = handed.map(|(place, described)| receive_handed(&socket, described, &json!(place)));
    let handover = Handover {
        manner,
        listening: handed.collect::<anyhow::Result<_>>()?,
    };
    let admin = match &head["admin"] {
        Value::Null => None,
        described => Some(receive_handed(&socket, described, &json!(ADMIN))?),
    };
    let abi = head["landlock"].as_i64();
    let inherited = Inherited {
        seccomp: head["seccomp"] == true,
        landlock: abi.and_then(|abi| i32::try_from(abi).ok()),
    };
    Ok((handover, HandoverExtras { admin, inherited }))
}

fn receive_handed(
    socket: impl AsFd,
    described: &Value,
    place: &Value,
) -> anyhow::Result<HandedAddress> {
    let listeners = described["listeners"]
        .as_u64()
        .context("handover message without a number of listeners")?;
    let claim = receive_socket(&socket, place)?;
    let listeners = (0..listeners).map(|_| receive_socket(&socket, place));
    Ok(HandedAddress {
        written: described["written"]
            .as_str()
            .context("handover message with an address without a name")?
            .to_owned(),
        address: address(described)?,
        sockets: ClaimSockets {
            claim,
            listeners: listeners.collect::<anyhow::Result<_>>()?,
            keeper: match described["passed"] == true {
                true => SocketOwner::Manager,
                false => SocketOwner::Nobody,
            },
        },
    })
}

/// Reports that the addresses at these indices are served.
pub(super) fn confirm(socket: impl AsFd, taken: &[usize]) -> anyhow::Result<()> {
    send(socket, &json!({ "taken": taken }), None)
}

/// Waits until the other process serves, and returns the indices of the addresses that it has taken; `None` when it
/// ends first.
pub(super) fn wait_for_confirmation(socket: impl AsFd) -> anyhow::Result<Option<Vec<usize>>> {
    let Some((message, _)) = receive(socket)? else {
        return Ok(None);
    };
    let taken = message["taken"]
        .as_array()
        .context("handover message is not a confirmation")?;
    let place = |value: &Value| value.as_u64().and_then(|place| usize::try_from(place).ok());
    let taken: Option<Vec<usize>> = taken.iter().map(place).collect();
    taken
        .context("handover confirmation with invalid indices")
        .map(Some)
}

fn described(handed: &HandedAddress) -> Value {
    let address = match &handed.address {
        Address::Tcp(address) => json!({ "tcp": address.to_string() }),
        // As bytes: a path need not be UTF-8.
        Address::Unix(path) => json!({ "unix": path.as_os_str().as_encoded_bytes() }),
    };
    json!({
        "written": handed.written,
        "address": address,
        "listeners": handed.sockets.listeners.len(),
        "passed": handed.sockets.keeper == SocketOwner::Manager,
    })
}

fn address(described: &Value) -> anyhow::Result<Address> {
    let address = &described["address"];
    if let Some(text) = address["tcp"].as_str() {
        let tcp: SocketAddr = text
            .parse()
            .context("handover message with an invalid address")?;
        return Ok(Address::Tcp(tcp));
    }
    let bytes = address["unix"]
        .as_array()
        .context("handover message with an unknown kind of address")?;
    let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
    let bytes: Option<Vec<u8>> = bytes.iter().map(byte).collect();
    let bytes = bytes.context("handover message with an invalid path")?;
    Ok(Address::Unix(std::ffi::OsString::from_vec(bytes).into()))
}

pub(super) fn io_name(io: Io) -> &'static str {
    match io {
        Io::IoUring => "io_uring",
        Io::Epoll | Io::Auto => "epoll",
    }
}

fn io_named(name: &str) -> Option<Io> {
    [Io::IoUring, Io::Epoll]
        .into_iter()
        .find(|&io| io_name(io) == name)
}

fn send(socket: impl AsFd, message: &Value, descriptor: Option<&OwnedFd>) -> anyhow::Result<()> {
    let text = message.to_string();
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.map(|descriptor| [descriptor.as_fd()]);
    if let Some(descriptors) = &descriptors {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let parts = [IoSlice::new(text.as_bytes())];
    let sent = sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL);
    sent.map_err(io::Error::from)
        .context("cannot send the sockets")?;
    Ok(())
}

/// Receives the next message and its descriptor; `None` at the end.
fn receive(socket: impl AsFd) -> anyhow::Result<Option<(Value, Option<OwnedFd>)>> {
    let mut bytes = vec![0; MESSAGE_MAX];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match recvmsg(&socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            // It ended without reading everything.
            Err(rustix::io::Errno::CONNRESET) => return Ok(None),
            Err(rustix::io::Errno::AGAIN) => bail!("no handover message in time"),
            outcome => break outcome.map_err(io::Error::from)?,
        }
    };
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptor = descriptors.next().and_then(|mut rights| rights.next());
    if received.bytes == 0 && descriptor.is_none() {
        return Ok(None);
    }
    let message = serde_json::from_slice(&bytes[..received.bytes]);
    Ok(Some((
        message.context("handover message is not JSON")?,
        descriptor,
    )))
}

fn receive_socket(socket: impl AsFd, place: &Value) -> anyhow::Result<OwnedFd> {
    match receive(socket)? {
        Some((message, Some(descriptor))) if message["socket"] == *place => Ok(descriptor),
        Some((message, _)) => bail!("expected a socket of address {place}, got {message}"),
        None => bail!("the running server has ended"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        let pair = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        );
        pair.expect("two sockets")
    }

    #[test]
    fn handover_message_round_trips() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let tcp = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let unix = UnixListener::bind(&path).expect("it is free");
        let handover = Handover {
            manner: ListenSettings {
                cores: 2,
                io: Io::IoUring,
                is_by_cpu: true,
            },
            listening: vec![
                HandedAddress {
                    written: "127.0.0.1:0".into(),
                    address: Address::Tcp(([127, 0, 0, 1], 80).into()),
                    sockets: ClaimSockets {
                        claim: tcp(),
                        listeners: vec![tcp(), tcp()],
                        keeper: SocketOwner::Nobody,
                    },
                },
                HandedAddress {
                    written: format!("unix:{}", path.display()),
                    address: Address::Unix(path.clone()),
                    sockets: ClaimSockets {
                        claim: unix.into(),
                        listeners: Vec::new(),
                        keeper: SocketOwner::Manager,
                    },
                },
            ],
        };
        let (ours, theirs) = pair();
        let admin = HandedAddress {
            written: "127.0.0.1:1".into(),
            address: Address::Tcp(([127, 0, 0, 1], 1).into()),
            sockets: ClaimSockets {
                claim: tcp(),
                listeners: Vec::new(),
                keeper: SocketOwner::Manager,
            },
        };
        let beside = HandoverExtras {
            admin: Some(&admin),
            inherited: Inherited {
                seccomp: true,
                landlock: Some(7),
            },
        };
        send_handover(&ours, &handover, beside).expect("it is taken");
        let (taken, beside) = receive_handover(&theirs).expect("it was given");
        let inherited = beside.inherited;
        assert_eq!((inherited.seccomp, inherited.landlock), (true, Some(7)));
        let taken_admin = beside.admin.expect("it was given, too");
        assert_eq!(taken_admin.address, admin.address);
        assert_eq!(taken_admin.sockets.keeper, SocketOwner::Manager);
        assert_eq!(taken.manner, handover.manner);
        for (taken, given) in taken.listening.iter().zip(&handover.listening) {
            assert_eq!(
                (
                    &taken.written,
                    &taken.address,
                    taken.sockets.listeners.len(),
                    taken.sockets.keeper
                ),
                (
                    &given.written,
                    &given.address,
                    given.sockets.listeners.len(),
                    given.sockets.keeper
                )
            );
        }
        let names = |handover: &Handover| {
            let sockets = &handover.listening[0].sockets;
            let all = std::iter::once(&sockets.claim).chain(&sockets.listeners);
            let name = |socket: &OwnedFd| {
                let listener = TcpListener::from(socket.try_clone().expect("a descriptor"));
                listener.local_addr().expect("it is bound")
            };
            all.map(name).collect::<Vec<_>>()
        };
        assert_eq!(names(&taken), names(&handover), "in their order");
        confirm(&theirs, &[1]).expect("it is heard");
        drop(theirs);
        assert_eq!(wait_for_confirmation(&ours).expect("a list"), Some(vec![1]));
        assert_eq!(wait_for_confirmation(&ours).expect("the end"), None);
    }

    #[test]
    fn different_version_is_refused_with_advice() {
        let (ours, theirs) = pair();
        send(&ours, &json!({ "version": 1 }), None).expect("it is taken");
        let error = receive_handover(&theirs)
            .expect_err("it is another version")
            .to_string();
        assert!(
            error.contains("uses version 1 of the handover")
                && error.contains("stop the running server"),
            "{error}"
        );
        for wrong in ["{}", "[]", "1"] {
            let message: Value = serde_json::from_str(wrong).expect("JSON");
            send(&ours, &message, None).expect("it is taken");
            receive_handover(&theirs).expect_err("it is no handover");
        }
    }
}
