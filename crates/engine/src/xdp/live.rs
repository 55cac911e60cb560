//! Frames that leave by XDP: a program writes a number into each and has it sent by an interface, without a socket, a route or
//! a queue on the way. The kernel makes the frames in calls of many (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18).

use std::fmt;

use rustix::io::Errno;

use super::instruction::Condition::{Greater, NotEqual};
use super::instruction::Operand::{Number, Of};
use super::instruction::Operation::{Add, And, Set, ShiftLeft, ShiftRight, Xor};
use super::instruction::Register::{self, R0, R1, R2, R3, R4, R5, R6};
use super::instruction::Size::{Byte, Double, Half, Word};
use super::instruction::{Helper, Label, Step};
use super::meter::{Departed, Meter, make};
use super::system::{Program, ProgramKind, XdpError};
use crate::limits::{FRAME_BYTES_MAX, FRAMES_PER_BATCH, FRAMES_PER_CALL};

/// A frame of which many are sent, that differ in a number of 32 bits, big-endian, and in the checksum that covers it.
///
/// ```text
///  0             checksum_at      number_at      fixed            bytes.len()
///  +-------------+------+---------+------+-------+----------------+
///  | written anew into each frame                | as it was made |
///  +-------------+------+---------+------+-------+----------------+
/// ```
/// The kernel uses the memory of frames again without looking at what is in it, and whoever took one may have written to it: a
/// router on the same machine changes addresses and the time to live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NumberedFrame {
    /// The whole frame, from its Ethernet header on.
    pub bytes: Vec<u8>,
    /// How many of the first bytes are written anew into each.
    pub fixed: usize,
    /// Where the number stands, an even number of bytes from the checksum.
    pub number_at: usize,
    /// Where the checksum stands (RFC 1071).
    pub checksum_at: usize,
    /// The ones' complement sum, not yet inverted, of all that the checksum covers, with a number of 0.
    pub checksum_sum: u16,
    /// The index of the interface that sends it, in the network namespace of the thread.
    pub interface: u32,
}

/// Programs that send frames, each a kind of its own with numbers of its own. They belong to one thread.
pub struct LiveFrames {
    meter: Meter,
    programs: Vec<(Program, Vec<u8>)>,
}

impl LiveFrames {
    /// Programs for these frames.
    ///
    /// # Errors
    /// No right to load them, or a kernel without what they need.
    pub fn new(frames: &[NumberedFrame]) -> Result<LiveFrames, XdpError> {
        let meter = Meter::new(frames.len())?;
        let programs: Result<Vec<_>, XdpError> = frames
            .iter()
            .enumerate()
            .map(|(at, frame)| {
                let steps = program(frame, at);
                let program = Program::load(ProgramKind::Xdp, &steps, meter.map())?;
                Ok((program, frame.bytes.clone()))
            })
            .collect();
        Ok(LiveFrames {
            meter,
            programs: programs?,
        })
    }

    /// Sends up to `count` frames of kind `at`, as many as one call takes at most, with the next numbers of that kind, and says
    /// what became of them. It returns when they have left.
    pub fn send(&mut self, at: usize, count: u32) -> Departed {
        let count = count.min(FRAMES_PER_CALL);
        if count == 0 {
            return Departed::default();
        }
        let (program, frame) = &self.programs[at];
        self.meter
            .measure(|| program.run_live(frame, count, FRAMES_PER_BATCH))
    }

    /// Sends one frame of kind `at`, to see whether that goes at all.
    ///
    /// # Errors
    /// [`XdpError::NotInKernel`] where the kernel makes no live frames. That the interface does not take it is no error: see
    /// [`Departed::reason`].
    pub fn probe(&mut self, at: usize) -> Result<Departed, XdpError> {
        let departed = self.send(at, 1);
        // A kernel that does not know the flag, or the size of a batch behind it.
        match (departed.made, departed.reason) {
            (0, Some(Errno::INVAL | Errno::TOOBIG)) => Err(XdpError::NotInKernel(
                "live frames (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18), by which frames leave",
            )),
            _ => Ok(departed),
        }
    }
}

impl fmt::Debug for LiveFrames {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LiveFrames")
            .field("programs", &self.programs.len())
            .finish_non_exhaustive()
    }
}

/// XDP_DROP of `enum xdp_action`.
const DROP: i32 = 1;

// Places in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;

/// The program for `frame`, which is number `at` of its meter.
fn program(frame: &NumberedFrame, at: usize) -> Vec<Step> {
    assert!(frame.bytes.len() <= FRAME_BYTES_MAX && frame.fixed <= frame.bytes.len());
    assert!(frame.number_at + 4 <= frame.fixed && frame.checksum_at + 2 <= frame.fixed);
    let apart = frame.number_at.abs_diff(frame.checksum_at);
    assert!(apart.is_multiple_of(2), "a checksum is of pairs of bytes");
    let mut steps = vec![
        Step::Load(Word, R6, R1, DATA),
        Step::Load(Word, R3, R1, DATA_END),
        Step::Compute(Set, R4, Of(R6)),
        Step::Compute(Add, R4, Number(frame.fixed as i32)),
        Step::Jump(Greater, R4, Of(R3), Label::Drop),
    ];
    steps.extend(write(&frame.bytes[..frame.fixed], R6));
    steps.extend(make(at));
    steps.extend([
        Step::Compute(Set, R1, Of(R0)),
        Step::BigEndian(Word, R1),
        Step::Store(Word, R6, frame.number_at as i16, Of(R1)),
    ]);
    steps.extend(checksum(frame));
    steps.extend([
        Step::Compute(Set, R1, Number(frame.interface.cast_signed())),
        Step::Compute(Set, R2, Number(0)),
        Step::Call(Helper::Redirect),
        Step::Exit,
        Step::Place(Label::Drop),
        Step::Compute(Set, R0, Number(DROP)),
        Step::Exit,
    ]);
    steps
}

/// Writes these bytes to where `register` points.
fn write(bytes: &[u8], register: Register) -> Vec<Step> {
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut steps = Vec::new();
    let mut offset = 0;
    for eight in eights {
        steps.push(Step::SetWide(R5, u64::from_ne_bytes(*eight)));
        steps.push(Step::Store(Double, register, offset, Of(R5)));
        offset += 8;
    }
    for byte in rest {
        steps.push(Step::Store(Byte, register, offset, Number((*byte).into())));
        offset += 1;
    }
    steps
}

/// Writes the checksum for the number in `R0`: both halves of it are added to the sum of the rest, what is carried is added
/// again, twice, and all is inverted (RFC 1071). A checksum of 0 would say that there is none (RFC 768).
fn checksum(frame: &NumberedFrame) -> Vec<Step> {
    let fold = [
        Step::Compute(Set, R2, Of(R1)),
        Step::Compute(ShiftRight, R2, Number(16)),
        Step::Compute(And, R1, Number(0xffff)),
        Step::Compute(Add, R1, Of(R2)),
    ];
    let mut steps = vec![
        Step::Compute(Set, R1, Of(R0)),
        Step::Compute(ShiftLeft, R1, Number(32)),
        Step::Compute(ShiftRight, R1, Number(48)),
        Step::Compute(And, R0, Number(0xffff)),
        Step::Compute(Add, R1, Of(R0)),
        Step::Compute(Add, R1, Number(frame.checksum_sum.into())),
    ];
    steps.extend(fold);
    steps.extend(fold);
    steps.extend([
        Step::Compute(Xor, R1, Number(0xffff)),
        Step::Jump(NotEqual, R1, Number(0), Label::NotZero),
        Step::Compute(Set, R1, Number(0xffff)),
        Step::Place(Label::NotZero),
        Step::BigEndian(Half, R1),
        Step::Store(Half, R6, frame.checksum_at as i16, Of(R1)),
    ]);
    steps
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::net::netdevice::name_to_index;
    use rustix::net::{AddressFamily, SocketType, socket};
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    use super::*;
    use crate::CountingDrop;

    const MARK: [u8; 2] = [0xab, 0xcd];

    /// UDP over IPv4 to nobody in particular, whose payload begins with a mark.
    fn frame(interface: u32) -> NumberedFrame {
        let mut bytes = vec![0xff; 6];
        bytes.extend([
            2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0,
        ]);
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9, 0, 30, 0, 0]);
        bytes.extend(MARK);
        bytes.resize(64, 0);
        NumberedFrame {
            fixed: 60,
            number_at: 50,
            checksum_at: 40,
            checksum_sum: 1,
            bytes,
            interface,
        }
    }

    /// What `run` gives in a network namespace of its own that has two joined interfaces; `None`, with a line that
    /// says why, where that is not permitted.
    fn joined<T: Send + 'static>(run: impl FnOnce(u32, u32) -> T + Send + 'static) -> Option<T> {
        let thread = std::thread::spawn(|| {
            // SAFETY: a network namespace of this thread's own takes nothing that another thread relies on.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.ok()?;
            for step in [
                "link add name v0 type veth peer name v1",
                "link set v0 up",
                "link set v1 up",
            ] {
                let done = Command::new("ip").args(step.split(' ')).status();
                done.ok().filter(|status| status.success())?;
            }
            let asks = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
            let index = |name| name_to_index(&asks, name).expect("it was just made");
            Some(run(index("v0"), index("v1")))
        });
        let outcome = thread.join().expect("no assertion fails");
        if outcome.is_none() {
            eprintln!("skipped: a network namespace takes root and iproute2");
        }
        outcome
    }

    #[test]
    fn frames_that_leave_are_those_that_come_and_each_has_its_number() {
        joined(|a, b| {
            let drop = match CountingDrop::attach(b, MARK) {
                Ok(drop) => drop,
                Err(error) => return eprintln!("skipped: {error}"),
            };
            let mut frames = match LiveFrames::new(&[frame(a), frame(a)]) {
                Ok(frames) => frames,
                Err(error) => return eprintln!("skipped: {error}"),
            };
            for (at, count) in [(0, 1), (1, 1000), (0, 64), (1, 20_000), (0, 0)] {
                let before = drop.count();
                let departed = frames.send(at, count);
                let made = u64::from(count.min(FRAMES_PER_CALL));
                let expected = Departed {
                    made,
                    sent: made,
                    ..Departed::default()
                };
                assert_eq!(departed, expected);
                assert_eq!(drop.count() - before, made);
            }
            let value = frames.meter.map().read().expect("it is there");
            assert_eq!(value[value.len() - 2..], [65, 1000 + 16_384]);
        });
    }

    #[test]
    fn what_an_interface_does_not_take_has_not_left() {
        joined(|a, b| {
            let mut frames = match LiveFrames::new(&[frame(a), frame(b + 100)]) {
                Ok(frames) => frames,
                Err(error) => return eprintln!("skipped: {error}"),
            };
            // Its peer has no program, and takes no frames. The second interface is none. Linux 6.3 and older ones have
            // different reasons for the first.
            for (at, reasons) in [
                (0, &[Errno::OPNOTSUPP, Errno::NXIO][..]),
                (1, &[Errno::INVAL]),
            ] {
                let departed = frames.probe(at).expect("this kernel makes frames");
                let expected = Departed {
                    made: 1,
                    sent: 0,
                    refused: 1,
                    reason: departed.reason,
                };
                assert_eq!(departed, expected);
                let reason = departed.reason.expect("there is one");
                assert!(reasons.contains(&reason), "{reason}");
            }
        });
    }
}
