//! A hierarchical timer wheel: insert, cancel and expire take constant time for any number of timers.
//!
//! Six levels of 64 slots; a slot of level n covers 64^n ticks. A timer is in the level of the highest 6-bit group in
//! which its tick differs from the current tick, and moves to a lower level when the wheel reaches its slot. After
//! Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", 1987.

use std::num::NonZeroU32;

use crate::clock::Instant;

/// One tick is 2^14 ns (16 us): well below the cost of a wake-up, so the rounding does not matter.
const TICK_SHIFT: u32 = 14;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 6;
/// Maximum distance of a timer in ticks, 12.8 days; a later timer expires early and must be checked again. One slot
/// less than a round of the highest level, so that the present slot is never also the last slot of the next round.
const TICKS_MAX: u64 = (SLOTS as u64 - 1) << (SLOT_BITS * (LEVELS as u32 - 1));

const NONE: u32 = u32::MAX;

/// Identifies a timer until it expires or is cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimerId(
    /// Index of its node plus one, so that an `Option` of it has the same size.
    NonZeroU32,
);

impl TimerId {
    fn of(index: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index))
    }

    fn index(self) -> u32 {
        self.0.get() - 1
    }
}

/// Kept small, because every idle connection has one.
struct Node<T> {
    token: T,
    due: Due,
    previous: u32,
    next: u32,
}

/// When a timer expires, and its present level in the wheel. A tick has 50 bits, the rest of 64 above [`TICK_SHIFT`].
///
/// ```text
///   63    58        8       0
///   [  0  |  tick   | level ]
/// ```
#[derive(Clone, Copy)]
struct Due(u64);

impl Due {
    const LEVEL_BITS: u32 = 8;

    fn new(tick: u64, level: usize) -> Self {
        Self(tick << Self::LEVEL_BITS | level as u64)
    }

    fn tick(self) -> u64 {
        self.0 >> Self::LEVEL_BITS
    }

    fn level(self) -> usize {
        (self.0 as usize) & ((1 << Self::LEVEL_BITS) - 1)
    }

    fn slot(self) -> usize {
        (self.tick() >> (SLOT_BITS * self.level() as u32)) as usize % SLOTS
    }
}

pub(crate) struct Wheel<T> {
    /// The last tick that was expired. Invariant: every timer's tick is greater.
    elapsed: u64,
    /// First node of each slot's list, or `NONE`.
    heads: [[u32; SLOTS]; LEVELS],
    /// Bit s of `occupied[l]` is set exactly when `heads[l][s] != NONE`.
    occupied: [u64; LEVELS],
    nodes: Vec<Node<T>>,
    /// Chain of unused nodes through `next`.
    unused: u32,
    count: usize,
}

impl<T: Copy> Wheel<T> {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            elapsed: now.nanoseconds() >> TICK_SHIFT,
            heads: [[NONE; SLOTS]; LEVELS],
            occupied: [0; LEVELS],
            nodes: Vec::new(),
            unused: NONE,
            count: 0,
        }
    }

    /// Inserts a timer that expires at the first tick not before `when`.
    pub(crate) fn insert(&mut self, when: Instant, token: T) -> TimerId {
        // `when` may be the maximum instant, at which sums of times saturate.
        let tick = when.nanoseconds().saturating_add((1 << TICK_SHIFT) - 1) >> TICK_SHIFT;
        let tick = tick.clamp(self.elapsed + 1, self.elapsed + TICKS_MAX);
        let node = Node {
            token,
            due: Due::new(tick, 0),
            previous: NONE,
            next: NONE,
        };
        let index = if self.unused == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.unused;
            self.unused = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        };
        self.count += 1;
        self.link(index);
        TimerId::of(index)
    }

    /// Removes a timer that has not expired yet.
    pub(crate) fn cancel(&mut self, timer: TimerId) {
        self.unlink(timer.index());
        self.release(timer.index());
    }

    /// When the wheel must be checked next: not later than its next timer, perhaps earlier.
    pub(crate) fn next(&self) -> Option<Instant> {
        let (_, _, tick) = self.next_slot()?;
        Some(Instant::from_nanoseconds(tick << TICK_SHIFT))
    }

    /// Moves the tokens of all timers due at `now` to `expired`, in the order of their ticks.
    pub(crate) fn expire(&mut self, now: Instant, expired: &mut Vec<T>) {
        let now = now.nanoseconds() >> TICK_SHIFT;
        if self.count == 0 {
            self.elapsed = self.elapsed.max(now);
            return;
        }
        while let Some((level, slot, tick)) = self.next_slot() {
            if tick > now {
                break;
            }
            self.elapsed = tick;
            self.empty(level, slot, expired);
        }
        self.elapsed = self.elapsed.max(now);
    }

    /// Expires the due timers of the slot and moves the rest to lower levels.
    fn empty(&mut self, level: usize, slot: usize, expired: &mut Vec<T>) {
        let mut index = self.heads[level][slot];
        self.heads[level][slot] = NONE;
        self.occupied[level] &= !(1 << slot);
        while index != NONE {
            let next = self.nodes[index as usize].next;
            if self.nodes[index as usize].due.tick() <= self.elapsed {
                expired.push(self.nodes[index as usize].token);
                self.release(index);
            } else {
                self.link(index);
            }
            index = next;
        }
    }

    /// The first occupied slot, and the tick at which it begins.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        // Timers of a lower level are inside the present slot of every higher one, so the lowest level is first.
        let level = self.occupied.iter().position(|&slots| slots != 0)?;
        let shift = SLOT_BITS * level as u32;
        let present = (self.elapsed >> shift) as u32 & (SLOTS as u32 - 1);
        let ahead = self.occupied[level].rotate_right(present).trailing_zeros();
        let slot = (present + ahead) as usize % SLOTS;
        let round = 1u64 << (shift + SLOT_BITS);
        let start = (self.elapsed & !(round - 1)) + ((slot as u64) << shift);
        // Only the top level can wrap around.
        let tick = if start <= self.elapsed && ahead > 0 || start < self.elapsed {
            start + round
        } else {
            start
        };
        Some((level, slot, tick))
    }

    fn link(&mut self, index: u32) {
        let tick = self.nodes[index as usize].due.tick();
        let differing = (self.elapsed ^ tick) | (SLOTS as u64 - 1);
        let level = (((63 - differing.leading_zeros()) / SLOT_BITS) as usize).min(LEVELS - 1);
        let due = Due::new(tick, level);
        let slot = due.slot();
        let head = self.heads[level][slot];
        if head != NONE {
            self.nodes[head as usize].previous = index;
        }
        let node = &mut self.nodes[index as usize];
        (node.due, node.previous, node.next) = (due, NONE, head);
        self.heads[level][slot] = index;
        self.occupied[level] |= 1 << slot;
    }

    fn unlink(&mut self, index: u32) {
        let Node {
            due,
            previous,
            next,
            ..
        } = self.nodes[index as usize];
        let (level, slot) = (due.level(), due.slot());
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        if previous != NONE {
            self.nodes[previous as usize].next = next;
        } else {
            self.heads[level][slot] = next;
            if next == NONE {
                self.occupied[level] &= !(1 << slot);
            }
        }
    }

    fn release(&mut self, index: u32) {
        self.nodes[index as usize].next = self.unused;
        self.unused = index;
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TICK: u64 = 1 << TICK_SHIFT;

    fn at(tick: u64) -> Instant {
        Instant::from_nanoseconds(tick * TICK)
    }

    #[test]
    fn timer_expires_at_scheduled_tick() {
        for tick in [
            1, 63, 64, 65, 4095, 4096, 4097, 262_143, 262_144, 20_000_000,
        ] {
            let mut wheel = Wheel::new(at(0));
            wheel.insert(at(tick), tick);
            let mut expired = Vec::new();
            wheel.expire(at(tick - 1), &mut expired);
            assert_eq!(expired, [], "too early for {tick}");
            wheel.expire(at(tick), &mut expired);
            assert_eq!(expired, [tick]);
            assert_eq!(wheel.next(), None);
        }
    }

    #[test]
    fn overdue_timer_expires_at_next_tick() {
        let mut wheel = Wheel::new(at(1000));
        wheel.insert(at(3), ());
        let mut expired = Vec::new();
        wheel.expire(at(1001), &mut expired);
        assert_eq!(expired.len(), 1);
    }

    #[test]
    fn timer_beyond_wheel_expires_at_wheel_end() {
        for begin in [0, 5, 1 << 30, (1 << 36) - 1] {
            for tick in [TICKS_MAX + 1, u64::MAX >> TICK_SHIFT] {
                let mut wheel = Wheel::new(at(begin));
                wheel.insert(
                    Instant::from_nanoseconds((begin + tick).saturating_mul(TICK)),
                    (),
                );
                let mut expired = Vec::new();
                wheel.expire(at(begin + TICKS_MAX - 1), &mut expired);
                assert_eq!(expired, [], "too early for {tick} from {begin}");
                wheel.expire(at(begin + TICKS_MAX), &mut expired);
                assert_eq!(expired, [()]);
            }
        }
    }

    /// Ticks of all magnitudes, including some beyond the wheel.
    fn near_or_far() -> impl Strategy<Value = u64> {
        (1u64..1 << 37, 0u32..37).prop_map(|(ticks, shift)| (ticks >> shift).max(1))
    }

    proptest! {
        /// Compares the wheel with a sorted list.
        #[test]
        fn timer_wheel_matches_sorted_list(
            steps in prop::collection::vec((0u8..4, near_or_far()), 1..200)
        ) {
            let mut now = 5_000;
            let mut wheel = Wheel::new(at(now));
            let mut model: Vec<(u64, usize, TimerId)> = Vec::new();
            for (name, (kind, amount)) in steps.into_iter().enumerate() {
                match kind {
                    0 | 1 => {
                        let id = wheel.insert(at(now + amount), name);
                        model.push((now + amount.min(TICKS_MAX), name, id));
                    }
                    2 if !model.is_empty() => {
                        let (_, _, id) = model.swap_remove(amount as usize % model.len());
                        wheel.cancel(id);
                    }
                    _ => {
                        now += amount;
                        let mut expired = Vec::new();
                        wheel.expire(at(now), &mut expired);
                        let mut due: Vec<usize> =
                            model.iter().filter(|timer| timer.0 <= now).map(|timer| timer.1).collect();
                        model.retain(|timer| timer.0 > now);
                        expired.sort_unstable();
                        due.sort_unstable();
                        prop_assert_eq!(expired, due);
                    }
                }
                let earliest = model.iter().map(|timer| timer.0).min();
                match (wheel.next(), earliest) {
                    (Some(next), Some(earliest)) => prop_assert!(next <= at(earliest) && next > at(now)),
                    (next, earliest) => prop_assert_eq!(next.is_some(), earliest.is_some()),
                }
            }
        }
    }
}
