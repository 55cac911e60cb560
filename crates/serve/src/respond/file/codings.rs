//! A set of content codings.

use onrush_http::encoding::Coding;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Codings(u8);

impl Codings {
    pub(super) fn insert(&mut self, coding: Coding) {
        self.0 |= Self::bit(coding);
    }

    pub(super) fn contains(self, coding: Coding) -> bool {
        self.0 & Self::bit(coding) != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn bit(coding: Coding) -> u8 {
        match coding {
            Coding::Zstd => 1,
            Coding::Brotli => 2,
            Coding::Gzip => 4,
        }
    }
}
