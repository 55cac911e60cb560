//! Answers on their way to a client: text, and long values that are not copied into it.

use std::rc::Rc;

use super::limits::ANSWERS_MAX;

/// A shorter value is copied into the text: a part of its own costs the kernel more than that.
const COPY_MAX: usize = 4096;

/// The answers to what has arrived, until they are sent.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    text: Vec<u8>,
    /// In order; each stands before the byte of the text with this number.
    values: Vec<(usize, Rc<[u8]>)>,
    /// Bytes of `text` and `values`.
    bytes: usize,
}

/// A part of what is to be sent.
#[derive(Debug)]
pub(crate) enum Piece<'a> {
    Text(&'a [u8]),
    Value(&'a Rc<[u8]>),
}

impl Answers {
    #[inline]
    pub(super) fn text(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.bytes += text.len();
    }

    /// Text and the end of a line.
    #[inline]
    pub(super) fn line(&mut self, text: &[u8]) {
        self.text(text);
        self.text(b"\r\n");
    }

    pub(super) fn number(&mut self, number: u64) {
        self.text(itoa::Buffer::new().format(number).as_bytes());
    }

    /// A value with what stands behind it.
    pub(super) fn value(&mut self, value: &Rc<[u8]>) {
        if value.len() <= COPY_MAX {
            self.text(value);
            return;
        }
        self.values.push((self.text.len(), Rc::clone(value)));
        self.bytes += value.len();
    }

    /// Whether they should be sent before there are more.
    pub(super) fn are_full(&self) -> bool {
        self.bytes >= ANSWERS_MAX
    }

    /// What is to be sent, in order.
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

    /// Forgets them and keeps their memory, unless that is much.
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

    impl Answers {
        /// All bytes, copied together.
        pub(crate) fn concat(&self) -> Vec<u8> {
            let bytes = |piece: Piece<'_>| match piece {
                Piece::Text(text) => text.to_vec(),
                Piece::Value(value) => value.to_vec(),
            };
            self.pieces().flat_map(bytes).collect()
        }
    }

    #[test]
    fn long_values_stand_where_they_were_put() {
        let mut answers = Answers::default();
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
