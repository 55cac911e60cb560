//! Identifiers of tasks, for the core and for wakers on other threads.

use crate::limits::CORES_MAX;

/// Identifies a task. A stale ID (the task has ended, its index was reused) is recognised and ignored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TaskId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl TaskId {
    /// No task: waking it does nothing.
    pub(crate) const NONE: TaskId = TaskId {
        index: u32::MAX,
        generation: u32::MAX,
    };

    /// Packs the ID with the number of its core into a waker's data:
    ///
    /// ```text
    ///   63       52 51          26 25        0
    ///   [  place  ] [ generation ] [  index  ]
    /// ```
    pub(super) fn pack(self, place: u16) -> usize {
        usize::from(place) << (2 * ID_BITS)
            | (self.generation as usize) << ID_BITS
            | self.index as usize
    }

    pub(super) fn unpack(packed: usize) -> (u16, Self) {
        let task = Self {
            index: packed as u32 & ID_MASK,
            generation: (packed >> ID_BITS) as u32 & ID_MASK,
        };
        ((packed >> (2 * ID_BITS)) as u16, task)
    }
}

/// Bits of an index and of a generation: 67 million tasks on one core, more than fit its memory.
const ID_BITS: u32 = 26;
pub(super) const ID_MASK: u32 = (1 << ID_BITS) - 1;
const _: () = assert!(usize::BITS == 64 && CORES_MAX <= 1 << (64 - 2 * ID_BITS));
