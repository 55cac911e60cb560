//! The cheapest receiver for measuring a sender: an interface that counts and drops test datagrams.

use std::fmt;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::instruction::Condition::{Greater, NotEqual};
use super::instruction::Operand::{Number, Of};
use super::instruction::Operation::{Add, And, Set, ShiftLeft};
use super::instruction::Register::{R0, R1, R2, R3, R4, R5, R6, R7};
use super::instruction::Size::{Byte, Half, Word};
use super::instruction::{BpfStep, Helper, Label};
use super::system::{AttachMode, KernelArray, Program, ProgramKind, XdpError, refused};

/// A program on an interface that drops all received UDP over IPv4 without options, and counts datagrams whose payload
/// begins with two given bytes. Other packets pass, so that addresses are resolved. Detached on drop.
pub struct CountingDrop {
    map: KernelArray,
    _link: OwnedFd,
}

/// Number of counters. Each CPU has one in its own cache line; CPUs above the number share them.
const SLOTS: usize = 64;
const SLOT_NUMBERS: usize = 8;

impl CountingDrop {
    /// Attaches the program to the interface with this index, in the network namespace of the calling thread; in its
    /// driver, or in generic mode if the driver does not support XDP.
    ///
    /// # Errors
    /// Missing rights, no such interface, or another program is attached.
    pub fn attach(interface: u32, beginning: [u8; 2]) -> Result<CountingDrop, XdpError> {
        let map = KernelArray::new(SLOTS * SLOT_NUMBERS)?;
        let program = Program::load(ProgramKind::Xdp, &steps(beginning), &map)?;
        let link = match program.attach(interface, AttachMode::Driver) {
            Err(Errno::OPNOTSUPP) => program.attach(interface, AttachMode::Generic),
            outcome => outcome,
        };
        Ok(CountingDrop {
            map,
            _link: link.map_err(|errno| refused("attach a program to the interface", errno))?,
        })
    }

    /// Number of counted datagrams.
    pub fn count(&self) -> u64 {
        let value = self.map.read().expect("the map is ours");
        value.into_iter().step_by(SLOT_NUMBERS).sum()
    }
}

impl fmt::Debug for CountingDrop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CountingDrop").finish_non_exhaustive()
    }
}

// `enum xdp_action`.
const DROP: i32 = 1;
const PASS: i32 = 2;

// Offsets and values of Ethernet (IEEE 802.3), IPv4 without options (RFC 791) and UDP (RFC 768).
const ETHERTYPE_AT: i16 = 12;
const IPV4: u16 = 0x0800;
const VERSION_AT: i16 = 14;
const VERSION_4_HEADER_20: i32 = 0x45;
const PROTOCOL_AT: i16 = 23;
const UDP: i32 = 17;
const PAYLOAD_AT: i16 = 42;

fn steps(beginning: [u8; 2]) -> Vec<BpfStep> {
    let number = |bytes| Number(u16::from_ne_bytes(bytes).into());
    vec![
        BpfStep::Load(Word, R6, R1, 0),
        BpfStep::Load(Word, R3, R1, 4),
        BpfStep::Compute(Set, R4, Of(R6)),
        BpfStep::Compute(Add, R4, Number(i32::from(PAYLOAD_AT) + 2)),
        BpfStep::Jump(Greater, R4, Of(R3), Label::Pass),
        BpfStep::Load(Half, R2, R6, ETHERTYPE_AT),
        BpfStep::Jump(NotEqual, R2, number(IPV4.to_be_bytes()), Label::Pass),
        BpfStep::Load(Byte, R2, R6, VERSION_AT),
        BpfStep::Jump(NotEqual, R2, Number(VERSION_4_HEADER_20), Label::Pass),
        BpfStep::Load(Byte, R2, R6, PROTOCOL_AT),
        BpfStep::Jump(NotEqual, R2, Number(UDP), Label::Pass),
        BpfStep::Load(Half, R2, R6, PAYLOAD_AT),
        BpfStep::Jump(NotEqual, R2, number(beginning), Label::Drop),
        BpfStep::Call(Helper::ProcessorNumber),
        BpfStep::Compute(And, R0, Number(SLOTS as i32 - 1)),
        // A slot is eight numbers of eight bytes.
        BpfStep::Compute(ShiftLeft, R0, Number(6)),
        BpfStep::PointToMap(R7),
        BpfStep::Compute(Add, R7, Of(R0)),
        BpfStep::Compute(Set, R5, Number(1)),
        BpfStep::AddAtomically(R7, 0, R5),
        BpfStep::DefineLabel(Label::Drop),
        BpfStep::Compute(Set, R0, Number(DROP)),
        BpfStep::Exit,
        BpfStep::DefineLabel(Label::Pass),
        BpfStep::Compute(Set, R0, Number(PASS)),
        BpfStep::Exit,
    ]
}
