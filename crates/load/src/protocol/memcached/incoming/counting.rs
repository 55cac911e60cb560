//! Adds a response to the counters of its core.

use super::super::response::CommandOutcome;
use super::Incoming;
use crate::requests::memcached::ratio::Command;

impl Incoming<'_> {
    pub(super) fn count(&self, said: CommandOutcome) {
        let counts = &mut *self.reading.counts.borrow_mut();
        match self.command {
            Command::Get => {
                let keys = self.reading.workload.keys_of(self.command);
                counts.gets += 1;
                counts.keys_asked += keys;
                counts.hits += self.values;
                counts.wrong_values += self.wrong;
                counts.value_bytes_read += self.value_bytes;
                if !said.is_error() {
                    counts.misses += keys - self.values;
                }
            }
            Command::Set => {
                counts.sets += 1;
                if said == CommandOutcome::Stored {
                    let workload = &self.reading.workload;
                    let key = workload.key(self.command, self.number, 0);
                    counts.stored += 1;
                    counts.value_bytes_written += workload.value_bytes(key) as u64;
                }
            }
            Command::Delete => {
                counts.deletes += 1;
                counts.deleted += u64::from(said == CommandOutcome::Deleted);
            }
            Command::Increment => {
                counts.increments += 1;
                counts.incremented += u64::from(said == CommandOutcome::Incremented);
            }
        }
    }
}
