//! The bytes that a socket still has to send, as parts that are not copied together.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::buffers::buffer::Buffer;
use crate::limits::{QUEUE_CAPACITY_KEPT, QUEUES_FREE_MAX};

/// Contiguous bytes, owned until they are sent.
#[derive(Debug)]
pub enum Part {
    /// A buffer of the core's pool, returned when sent.
    Buffer(Buffer),
    /// Memory shared on this core, such as the content of a cached file, starting at an offset.
    Shared(Rc<[u8]>, usize),
    /// Static bytes.
    Static(&'static [u8]),
}

impl Part {
    /// The unsent bytes.
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

/// A queue whose first element, nearly always the only one, needs no heap memory. Memory for others comes from a free
/// list and returns to it with the last of them: an idle connection has none.
#[derive(Debug)]
pub struct Queue<T: Queued> {
    /// Invariant: `None` only when `rest` is empty.
    first: Option<T>,
    /// Invariant: not empty.
    rest: Option<Rest<T>>,
}

/// Boxed, because every socket has several of these queues.
type Rest<T> = Box<VecDeque<T>>;

/// Elements of queues.
pub trait Queued: Sized {
    /// Takes an empty queue from the free list, if the type has one.
    fn take_free() -> Option<Rest<Self>> {
        None
    }

    /// Returns an empty queue to the free list.
    fn put_free(_: Rest<Self>) {}
}

thread_local! {
    static FREE: RefCell<Vec<Rest<Part>>> = const { RefCell::new(Vec::new()) };
}

impl Queued for Part {
    #[inline]
    fn take_free() -> Option<Rest<Part>> {
        FREE.with_borrow_mut(Vec::pop)
    }

    #[inline]
    fn put_free(rest: Rest<Part>) {
        // At the end of a thread the free list may be gone.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < QUEUES_FREE_MAX && rest.capacity() <= QUEUE_CAPACITY_KEPT {
                free.push(rest);
            }
        });
    }
}

impl<T: Queued> Default for Queue<T> {
    fn default() -> Self {
        Self {
            first: None,
            rest: None,
        }
    }
}

impl<T: Queued> Queue<T> {
    /// Appends an element.
    #[inline]
    pub fn push(&mut self, item: T) {
        match self.first {
            None => self.first = Some(item),
            Some(_) => self.rest_mut().push_back(item),
        }
    }

    /// Removes the first element.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let next = match &mut self.rest {
            None => None,
            Some(_) => self.pop_rest(),
        };
        std::mem::replace(&mut self.first, next)
    }

    pub(crate) fn push_front(&mut self, item: T) {
        if let Some(second) = self.first.replace(item) {
            self.rest_mut().push_front(second);
        }
    }

    fn rest_mut(&mut self) -> &mut VecDeque<T> {
        self.rest
            .get_or_insert_with(|| T::take_free().unwrap_or_default())
    }

    fn pop_rest(&mut self) -> Option<T> {
        let mut rest = self.rest.take()?;
        let next = rest.pop_front();
        match rest.is_empty() {
            true => T::put_free(rest),
            false => self.rest = Some(rest),
        }
        next
    }

    /// The first element.
    pub fn first(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// The first element, mutable.
    pub fn first_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    /// All elements in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first
            .iter()
            .chain(self.rest.iter().flat_map(|rest| rest.iter()))
    }

    /// Removes all elements and releases their memory.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Queue<Part> {
    /// Drops the first `count` bytes and every part that is completely sent.
    ///
    /// # Panics
    /// When fewer bytes are queued.
    pub fn consume(&mut self, mut count: usize) {
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
    fn empty_output_queue_releases_memory() {
        let mut queue = Queue::default();
        let parts = || (0..6).map(|_| Part::from(&b"part"[..]));
        parts().for_each(|part| queue.push(part));
        let rest: *const VecDeque<Part> = &**queue.rest.as_ref().unwrap();
        queue.consume(6 * 4);
        assert!(queue.is_empty() && queue.rest.is_none());
        let mut other = Queue::default();
        parts().for_each(|part| other.push(part));
        assert!(std::ptr::eq(&**other.rest.as_ref().unwrap(), rest));
        assert_eq!(other.len(), 6);
    }

    #[test]
    fn partial_consume_keeps_rest() {
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
