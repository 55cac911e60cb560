//! The far end that costs least: an XDP program on an interface that counts test datagrams (UDP over IPv4 whose payload begins
//! with the bytes d7 11, see `crates/packet`) and drops them. Other UDP is dropped and not counted; everything else passes.
//!
//! `counting_drop INTERFACE` says `ready`, counts until its standard input ends or gives a line, and says how many came.

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
        .map_err(|error| format!("there is no interface {interface}: {error}"))?;
    let drop = onrush_engine::CountingDrop::attach(index, [0xd7, 0x11])?;
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    println!("{}", drop.count());
    Ok(())
}
