//! What became of frames that a program has made, by what the kernel says at its tracepoints: how many the interface's driver
//! took, how many it did not, and why. That a program asked for a frame to leave says nothing of whether it did.
//!
//! ```text
//!  program: made + 1 ──> bpf_redirect ──> queue of 16 ──> driver ──> xdp_devmap_xmit: sent, dropped, error
//!                             └─ refused ──> xdp_redirect_err: error
//! ```
//! All of this happens on one CPU, and nothing else of the network runs there meanwhile (softirqs are off for a batch). So an
//! event belongs to the frames of this meter when it is of their CPU and some of them are still on the way. Between two
//! batches none are.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::instruction::Condition::{Equal, NotEqual};
use super::instruction::Operand::{Number, Of};
use super::instruction::Operation::{Add, Set, ShiftLeft, ShiftRight, ShiftRightSigned, Subtract};
use super::instruction::Register::{R0, R1, R2, R3, R4, R5, R6, R7};
use super::instruction::Size::Double;
use super::instruction::{Helper, Label, Step};
use super::system::{Map, Program, ProgramKind, XdpError};

/// What became of the frames of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Departed {
    /// Frames that were made, each with a number of its own: all that were asked for, unless a signal or a lack of memory ended
    /// the call.
    pub made: u64,
    /// Of these, those that the interface's driver took.
    pub sent: u64,
    /// Of these, those that nobody took.
    pub refused: u64,
    /// Why, of the last of them; or why fewer were made.
    pub reason: Option<Errno>,
}

/// The highest number of an error (include/linux/err.h).
const ERRNO_MAX: u64 = 4095;

// Places in the value of the map, in numbers of 64 bits.
const MADE: usize = 0;
const SENT: usize = 1;
const REFUSED: usize = 2;
const REASON: usize = 3;
const CPU: usize = 4;
/// Behind these, what the program that makes frames reads and writes.
pub(super) const OWN: usize = 5;

/// Counters, and what the program that makes frames has in the same map.
pub(super) struct Meter {
    map: Map,
    own: usize,
    _tracepoints: [OwnedFd; 2],
}

impl Meter {
    /// For a program with so many numbers of its own in the map.
    pub(super) fn new(own: usize) -> Result<Meter, XdpError> {
        let map = Map::new(OWN + own)?;
        let traced =
            |steps: &[Step], name| Program::load(ProgramKind::Tracepoint, steps, &map)?.trace(name);
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

    pub(super) fn map(&self) -> &Map {
        &self.map
    }

    /// Runs `call`, in which the program makes frames with these numbers of its own, and says what became of them.
    pub(super) fn measure(
        &self,
        own: impl Iterator<Item = u64>,
        call: impl FnOnce() -> Result<(), Errno>,
    ) -> Departed {
        let mut value = vec![0; OWN];
        value.extend(own);
        debug_assert_eq!(value.len(), OWN + self.own);
        // The map is there and has this size, so that only a bug could make these fail.
        self.map.write(&value).expect("the map is ours");
        let outcome = call();
        let value = self.map.read().expect("the map is ours");
        let [made, sent, refused, reason] = [MADE, SENT, REFUSED, REASON].map(|at| value[at]);
        // A kernel that preempts has another program's frames leave on this CPU between two queues of ours.
        let sent = sent.min(made);
        // Nothing is left between two batches; what no tracepoint told of has not left.
        let unsent = made.saturating_sub(sent);
        let reason = match (unsent, reason) {
            (0, _) => None,
            // A driver that takes some and not the others gives no reason: it had no room.
            (_, 0) if refused > 0 => Some(Errno::NOBUFS),
            (_, 1..=ERRNO_MAX) => Some(Errno::from_raw_os_error(reason as i32)),
            (_, _) => Some(Errno::IO),
        };
        Departed {
            made,
            sent,
            refused: unsent,
            reason: reason.or(outcome.err()),
        }
    }
}

/// Where a number of the map stands, in bytes.
pub(super) fn at(place: usize) -> i16 {
    (place * size_of::<u64>()) as i16
}

/// A frame is being made; `R7` is the map's address. Takes `R0` to `R5`.
pub(super) fn count() -> [Step; 5] {
    [
        Step::Call(Helper::ProcessorNumber),
        Step::Store(Double, R7, at(CPU), Of(R0)),
        Step::Load(Double, R4, R7, at(MADE)),
        Step::Compute(Add, R4, Number(1)),
        Step::Store(Double, R7, at(MADE), Of(R4)),
    ]
}

/// Leaves a tracepoint whose event is none of this meter's.
fn only_own() -> Vec<Step> {
    vec![
        Step::Compute(Set, R6, Of(R1)),
        Step::Call(Helper::ProcessorNumber),
        Step::PointToMap(R7),
        Step::Load(Double, R1, R7, at(CPU)),
        Step::Jump(NotEqual, R0, Of(R1), Label::End),
        Step::Load(Double, R1, R7, at(MADE)),
        Step::Load(Double, R2, R7, at(SENT)),
        Step::Load(Double, R3, R7, at(REFUSED)),
        Step::Compute(Set, R4, Of(R2)),
        Step::Compute(Add, R4, Of(R3)),
        Step::Jump(Equal, R1, Of(R4), Label::End),
    ]
}

/// Notes the error in `R4`, of 32 bits with a sign, if it is one.
fn note_error() -> [Step; 7] {
    [
        Step::Compute(ShiftLeft, R4, Number(32)),
        Step::Compute(ShiftRightSigned, R4, Number(32)),
        Step::Jump(Equal, R4, Number(0), Label::NoError),
        Step::Compute(Set, R5, Number(0)),
        Step::Compute(Subtract, R5, Of(R4)),
        Step::Store(Double, R7, at(REASON), Of(R5)),
        Step::Place(Label::NoError),
    ]
}

fn end() -> [Step; 3] {
    [
        Step::Place(Label::End),
        Step::Compute(Set, R0, Number(0)),
        Step::Exit,
    ]
}

/// Adds argument number `argument` of the tracepoint, of 32 bits, to `register` and writes it to `place`.
fn add_argument(
    argument: usize,
    register: super::instruction::Register,
    place: usize,
) -> [Step; 5] {
    [
        Step::Load(Double, R4, R6, at(argument)),
        Step::Compute(ShiftLeft, R4, Number(32)),
        Step::Compute(ShiftRight, R4, Number(32)),
        Step::Compute(Add, register, Of(R4)),
        Step::Store(Double, R7, at(place), Of(register)),
    ]
}

/// xdp_devmap_xmit(from, to, sent, drops, error): include/trace/events/xdp.h.
fn on_transmit() -> Vec<Step> {
    let mut steps = only_own();
    steps.extend(add_argument(2, R2, SENT));
    steps.extend(add_argument(3, R3, REFUSED));
    steps.push(Step::Load(Double, R4, R6, at(4)));
    steps.extend(note_error());
    steps.extend(end());
    steps
}

/// xdp_redirect_err(device, program, target, error, …), once for each frame.
fn on_refusal() -> Vec<Step> {
    let mut steps = only_own();
    steps.extend([
        Step::Compute(Add, R3, Number(1)),
        Step::Store(Double, R7, at(REFUSED), Of(R3)),
        Step::Load(Double, R4, R6, at(3)),
    ]);
    steps.extend(note_error());
    steps.extend(end());
    steps
}
