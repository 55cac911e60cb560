//! Size limits of a configuration, for all of its files together.

use crate::limits;

#[derive(Default)]
pub(crate) struct SizeCounter {
    bytes: usize,
    keys: usize,
    tables: usize,
}

impl SizeCounter {
    /// Counts a text before it is parsed: parsed keys take fifty times the memory of the text.
    pub(crate) fn add(&mut self, text: &str) -> Result<(), String> {
        self.bytes += text.len();
        if self.bytes > limits::TEXT_MAX {
            return Err(format!(
                "a configuration of {} bytes is too long: expected at most {}",
                self.bytes,
                limits::TEXT_MAX
            ));
        }
        self.keys += text.lines().map(equals_signs).sum::<usize>();
        self.tables += text.lines().filter(|line| is_table(line)).count();
        for (what, count, max) in [
            ("keys", self.keys, limits::KEYS_MAX),
            ("[[tables]]", self.tables, limits::TABLES_MAX),
        ] {
            if count > max {
                return Err(format!(
                    "a configuration with {count} {what} is too long: expected at most {max}"
                ));
            }
        }
        Ok(())
    }
}

fn equals_signs(line: &str) -> usize {
    line.bytes().filter(|byte| *byte == b'=').count()
}

fn is_table(line: &str) -> bool {
    line.trim_start().starts_with("[[")
}
