//! Lines of the meta protocol (memcached, doc/protocol.txt), matched to the request's keys by their opaque.

use super::{Incoming, Next};
use crate::protocol::memcached::line;
use crate::protocol::memcached::response::{self, CommandOutcome, ResponseLine};
use crate::requests::memcached::opaque::Opaque;
use crate::requests::memcached::ratio::Command;

const OTHER_OPAQUE: &str = "a response with the opaque of another command";

impl Incoming<'_> {
    pub(super) fn meta_line(&mut self, line: &[u8]) -> Next {
        let Some(answer) = response::meta(self.command, line) else {
            return self.first_error(line);
        };
        match response::opaque(line) {
            Some(opaque) if opaque == self.next_opaque() => self.answered(answer),
            // Older servers omit the opaque of misses.
            None if answer == ResponseLine::Done(CommandOutcome::Miss) => self.answered(answer),
            Some(_) => Next::Refused(OTHER_OPAQUE),
            None => Next::Refused("a response without the opaque of its command"),
        }
    }

    /// Handles a line in quiet mode. It belongs to this response, or to a later one of the batch, which means that this
    /// one has no further line.
    pub(super) fn quiet_line(&mut self, line: &[u8]) -> Next {
        let silence = Next::Implied(self.implied_outcome());
        if line == b"MN" {
            return match self.following {
                0 => Next::Last(self.implied_outcome()),
                _ => silence,
            };
        }
        let Some(opaque) = response::opaque(line) else {
            // Errors have no opaque; one about storing belongs to the next set.
            let is_of_set = self.command != Command::Set && response::is_about_storing(line);
            return match is_of_set && self.following > 0 {
                true => silence,
                false => self.first_error(line),
            };
        };
        let ahead = opaque.since(self.next_opaque());
        if ahead >= self.keys() - self.next_key {
            let each = self.reading.workload.opaques_of_request();
            let of_others = each - self.next_key..each * (self.following + 1) - self.next_key;
            return match of_others.contains(&ahead) {
                true => silence,
                false => Next::Refused(OTHER_OPAQUE),
            };
        }
        self.next_key += ahead;
        match response::meta(self.command, line) {
            Some(answer) => self.answered(answer),
            None => Next::Refused(line::unknown(line)),
        }
    }

    fn next_opaque(&self) -> Opaque {
        self.reading.workload.opaque(self.number, self.next_key)
    }
}
