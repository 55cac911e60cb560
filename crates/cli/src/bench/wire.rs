//! `onrush bench wire`: the packets and requests per second that a link can carry.

use std::io::Write;
use std::process::ExitCode;

use onrush_bench::predict::text;
use onrush_bench::predict::wire::{LinkRate, PacketsPerRequest, Size};

use crate::terminal::Out;

/// Print how many frames and requests per second a link carries.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Bit rate of the link, such as 1G, 2.5G or 10G
    #[arg(long, value_name = "RATE", value_parser = LinkRate::parse)]
    rate: LinkRate,

    /// Packet sizes: from 68 on an MTU, below 68 a frame size
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', default_value = "64,1500,9000", value_parser = Size::parse)]
    mtu: Vec<Size>,

    /// Packets per request in one direction
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = PacketsPerRequest::parse)]
    packets_per_request: PacketsPerRequest,
}

pub(super) fn run(args: &Args) -> ExitCode {
    let text = text::wire(args.rate, &args.mtu, args.packets_per_request);
    let _ = Out::standard().write_all(text.as_bytes());
    ExitCode::SUCCESS
}
