//! Response times by status class. The most common class is derived: the times of all classes minus the other classes.

use onrush_measure::histogram::Histogram;

/// The five named classes, and one for statuses outside of them.
pub(crate) const CLASSES: usize = 6;

/// Class whose times are not recorded a second time: 2xx, hits, OK.
const USUAL: usize = 1;

/// Response times of all classes but the usual one. All memory is allocated at the start.
#[derive(Debug, Default)]
pub(crate) struct ClassTimes([Histogram; CLASSES]);

impl ClassTimes {
    #[inline]
    pub(super) fn record(&mut self, class: u8, response: u64, count: u64) {
        let class = usize::from(class).min(CLASSES - 1);
        if class != USUAL {
            self.0[class].record_many(response, count);
        }
    }

    pub(super) fn merge(&mut self, other: &ClassTimes) {
        let more = self.0.iter_mut().zip(&other.0);
        more.filter(|(_, more)| more.count() > 0)
            .for_each(|(sum, more)| sum.merge(more));
    }

    /// Returns the times of each class; `all` has the times of all classes together.
    pub(crate) fn split(&self, all: &Histogram) -> [Histogram; CLASSES] {
        let mut split = self.0.clone();
        let others = self.0.iter().filter(|of| of.count() > 0);
        split[USUAL] = others.fold(all.clone(), |rest, of| rest.without(of));
        split
    }
}
