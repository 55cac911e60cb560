//! Bytes a socket has still to send, in parts that are never copied together.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::buffer::Buffer;

/// One contiguous run of bytes, owned until it is sent.
#[derive(Debug)]
pub enum Part {
    /// A buffer of the core's pool; it goes back when sent.
    Buffer(Buffer),
    /// Memory shared with others on this core, such as the content of a cached file, from an offset on.
    Shared(Rc<[u8]>, usize),
    /// Bytes that live as long as the program.
    Static(&'static [u8]),
}

impl Part {
    /// What is left of it to be sent.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Part::Buffer(buffer) => buffer,
            Part::Shared(bytes, start) => &bytes[*start..],
            Part::Static(bytes) => bytes,
        }
    }

    /// Drops its first `count` bytes.
    ///
    /// # Panics
    /// When it has fewer.
    pub fn consume(&mut self, count: usize) {
        match self {
            Part::Buffer(buffer) => buffer.consume(count),
            Part::Shared(_, start) => *start += count,
            Part::Static(bytes) => *bytes = &bytes[count..],
        }
    }
}

impl From<Buffer> for Part {
    fn from(buffer: Buffer) -> Self {
        Part::Buffer(buffer)
    }
}

impl From<Rc<[u8]>> for Part {
    fn from(bytes: Rc<[u8]>) -> Self {
        Part::Shared(bytes, 0)
    }
}

impl From<&'static [u8]> for Part {
    fn from(bytes: &'static [u8]) -> Self {
        Part::Static(bytes)
    }
}

/// A queue whose first element needs no heap: nearly always it is the only one.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// Invariant: `None` only when `rest` is empty.
    first: Option<T>,
    /// Boxed: most sockets never have a second element, and every socket has three of these queues.
    #[allow(
        clippy::box_collection,
        reason = "24 bytes less in every idle connection, three times"
    )]
    rest: Option<Box<VecDeque<T>>>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            first: None,
            rest: None,
        }
    }
}

impl<T> Queue<T> {
    pub(crate) fn push(&mut self, item: T) {
        match self.first {
            None => self.first = Some(item),
            Some(_) => self.rest.get_or_insert_default().push_back(item),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let next = self.rest.as_mut().and_then(|rest| rest.pop_front());
        std::mem::replace(&mut self.first, next)
    }

    pub(crate) fn push_front(&mut self, item: T) {
        if let Some(second) = self.first.replace(item) {
            self.rest.get_or_insert_default().push_front(second);
        }
    }

    pub(crate) fn first_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first
            .iter()
            .chain(self.rest.iter().flat_map(|rest| rest.iter()))
    }

    /// Empties the queue and gives its memory back.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Queue<Part> {
    /// Drops the first `count` bytes and every part that is sent with them.
    ///
    /// # Panics
    /// When fewer bytes are queued.
    pub(crate) fn consume(&mut self, mut count: usize) {
        while let Some(part) = self.first_mut() {
            let length = part.bytes().len();
            if count < length {
                part.consume(count);
                return;
            }
            count -= length;
            self.pop();
        }
        assert_eq!(count, 0, "more bytes sent than queued");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_send_leaves_exactly_the_rest() {
        let parts: [&'static [u8]; 3] = [b"head", b"body", b"tail"];
        for sent in 0..=12 {
            let mut queue = Queue::default();
            for part in parts {
                queue.push(Part::from(part));
            }
            queue.consume(sent);
            let rest: Vec<u8> = queue
                .iter()
                .flat_map(|part| part.bytes().to_vec())
                .collect();
            assert_eq!(rest, b"headbodytail"[sent..], "after {sent} bytes");
        }
    }
}
