//! Ratio of the commands.

use crate::limits::RATIO_MAX;

/// Operation of a request, independent of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    Get,
    Set,
    Delete,
    /// Adds one to a counter.
    Increment,
}

impl Command {
    pub(crate) const ALL: [Command; 4] = [
        Command::Get,
        Command::Set,
        Command::Delete,
        Command::Increment,
    ];
}

/// Weights of gets, sets, deletes and increments. Invariant: one of them is not 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ratio([u32; 4]);

impl Default for Ratio {
    fn default() -> Ratio {
        Ratio([1, 0, 0, 0])
    }
}

impl Ratio {
    pub(crate) const SETS: Ratio = Ratio([0, 1, 0, 0]);

    /// Parses `GET:SET:DELETE:INCR`, where trailing weights may be omitted.
    ///
    /// # Errors
    /// A sentence with the expected form.
    pub fn parse(text: &str) -> Result<Ratio, String> {
        let expected = || {
            format!(
                "{text:?} is not a ratio: expected numbers from 0 to {RATIO_MAX} for get:set, get:set:delete or \
                 get:set:delete:incr, such as 9:1, at least one of them above 0"
            )
        };
        let mut weights = [0; 4];
        let mut words = text.split(':');
        for (weight, word) in weights.iter_mut().zip(&mut words) {
            *weight = word
                .parse()
                .ok()
                .filter(|weight| *weight <= RATIO_MAX)
                .ok_or_else(expected)?;
        }
        match words.next() {
            None if weights != [0; 4] => Ok(Ratio(weights)),
            _ => Err(expected()),
        }
    }

    /// Returns the commands with a nonzero weight.
    pub(crate) fn weights(self) -> impl Iterator<Item = (Command, u64)> {
        let weights = Command::ALL.into_iter().zip(self.0);
        weights
            .filter(|(_, weight)| *weight > 0)
            .map(|(command, weight)| (command, u64::from(weight)))
    }

    pub(crate) fn has(self, command: Command) -> bool {
        self.weights().any(|(own, _)| own == command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_weights_are_parsed_in_command_order() {
        for (text, weights) in [
            ("1", [1, 0, 0, 0]),
            ("9:1", [9, 1, 0, 0]),
            ("0:1", [0, 1, 0, 0]),
            ("30:2:1", [30, 2, 1, 0]),
            ("0:0:0:1", [0, 0, 0, 1]),
        ] {
            assert_eq!(Ratio::parse(text), Ok(Ratio(weights)), "{text}");
        }
        for text in [
            "",
            "0",
            "0:0:0:0",
            "1:",
            "1:x",
            "-1:2",
            "1:1:1:1:1",
            "1000001",
            "9/1",
        ] {
            let error = Ratio::parse(text).unwrap_err();
            assert!(
                error.contains("is not a ratio: expected numbers"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn unused_commands_have_no_weight() {
        let ratio = Ratio::parse("9:0:1").unwrap();
        let weights: Vec<_> = ratio.weights().collect();
        assert_eq!(weights, [(Command::Get, 9), (Command::Delete, 1)]);
        assert!(ratio.has(Command::Get) && !ratio.has(Command::Set));
    }
}
