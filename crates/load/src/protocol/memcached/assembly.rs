//! Reassembly of a response from its datagrams. Pure.
//!
//! A response is a message of numbered datagrams, which may be reordered or duplicated. To a get of several keys,
//! memcached 1.6 and later sends one message per value, all with the request's id and each numbered from 0.

use onrush_packet::memcached::Frame;

/// How many messages may form a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Messages {
    One,
    Several,
}

/// Result of adding a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Added {
    /// It was the next one, and was appended.
    Next,
    /// It is early, and was stored until the ones before it arrive.
    Held,
    Duplicated,
    /// Its number, or its number of datagrams, does not match the message.
    WrongSequence,
    /// It is early, and there is no room to store it.
    NoRoom,
}

/// State of a response's reassembly.
#[derive(Debug)]
pub(crate) struct Assembly {
    messages: Messages,
    /// Number of datagrams of the current message; 0 between messages.
    datagrams: u16,
    next: u16,
    /// Complete messages.
    complete: u64,
    /// Datagrams of the current message that arrived early.
    held: Vec<(u16, Box<[u8]>)>,
}

impl Assembly {
    pub(crate) fn new() -> Assembly {
        Assembly {
            messages: Messages::One,
            datagrams: 0,
            next: 0,
            complete: 0,
            held: Vec::new(),
        }
    }

    /// Starts another response; adds the bytes of stored datagrams back to `room`.
    pub(crate) fn begin(&mut self, messages: Messages, room: &mut usize) {
        *room += self
            .held
            .drain(..)
            .map(|(_, bytes)| bytes.len())
            .sum::<usize>();
        (self.messages, self.datagrams, self.next, self.complete) = (messages, 0, 0, 0);
    }

    /// Adds a datagram: appends it to `answer` if it is in order, with the stored ones after it. Otherwise stores it if
    /// its bytes fit in `room`.
    pub(crate) fn add(
        &mut self,
        frame: Frame,
        payload: &[u8],
        answer: &mut Vec<u8>,
        room: &mut usize,
    ) -> Added {
        if frame.datagrams == 0 {
            // A message without datagrams.
            return Added::Next;
        }
        if self.datagrams == 0 {
            if self.complete > 0 && self.messages == Messages::One {
                return Added::Duplicated;
            }
            self.datagrams = frame.datagrams;
        }
        if frame.datagrams != self.datagrams {
            return Added::WrongSequence;
        }
        let mut held = self.held.iter();
        if frame.sequence < self.next || held.any(|(sequence, _)| *sequence == frame.sequence) {
            return Added::Duplicated;
        }
        if frame.sequence > self.next {
            if *room < payload.len() {
                return Added::NoRoom;
            }
            *room -= payload.len();
            self.held.push((frame.sequence, payload.into()));
            return Added::Held;
        }
        answer.extend_from_slice(payload);
        self.next += 1;
        self.append_held(answer, room);
        if self.next == self.datagrams {
            self.complete += 1;
            (self.datagrams, self.next) = (0, 0);
        }
        Added::Next
    }

    fn append_held(&mut self, answer: &mut Vec<u8>, room: &mut usize) {
        while let Some(at) = self.held.iter().position(|held| held.0 == self.next) {
            let (_, bytes) = self.held.swap_remove(at);
            answer.extend_from_slice(&bytes);
            *room += bytes.len();
            self.next += 1;
        }
    }

    /// Whether the response is known to be complete.
    pub(crate) fn is_whole(&self) -> bool {
        self.messages == Messages::One && self.complete > 0
    }

    /// Whether datagrams of the current message are missing.
    pub(crate) fn is_within_message(&self) -> bool {
        self.datagrams > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 100;

    fn add(assembly: &mut Assembly, what: (u16, u16, &str), answer: &mut Vec<u8>) -> Added {
        let (sequence, datagrams, payload) = what;
        let frame = Frame {
            id: 1,
            sequence,
            datagrams,
        };
        let mut room = ROOM;
        assembly.add(frame, payload.as_bytes(), answer, &mut room)
    }

    fn placed(messages: Messages, datagrams: &[(u16, u16, &str)]) -> (Vec<Added>, String) {
        let (mut assembly, mut answer) = (Assembly::new(), Vec::new());
        assembly.begin(messages, &mut 0);
        let each = datagrams.iter();
        let placed = each.map(|what| add(&mut assembly, *what, &mut answer));
        (placed.collect(), String::from_utf8(answer).unwrap())
    }

    #[test]
    fn reordered_datagrams_are_reassembled() {
        use Added::{Held, Next};
        let of = |datagrams: &[(u16, u16, &str)]| placed(Messages::One, datagrams);
        let parts = [(0, 3, "a"), (1, 3, "b"), (2, 3, "c")];
        let [a, b, c] = parts;
        assert_eq!(of(&[a, b, c]), (vec![Next; 3], "abc".to_owned()));
        assert_eq!(of(&[c, b, a]), (vec![Held, Held, Next], "abc".to_owned()));
        assert_eq!(of(&[b, a, c]), (vec![Held, Next, Next], "abc".to_owned()));
    }

    #[test]
    fn duplicates_and_mismatches_are_discarded() {
        use Added::{Duplicated, Held, Next, WrongSequence};
        let of = |datagrams: &[(u16, u16, &str)]| placed(Messages::One, datagrams);
        let (placed, answer) = of(&[
            (1, 2, "b"),
            (1, 2, "b"),
            (0, 3, "x"),
            (0, 2, "a"),
            (0, 2, "a"),
        ]);
        assert_eq!(placed, [Held, Duplicated, WrongSequence, Next, Duplicated]);
        assert_eq!(answer, "ab");
        assert_eq!(of(&[(0, 1, "a"), (0, 1, "a")]).0, [Next, Duplicated]);
    }

    #[test]
    fn multi_message_response_is_reassembled_in_order() {
        let several = [
            (0, 1, "a"),
            (1, 2, "c"),
            (0, 2, "b"),
            (0, 0, ""),
            (0, 1, "d"),
        ];
        let (_, answer) = placed(Messages::Several, &several);
        assert_eq!(answer, "abcd");
    }

    #[test]
    fn reassembly_memory_is_limited_and_released() {
        let (mut assembly, mut answer, mut room) = (Assembly::new(), Vec::new(), 5);
        let frame = |sequence| Frame {
            id: 1,
            sequence,
            datagrams: 4,
        };
        let mut place = |assembly: &mut Assembly, sequence, room: &mut usize| {
            assembly.add(frame(sequence), b"abc", &mut answer, room)
        };
        assert_eq!(place(&mut assembly, 1, &mut room), Added::Held);
        assert_eq!(
            (place(&mut assembly, 2, &mut room), room),
            (Added::NoRoom, 2)
        );
        assert_eq!((place(&mut assembly, 0, &mut room), room), (Added::Next, 5));
        assert_eq!((place(&mut assembly, 3, &mut room), room), (Added::Held, 2));
        assert!(!assembly.is_whole() && assembly.is_within_message());
        assembly.begin(Messages::One, &mut room);
        assert_eq!(room, 5);
    }
}
