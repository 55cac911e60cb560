//! A lower bound for servers: an epoll loop that answers every receive with a constant, without parsing, tasks or
//! timers.
//!
//! `bare_epoll 127.0.0.1:8080` serves on one thread until it is killed. It measures the minimal cost of a server with
//! kernel sockets, and is not a server: it takes every receive for exactly one request.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_tcp_nodelay};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, bind, listen, recv,
    send, socket_with,
};

const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: bare\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
    Content-Type: text/plain\r\nContent-Length: 0\r\n\r\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address: std::net::SocketAddr = std::env::args()
        .nth(1)
        .ok_or("usage: bare_epoll ADDRESS:PORT")?
        .parse()?;
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let listener = socket_with(family, SocketType::STREAM, flags, None)?;
    set_socket_reuseaddr(&listener, true)?;
    set_tcp_nodelay(&listener, true)?;
    bind(&listener, &address)?;
    listen(&listener, 4096)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(0), EventFlags::IN)?;

    // Connections by descriptor. 0 is never the descriptor of a connection here, so it stands for the listener.
    let mut connections: Vec<Option<OwnedFd>> = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    let mut list = [MaybeUninit::<epoll::Event>::uninit(); 256];
    loop {
        let ready = match epoll::wait(&epoll, &mut list[..], None) {
            Ok((ready, _)) => ready,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        for event in ready {
            let number = event.data.u64() as usize;
            if number == 0 {
                let connection = accept_with(&listener, flags)?;
                let number = connection.as_raw_fd() as usize;
                let interest = EventFlags::IN | EventFlags::ET;
                epoll::add(
                    &epoll,
                    &connection,
                    EventData::new_u64(number as u64),
                    interest,
                )?;
                if connections.len() <= number {
                    connections.resize_with(number + 1, || None);
                }
                connections[number] = Some(connection);
                continue;
            }
            let Some(connection) = &connections[number] else {
                continue;
            };
            match recv(connection, &mut buffer[..], RecvFlags::empty()) {
                Ok((_, 1..)) if send(connection, RESPONSE, SendFlags::NOSIGNAL).is_ok() => {}
                Err(Errno::AGAIN) => {}
                Ok(_) | Err(_) => connections[number] = None,
            }
        }
    }
}
