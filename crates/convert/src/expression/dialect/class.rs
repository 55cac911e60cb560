//! Bracket classes of PCRE. The characters `[`, `&`, `~` and `-` have no special meaning in them, unlike in Rust.

use super::escape::Escape;
use super::{Parser, unsupported};

/// POSIX names that PCRE and Rust both define, for the same bytes.
const NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

enum Item {
    Byte(u8),
    /// A class in the syntax of Rust.
    Set(String),
    Unknown,
}

impl Parser<'_> {
    /// Reads a class; its bracket is read.
    pub(super) fn class(&mut self) -> Result<(), String> {
        let mut inside = String::new();
        let (mut is_known, mut is_first) = (true, true);
        let is_negated = self.peek() == Some(b'^');
        self.at += usize::from(is_negated);
        loop {
            let byte = self.take();
            let byte =
                byte.ok_or_else(|| "a bracket of the expression is not closed".to_owned())?;
            if byte == b']' && !is_first {
                break;
            }
            is_first = false;
            let item = self.item(byte)?;
            let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            match item {
                Item::Byte(low) if is_range => {
                    self.at += 1;
                    let high = self.take().unwrap_or(b']');
                    let Item::Byte(high) = self.item(high)? else {
                        return Err(unsupported("a range that ends with a class"));
                    };
                    if high < low {
                        return Err(unsupported("a range in descending order"));
                    }
                    inside += &format!("{}-{}", written(low), written(high));
                }
                Item::Byte(byte) => inside += &written(byte),
                _ if is_range => return Err(unsupported("a range that starts with a class")),
                Item::Set(set) => inside += &set,
                Item::Unknown => is_known = false,
            }
        }
        let sign = if is_negated { "^" } else { "" };
        let is_wide = inside.contains("\\x") || inside.contains(":^");
        self.put(&match (is_known, is_wide) {
            (false, _) => "(?s-u:.)".to_owned(),
            (true, true) => format!("(?-u:[{sign}{inside}])"),
            (true, false) => format!("[{sign}{inside}]"),
        })
    }

    /// Reads a part that starts with this byte.
    fn item(&mut self, byte: u8) -> Result<Item, String> {
        match (byte, self.peek()) {
            (b'[', Some(b':')) => self.named().map(Item::Set),
            (b'[', Some(b'.' | b'=')) => Err(unsupported("a collating element")),
            (b'\\', Some(b'b')) => {
                self.at += 1;
                Ok(Item::Byte(0x08))
            }
            (b'\\', _) => Ok(match self.escaped()? {
                Escape::Byte(byte) => Item::Byte(byte),
                Escape::Set(set) => Item::Set(set.to_owned()),
                Escape::Unknown => Item::Unknown,
            }),
            (byte, _) => Ok(Item::Byte(byte)),
        }
    }

    /// Reads the name of a POSIX class, from its colon on.
    fn named(&mut self) -> Result<String, String> {
        let inside = &self.rest()[1..];
        let name = inside.split_once(":]").map_or("", |(name, _)| name);
        let bare = name.strip_prefix('^').unwrap_or(name);
        // With the flag for case, PCRE treats these as all letters before it negates them.
        let is_cased = name.starts_with('^') && matches!(bare, "lower" | "upper");
        if !NAMES.contains(&bare) || is_cased {
            return Err(unsupported(&format!("the class [:{name}:]")));
        }
        let text = format!("[:{name}:]");
        self.at += text.len() - 1;
        Ok(text)
    }
}

/// A byte as written in a class of Rust.
fn written(byte: u8) -> String {
    match byte {
        b'[' | b']' | b'\\' | b'^' | b'-' | b'&' | b'~' => format!("\\{}", char::from(byte)),
        byte if byte.is_ascii_graphic() || byte == b' ' => char::from(byte).to_string(),
        byte => format!("\\x{byte:02X}"),
    }
}
