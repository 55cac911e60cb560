//! Sending frames by XDP: a program writes a number into each frame and has an interface send it, without a socket, a
//! route or a queue. The kernel makes the frames, many per call (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18).

use std::fmt;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::thread;

use rustix::io::Errno;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::instruction::Condition::{Greater, NotEqual};
use super::instruction::Operand::{Number, Of};
use super::instruction::Operation::{Add, And, Set, ShiftLeft, ShiftRight, Xor};
use super::instruction::Register::{R0, R1, R2, R3, R4, R5, R6, R7};
use super::instruction::Size::{Byte, Double, Half, Word};
use super::instruction::{BpfStep, Helper, Label};
use super::meter::{Meter, PROGRAM_START, SendOutcome, at, count};
use super::system::{AttachMode, Program, ProgramKind, XdpError};
use crate::limits::{FRAME_BYTES_MAX, FRAMES_PER_BATCH, FRAMES_PER_CALL, INTERRUPTED_TRIES};

/// A template for frames that differ in a number of 32 bits, big-endian, and in the checksum that covers it.
///
/// ```text
///  0             checksum_at      number_at      fixed            bytes.len()
///  +-------------+------+---------+------+-------+----------------+
///  | written again into each frame               | written once   |
///  +-------------+------+---------+------+-------+----------------+
/// ```
/// The kernel reuses the memory of frames without restoring its content, and a receiver may have changed it: a router
/// on the same machine changes addresses and the time to live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NumberedFrame {
    /// The whole frame, from the Ethernet header on.
    pub bytes: Vec<u8>,
    /// Number of bytes at the start that are written again into each frame.
    pub fixed: usize,
    /// Offset of the number, at an even distance from the checksum.
    pub number_at: usize,
    /// Offset of the checksum (RFC 1071).
    pub checksum_at: usize,
    /// The ones' complement sum, not yet inverted, of everything that the checksum covers, with number 0.
    pub checksum_sum: u16,
    /// Index of the sending interface, in the network namespace of the thread.
    pub interface: u32,
}

/// A program that sends frames of several kinds, each with its own numbers. It belongs to one thread.
pub struct LiveFrames {
    meter: Meter,
    program: Program,
    kinds: Vec<FrameKind>,
    /// `None` if this process may not create namespaces: calls then take longer.
    _kept: Option<DispatcherEntry>,
}

struct FrameKind {
    frame: NumberedFrame,
    next: u64,
}

impl LiveFrames {
    /// Loads a program for these kinds of frames, at least one, whose numbers and checksums have the same offsets.
    ///
    /// # Errors
    /// Missing rights to load programs, or a kernel without a required feature.
    pub fn new(frames: &[NumberedFrame]) -> Result<LiveFrames, XdpError> {
        let layout = Layout::of(&frames[0]);
        assert!(frames.iter().all(|frame| Layout::of(frame) == layout));
        let meter = Meter::new(layout.numbers())?;
        let program = Program::load(ProgramKind::Xdp, &program(layout), meter.map())?;
        let of_frame = |frame: &NumberedFrame| FrameKind {
            frame: frame.clone(),
            next: 0,
        };
        Ok(LiveFrames {
            meter,
            _kept: DispatcherEntry::new(&program),
            program,
            kinds: frames.iter().map(of_frame).collect(),
        })
    }

    /// Checks whether this process may load XDP programs.
    ///
    /// # Errors
    /// As [`LiveFrames::new`].
    pub fn check_permission() -> Result<(), XdpError> {
        Meter::new(0).map(drop)
    }

    /// Sends up to `count` frames of kind `at`, limited to one call, with the next numbers, and returns their outcome.
    pub fn send(&mut self, at: usize, count: u32) -> SendOutcome {
        let count = count.min(FRAMES_PER_CALL);
        if count == 0 {
            return SendOutcome::default();
        }
        let FrameKind { frame, next } = &mut self.kinds[at];
        let departed = self.meter.measure(frame.numbers(*next), || {
            self.program.run_live(&frame.bytes, count, FRAMES_PER_BATCH)
        });
        *next += departed.made;
        departed
    }

    /// Sends one frame of kind `at` as a test.
    ///
    /// # Errors
    /// [`XdpError::NotInKernel`] if the kernel does not support live frames. If the interface does not take the frame,
    /// that is not an error: see [`SendOutcome::reason`].
    pub fn probe(&mut self, at: usize) -> Result<SendOutcome, XdpError> {
        let mut departed = self.send(at, 1);
        for _ in 1..INTERRUPTED_TRIES {
            if departed.made > 0 || departed.reason != Some(Errno::INTR) {
                break;
            }
            departed = self.send(at, 1);
        }
        // The kernel does not know the flag, or the batch size after it.
        match (departed.made, departed.reason) {
            (0, Some(Errno::INVAL | Errno::TOOBIG)) => Err(XdpError::NotInKernel(
                "XDP live frames (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18), which send the frames",
            )),
            _ => Ok(departed),
        }
    }
}

impl fmt::Debug for LiveFrames {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LiveFrames")
            .field("kinds", &self.kinds.len())
            .finish_non_exhaustive()
    }
}

/// Prevents the kernel from patching its code for each call. It calls XDP programs through a table in its code (the BPF
/// dispatcher), to which it adds a program before a test run and from which it removes it afterwards. Each time it
/// waits for all CPUs: 12 ms, measured with a tick of 250 Hz. A program that is attached somewhere stays in the table.
/// So this one is attached to the loopback of an otherwise unused network namespace, where no packet arrives.
struct DispatcherEntry {
    _link: OwnedFd,
    _namespace: File,
}

impl DispatcherEntry {
    fn new(program: &Program) -> Option<DispatcherEntry> {
        let kept = thread::scope(|scope| {
            let in_namespace = scope.spawn(|| {
                // SAFETY: other threads do not depend on the network namespace of this thread.
                unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.ok()?;
                Some(DispatcherEntry {
                    // The loopback, the first interface of a namespace.
                    _link: program.attach(1, AttachMode::Generic).ok()?,
                    _namespace: File::open("/proc/thread-self/ns/net").ok()?,
                })
            });
            in_namespace.join()
        });
        kept.ok().flatten()
    }
}

/// XDP_DROP of `enum xdp_action`.
const DROP: i32 = 1;

// Offsets in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;

// Indices of the program's numbers in the map, after the meter's.
const NUMBER: usize = PROGRAM_START;
const INTERFACE: usize = PROGRAM_START + 1;
const CHECKSUM_SUM: usize = PROGRAM_START + 2;
/// The bytes written into each frame, eight per number.
const BYTES: usize = PROGRAM_START + 3;

/// Layout shared by the kinds of frames of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Layout {
    fixed: usize,
    number_at: usize,
    checksum_at: usize,
}

impl Layout {
    fn of(frame: &NumberedFrame) -> Layout {
        assert!(frame.bytes.len() <= FRAME_BYTES_MAX && frame.fixed <= frame.bytes.len());
        assert!(frame.number_at + 4 <= frame.fixed && frame.checksum_at + 2 <= frame.fixed);
        let apart = frame.number_at.abs_diff(frame.checksum_at);
        assert!(apart.is_multiple_of(2), "a checksum is of pairs of bytes");
        Layout {
            fixed: frame.fixed,
            number_at: frame.number_at,
            checksum_at: frame.checksum_at,
        }
    }

    fn numbers(self) -> usize {
        BYTES - PROGRAM_START + self.fixed.div_ceil(8)
    }
}

impl NumberedFrame {
    /// The program's numbers for frames of this kind, starting with number `next`.
    fn numbers(&self, next: u64) -> impl Iterator<Item = u64> {
        let bytes = self.bytes[..self.fixed].chunks(8).map(|part| {
            let mut eight = [0; 8];
            eight[..part.len()].copy_from_slice(part);
            u64::from_ne_bytes(eight)
        });
        let first = [next, self.interface.into(), self.checksum_sum.into()];
        first.into_iter().chain(bytes)
    }
}

fn program(layout: Layout) -> Vec<BpfStep> {
    let mut steps = vec![
        BpfStep::Load(Word, R6, R1, DATA),
        BpfStep::Load(Word, R3, R1, DATA_END),
        BpfStep::Compute(Set, R4, Of(R6)),
        BpfStep::Compute(Add, R4, Number(layout.fixed as i32)),
        BpfStep::Jump(Greater, R4, Of(R3), Label::Drop),
        BpfStep::PointToMap(R7),
    ];
    steps.extend(copy(layout.fixed));
    steps.extend(count());
    steps.extend([
        BpfStep::Load(Double, R0, R7, at(NUMBER)),
        BpfStep::Compute(Set, R1, Of(R0)),
        BpfStep::Compute(Add, R1, Number(1)),
        BpfStep::Store(Double, R7, at(NUMBER), Of(R1)),
        BpfStep::Compute(Set, R1, Of(R0)),
        BpfStep::BigEndian(Word, R1),
        BpfStep::Store(Word, R6, layout.number_at as i16, Of(R1)),
    ]);
    steps.extend(checksum(layout.checksum_at as i16));
    steps.extend([
        BpfStep::Load(Double, R1, R7, at(INTERFACE)),
        BpfStep::Compute(Set, R2, Number(0)),
        BpfStep::Call(Helper::Redirect),
        BpfStep::Exit,
        BpfStep::DefineLabel(Label::Drop),
        BpfStep::Compute(Set, R0, Number(DROP)),
        BpfStep::Exit,
    ]);
    steps
}

/// Copies the first `count` bytes of the frame from the map.
fn copy(count: usize) -> Vec<BpfStep> {
    let mut steps = Vec::new();
    let mut offset = 0;
    for (size, bytes) in [(Double, 8), (Word, 4), (Half, 2), (Byte, 1)] {
        while count - offset >= bytes {
            steps.push(BpfStep::Load(size, R5, R7, at(BYTES) + offset as i16));
            steps.push(BpfStep::Store(size, R6, offset as i16, Of(R5)));
            offset += bytes;
        }
    }
    steps
}

/// Writes the checksum for the number in `R0`: adds both halves of it to the sum of the rest, adds the carry twice, and
/// inverts the result (RFC 1071). A result of 0 is sent as 0xffff, because 0 means no checksum (RFC 768).
fn checksum(place: i16) -> Vec<BpfStep> {
    let fold = [
        BpfStep::Compute(Set, R2, Of(R1)),
        BpfStep::Compute(ShiftRight, R2, Number(16)),
        BpfStep::Compute(And, R1, Number(0xffff)),
        BpfStep::Compute(Add, R1, Of(R2)),
    ];
    let mut steps = vec![
        BpfStep::Compute(Set, R1, Of(R0)),
        BpfStep::Compute(ShiftLeft, R1, Number(32)),
        BpfStep::Compute(ShiftRight, R1, Number(48)),
        BpfStep::Compute(And, R0, Number(0xffff)),
        BpfStep::Compute(Add, R1, Of(R0)),
        BpfStep::Load(Double, R2, R7, at(CHECKSUM_SUM)),
        BpfStep::Compute(Add, R1, Of(R2)),
    ];
    steps.extend(fold);
    steps.extend(fold);
    steps.extend([
        BpfStep::Compute(Xor, R1, Number(0xffff)),
        BpfStep::Jump(NotEqual, R1, Number(0), Label::NotZero),
        BpfStep::Compute(Set, R1, Number(0xffff)),
        BpfStep::DefineLabel(Label::NotZero),
        BpfStep::BigEndian(Half, R1),
        BpfStep::Store(Half, R6, place, Of(R1)),
    ]);
    steps
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::net::netdevice::name_to_index;
    use rustix::net::{AddressFamily, SocketType, socket};

    use super::*;
    use crate::CountingDrop;

    const MARK: [u8; 2] = [0xab, 0xcd];

    /// UDP over IPv4 to an arbitrary address, with a payload that begins with a mark.
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

    /// Runs `run` in a new network namespace with a pair of connected interfaces; `None` if that is not permitted.
    fn joined<T: Send + 'static>(run: impl FnOnce(u32, u32) -> T + Send + 'static) -> Option<T> {
        let thread = std::thread::spawn(|| {
            // SAFETY: other threads do not depend on the network namespace of this thread.
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
    fn sent_frames_have_sequence_numbers() {
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
                let expected = SendOutcome {
                    made,
                    sent: made,
                    ..SendOutcome::default()
                };
                assert_eq!(departed, expected);
                assert_eq!(drop.count() - before, made);
            }
            let next: Vec<u64> = frames.kinds.iter().map(|kind| kind.next).collect();
            assert_eq!(next, [65, 1000 + 16_384]);
        });
    }

    #[test]
    fn refused_frames_are_counted_with_reason() {
        joined(|a, b| {
            let mut frames = match LiveFrames::new(&[frame(a), frame(b + 100)]) {
                Ok(frames) => frames,
                Err(error) => return eprintln!("skipped: {error}"),
            };
            // The first interface's peer has no program and takes no frames; the second interface does not exist. Linux
            // 6.3 and older report a different reason for the first.
            for (at, reasons) in [
                (0, &[Errno::OPNOTSUPP, Errno::NXIO][..]),
                (1, &[Errno::INVAL]),
            ] {
                let departed = frames.probe(at).expect("this kernel makes frames");
                let expected = SendOutcome {
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
