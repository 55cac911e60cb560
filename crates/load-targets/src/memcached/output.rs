//! Responses to be sent: text, and long values that are shared instead of copied.

use std::rc::Rc;

use super::limits::ANSWERS_MAX;

/// Shorter values are copied into the text, since a separate buffer costs the kernel more than the copy.
const COPY_MAX: usize = 4096;

/// Responses to received commands.
#[derive(Debug, Default)]
pub(crate) struct ResponseBuffer {
    text: Vec<u8>,
    /// Long values in order, each with its offset in the text.
    values: Vec<(usize, Rc<[u8]>)>,
    /// Bytes of `text` and `values`.
    bytes: usize,
}

#[derive(Debug)]
pub(crate) enum Piece<'a> {
    Text(&'a [u8]),
    Value(&'a Rc<[u8]>),
}

impl ResponseBuffer {
    #[inline]
    pub(super) fn text(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.bytes += text.len();
    }

    /// Appends text and a line end.
    #[inline]
    pub(super) fn line(&mut self, text: &[u8]) {
        self.text(text);
        self.text(b"\r\n");
    }

    pub(super) fn number(&mut self, number: u64) {
        self.text(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Appends a value, which includes its line end.
    pub(super) fn value(&mut self, value: &Rc<[u8]>) {
        if value.len() <= COPY_MAX {
            self.text(value);
            return;
        }
        self.values.push((self.text.len(), Rc::clone(value)));
        self.bytes += value.len();
    }

    pub(super) fn are_full(&self) -> bool {
        self.bytes >= ANSWERS_MAX
    }

    /// Returns the pieces to send, in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let mut from = 0;
        let before = self.values.iter().flat_map(move |(at, value)| {
            let text = &self.text[from..*at];
            from = *at;
            [Piece::Text(text), Piece::Value(value)]
        });
        let last = self.values.last().map_or(0, |(at, _)| *at);
        before.chain([Piece::Text(&self.text[last..])])
    }

    /// Clears the responses. Keeps the memory unless it is large.
    pub(crate) fn clear(&mut self) {
        if self.text.capacity() > 2 * ANSWERS_MAX {
            self.text = Vec::new();
        }
        self.text.clear();
        self.values.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ResponseBuffer {
        pub(crate) fn concat(&self) -> Vec<u8> {
            let bytes = |piece: Piece<'_>| match piece {
                Piece::Text(text) => text.to_vec(),
                Piece::Value(value) => value.to_vec(),
            };
            self.pieces().flat_map(bytes).collect()
        }
    }

    #[test]
    fn long_values_keep_their_position() {
        let mut answers = ResponseBuffer::default();
        let long: Rc<[u8]> = vec![b'v'; COPY_MAX + 1].into();
        answers.text(b"a");
        answers.value(&long);
        answers.value(&long);
        answers.value(&Rc::from(&b"short"[..]));
        answers.line(b"b");
        let long = "v".repeat(COPY_MAX + 1);
        let expected = format!("a{long}{long}shortb\r\n");
        assert_eq!(answers.concat(), expected.as_bytes());
        assert!(!answers.are_full());
        answers.clear();
        assert!(answers.concat().is_empty());
    }
}
