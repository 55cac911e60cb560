//! The cheapest receiver: an XDP program on an interface that drops UDP over IPv4, and counts test datagrams (their
//! payload begins with the bytes d7 11, see `crates/packet`). Other packets pass.
//!
//! `counting_drop INTERFACE` prints `ready`, counts until its standard input has a line or ends, and prints the count.

use std::error::Error;

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

const USAGE: &str = "usage: counting_drop INTERFACE, which ends with its standard input";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [interface] = &arguments[..] else {
        return Err(USAGE.into());
    };
    let asks = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let index = name_to_index(&asks, interface)
        .map_err(|error| format!("no interface {interface}: {error}"))?;
    let drop = onrush_engine::CountingDrop::attach(index, [0xd7, 0x11])?;
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    println!("{}", drop.count());
    Ok(())
}
