//! The outcome of frames that a program has made, from the kernel's tracepoints: how many the interface's driver took,
//! how many it refused, and why. A successful redirect by the program does not mean that the frame was sent.
//!
//! ```text
//!  program: made + 1 ──> bpf_redirect ──> queue of 16 ──> driver ──> xdp_devmap_xmit: sent, dropped, error
//!                             └─ refused ──> xdp_redirect_err: error
//! ```
//! All of this happens on one CPU, and no other network code runs there meanwhile (softirqs are disabled for a batch).
//! So an event belongs to this meter's frames if it is on their CPU and some of them are still in transit. Between two
//! batches none are.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::instruction::Condition::{Equal, NotEqual};
use super::instruction::Operand::{Number, Of};
use super::instruction::Operation::{Add, Set, ShiftLeft, ShiftRight, ShiftRightSigned, Subtract};
use super::instruction::Register::{R0, R1, R2, R3, R4, R5, R6, R7};
use super::instruction::Size::Double;
use super::instruction::{BpfStep, Helper, Label};
use super::system::{KernelArray, Program, ProgramKind, XdpError};

/// Outcome of the frames of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendOutcome {
    /// Number of frames made, each with its own number: as many as requested, unless a signal or a lack of memory ended
    /// the call.
    pub made: u64,
    /// Number of frames that the interface's driver took.
    pub sent: u64,
    /// Number of frames that were not sent.
    pub refused: u64,
    /// The reason for the last refused frame, or for making fewer frames than requested.
    pub reason: Option<Errno>,
}

/// The highest error number (include/linux/err.h).
const ERRNO_MAX: u64 = 4095;

// Indices in the map's value, in numbers of 64 bits.
const MADE: usize = 0;
const SENT: usize = 1;
const REFUSED: usize = 2;
const REASON: usize = 3;
const CPU: usize = 4;
/// First index of the numbers of the program that makes frames.
pub(super) const PROGRAM_START: usize = 5;

/// Counters, with the numbers of the program that makes frames in the same map.
pub(super) struct Meter {
    map: KernelArray,
    own: usize,
    _tracepoints: [OwnedFd; 2],
}

impl Meter {
    /// A meter for a program with `own` numbers in the map.
    pub(super) fn new(own: usize) -> Result<Meter, XdpError> {
        let map = KernelArray::new(PROGRAM_START + own)?;
        let traced = |steps: &[BpfStep], name| {
            Program::load(ProgramKind::Tracepoint, steps, &map)?.trace(name)
        };
        let tracepoints = [
            traced(&on_transmit(), c"xdp_devmap_xmit")?,
            traced(&on_refusal(), c"xdp_redirect_err")?,
        ];
        Ok(Meter {
            map,
            own,
            _tracepoints: tracepoints,
        })
    }

    pub(super) fn map(&self) -> &KernelArray {
        &self.map
    }

    /// Runs `call`, in which the program makes frames with these numbers, and returns their outcome.
    pub(super) fn measure(
        &self,
        own: impl Iterator<Item = u64>,
        call: impl FnOnce() -> Result<(), Errno>,
    ) -> SendOutcome {
        let mut value = vec![0; PROGRAM_START];
        value.extend(own);
        debug_assert_eq!(value.len(), PROGRAM_START + self.own);
        // The map exists and has this size, so only a bug could make these fail.
        self.map.write(&value).expect("the map is ours");
        let outcome = call();
        let value = self.map.read().expect("the map is ours");
        let [made, sent, refused, reason] = [MADE, SENT, REFUSED, REASON].map(|at| value[at]);
        // On a preemptible kernel, frames of another program may be sent on this CPU between two flushes of ours.
        let sent = sent.min(made);
        // No frame is in transit after a batch; a frame without an event was not sent.
        let unsent = made.saturating_sub(sent);
        let reason = match (unsent, reason) {
            (0, _) => None,
            // A driver that takes only some frames gives no reason: it had no room.
            (_, 0) if refused > 0 => Some(Errno::NOBUFS),
            (_, 1..=ERRNO_MAX) => Some(Errno::from_raw_os_error(reason as i32)),
            (_, _) => Some(Errno::IO),
        };
        SendOutcome {
            made,
            sent,
            refused: unsent,
            reason: reason.or(outcome.err()),
        }
    }
}

/// Offset of a number of the map in bytes.
pub(super) fn at(place: usize) -> i16 {
    (place * size_of::<u64>()) as i16
}

/// Counts a frame; `R7` is the map's address. Clobbers `R0` to `R5`.
pub(super) fn count() -> [BpfStep; 5] {
    [
        BpfStep::Call(Helper::ProcessorNumber),
        BpfStep::Store(Double, R7, at(CPU), Of(R0)),
        BpfStep::Load(Double, R4, R7, at(MADE)),
        BpfStep::Compute(Add, R4, Number(1)),
        BpfStep::Store(Double, R7, at(MADE), Of(R4)),
    ]
}

/// Exits a tracepoint program if the event does not belong to this meter.
fn exit_if_foreign() -> Vec<BpfStep> {
    vec![
        BpfStep::Compute(Set, R6, Of(R1)),
        BpfStep::Call(Helper::ProcessorNumber),
        BpfStep::PointToMap(R7),
        BpfStep::Load(Double, R1, R7, at(CPU)),
        BpfStep::Jump(NotEqual, R0, Of(R1), Label::End),
        BpfStep::Load(Double, R1, R7, at(MADE)),
        BpfStep::Load(Double, R2, R7, at(SENT)),
        BpfStep::Load(Double, R3, R7, at(REFUSED)),
        BpfStep::Compute(Set, R4, Of(R2)),
        BpfStep::Compute(Add, R4, Of(R3)),
        BpfStep::Jump(Equal, R1, Of(R4), Label::End),
    ]
}

/// Records the error in `R4`, a signed 32-bit number, if it is not 0.
fn note_error() -> [BpfStep; 7] {
    [
        BpfStep::Compute(ShiftLeft, R4, Number(32)),
        BpfStep::Compute(ShiftRightSigned, R4, Number(32)),
        BpfStep::Jump(Equal, R4, Number(0), Label::NoError),
        BpfStep::Compute(Set, R5, Number(0)),
        BpfStep::Compute(Subtract, R5, Of(R4)),
        BpfStep::Store(Double, R7, at(REASON), Of(R5)),
        BpfStep::DefineLabel(Label::NoError),
    ]
}

fn end() -> [BpfStep; 3] {
    [
        BpfStep::DefineLabel(Label::End),
        BpfStep::Compute(Set, R0, Number(0)),
        BpfStep::Exit,
    ]
}

/// Adds argument number `argument` of the tracepoint, of 32 bits, to `register` and stores the sum at index `place`.
fn add_argument(
    argument: usize,
    register: super::instruction::Register,
    place: usize,
) -> [BpfStep; 5] {
    [
        BpfStep::Load(Double, R4, R6, at(argument)),
        BpfStep::Compute(ShiftLeft, R4, Number(32)),
        BpfStep::Compute(ShiftRight, R4, Number(32)),
        BpfStep::Compute(Add, register, Of(R4)),
        BpfStep::Store(Double, R7, at(place), Of(register)),
    ]
}

/// xdp_devmap_xmit(from, to, sent, drops, error): include/trace/events/xdp.h.
fn on_transmit() -> Vec<BpfStep> {
    let mut steps = exit_if_foreign();
    steps.extend(add_argument(2, R2, SENT));
    steps.extend(add_argument(3, R3, REFUSED));
    steps.push(BpfStep::Load(Double, R4, R6, at(4)));
    steps.extend(note_error());
    steps.extend(end());
    steps
}

/// xdp_redirect_err(device, program, target, error, …), once for each frame.
fn on_refusal() -> Vec<BpfStep> {
    let mut steps = exit_if_foreign();
    steps.extend([
        BpfStep::Compute(Add, R3, Number(1)),
        BpfStep::Store(Double, R7, at(REFUSED), Of(R3)),
        BpfStep::Load(Double, R4, R6, at(3)),
    ]);
    steps.extend(note_error());
    steps.extend(end());
    steps
}
