//! Connecting: source addresses and refusals.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use onrush_engine::{Address, Errno, Kind, Op, Source, Stream};

use crate::ground::on_every_driver;

#[test]
fn connect_without_listener_is_refused() {
    on_every_driver(|core, listener, address| async move {
        drop(listener);
        core.sleep(Duration::from_millis(1)).await;
        if matches!(address, Address::Unix(_)) {
            return; // The claim keeps a Unix socket listening.
        }
        let error = Stream::connect(&core, &address, None)
            .await
            .err()
            .expect("nobody listens");
        assert_eq!(error.kind, Kind::Os(Errno::CONNREFUSED));
    });
}

#[test]
fn connect_uses_source() {
    on_every_driver(|core, listener, address| async move {
        let Address::Tcp(target) = address.clone() else {
            return; // Unix sockets have no source address.
        };
        // The loopback of IPv4 has 2^24 addresses, that of IPv6 has one.
        let wanted: IpAddr = match target {
            SocketAddr::V4(_) => [127, 0, 0, 2].into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        for ports in [None, Some(40_000..=40_100)] {
            let source = Source {
                address: Some(wanted),
                ports: ports.clone(),
            };
            let near = Stream::connect_from(&core, &source, &address, None)
                .await
                .unwrap();
            let far = listener.accept().await.unwrap();
            let peer = far.peer().unwrap();
            assert_eq!(peer.ip(), wanted);
            // A simulated network has no local ports.
            if near.tcp_info().is_some() {
                assert_eq!(near.local(), Some(peer));
                let range = ports.unwrap_or(1..=u16::MAX);
                assert!(range.contains(&peer.port()), "{peer}");
            }
        }
    });
}

#[test]
fn nonlocal_source_is_a_bind_error() {
    on_every_driver(|core, listener, address| async move {
        let strange: IpAddr = match address {
            // Reserved for documentation: RFC 5737 and RFC 3849.
            Address::Tcp(SocketAddr::V4(_)) => "192.0.2.1".parse().unwrap(),
            Address::Tcp(SocketAddr::V6(_)) => "2001:db8::1".parse().unwrap(),
            Address::Unix(_) => return,
        };
        let source = Source {
            address: Some(strange),
            ports: None,
        };
        match Stream::connect_from(&core, &source, &address, None).await {
            Ok(stream) => assert!(stream.tcp_info().is_none(), "a simulated machine has all"),
            Err(error) => {
                let taken = (Op::Bind, Kind::Os(Errno::ADDRNOTAVAIL));
                assert_eq!((error.op, error.kind), taken);
            }
        }
        drop(listener);
    });
}
