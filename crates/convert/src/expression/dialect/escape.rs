//! Escapes of PCRE.

use super::{ANYTHING, Parser, Unknown, unsupported};

/// Meaning of an escape, inside or outside a class.
pub(super) enum Escape {
    Byte(u8),
    /// Classes in the syntax of Rust, to be put into brackets.
    Set(&'static str),
    Unknown,
}

impl Parser<'_> {
    /// Reads an escape outside of classes; its backslash is read.
    pub(super) fn escape(&mut self) -> Result<(), String> {
        let byte = self.peek();
        let edge = match byte {
            Some(b'A') => "^",
            // Also matches before a final line break; `pcre.rs` translates `$` that way.
            Some(b'Z') => "$",
            Some(b'z') => "\\z",
            Some(b'b') => "\\b",
            Some(b'B') => "\\B",
            _ => "",
        };
        if !edge.is_empty() {
            self.at += 1;
            return self.edge(edge);
        }
        match byte {
            Some(b'Q') => {
                self.at += 1;
                return self.quote();
            }
            // Ends a quotation; ignored without one.
            Some(b'E') => {
                self.at += 1;
                return Ok(());
            }
            Some(b'N') if self.rest().as_bytes().get(1) != Some(&b'{') => {
                self.at += 1;
                return self.put("[^\\n]");
            }
            Some(b'1'..=b'9') if self.is_reference() => {
                while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                    self.at += 1;
                }
                return self.unknown("a back-reference");
            }
            // In Rust these have another meaning after a backslash.
            Some(sign @ (b'<' | b'>')) => {
                self.at += 1;
                return self.put(char::from(sign).encode_utf8(&mut [0; 4]));
            }
            Some(sign) if sign.is_ascii_punctuation() || sign == b' ' => {
                self.at += 1;
                let text = format!("\\{}", char::from(sign));
                return self.put(&text);
            }
            _ => {}
        }
        match self.escaped()? {
            Escape::Byte(byte) => self.literal(byte),
            Escape::Set(set) if set.starts_with('\\') && set.len() == 2 => self.put(set),
            Escape::Set(set) => self.put(&format!("(?-u:[{set}])")),
            Escape::Unknown => self.put(ANYTHING),
        }
    }

    /// Reads an escape that means the same inside and outside a class; its backslash is read.
    pub(super) fn escaped(&mut self) -> Result<Escape, String> {
        let byte = self.take();
        let byte = byte.ok_or_else(|| "the expression ends with a backslash".to_owned())?;
        Ok(Escape::Byte(match byte {
            b'd' => return Ok(Escape::Set("\\d")),
            b'D' => return Ok(Escape::Set("\\D")),
            b's' => return Ok(Escape::Set("\\s")),
            b'S' => return Ok(Escape::Set("\\S")),
            b'w' => return Ok(Escape::Set("\\w")),
            b'W' => return Ok(Escape::Set("\\W")),
            b'h' => return Ok(Escape::Set("\\t \\xA0")),
            b'v' => return Ok(Escape::Set("\\n-\\r\\x85")),
            b'H' => return Ok(Escape::Set("\\x00-\\x08\\n-\\x1F!-\\x9F\\xA1-\\xFF")),
            b'V' => return Ok(Escape::Set("\\x00-\\t\\x0E-\\x84\\x86-\\xFF")),
            b'a' => 0x07,
            b'e' => 0x1b,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => self.hexadecimal()?,
            b'0'..=b'7' => self.octal(byte)?,
            byte if byte.is_ascii_alphanumeric() => return self.foreign(byte),
            byte => byte,
        }))
    }

    /// Reads literals up to `\E`.
    fn quote(&mut self) -> Result<(), String> {
        while let Some(byte) = self.take() {
            if byte == b'\\' && self.peek() == Some(b'E') {
                self.at += 1;
                return Ok(());
            }
            self.literal(byte)?;
        }
        Ok(())
    }

    /// Whether the number that follows is a group reference, not an octal number.
    fn is_reference(&self) -> bool {
        let rest = self.rest();
        let digits = rest.find(|letter: char| !letter.is_ascii_digit());
        let digits = &rest[..digits.unwrap_or(rest.len())];
        let number = digits.parse::<usize>();
        digits.starts_with(['8', '9'])
            || number.is_ok_and(|number| number < 10 || number <= self.groups)
    }

    /// Reads an octal number of up to three digits; the first is read.
    fn octal(&mut self, first: u8) -> Result<u8, String> {
        let mut value = u32::from(first - b'0');
        for _ in 0..2 {
            let Some(digit @ b'0'..=b'7') = self.peek() else {
                break;
            };
            self.at += 1;
            value = 8 * value + u32::from(digit - b'0');
        }
        u8::try_from(value).map_err(|_| unsupported("an octal number above \\377"))
    }

    /// Reads up to two hexadecimal digits, or digits in braces.
    fn hexadecimal(&mut self) -> Result<u8, String> {
        let rest = self.rest();
        let (digits, length) = match rest.strip_prefix('{') {
            Some(inside) => {
                let (digits, _) = inside.split_once('}').unwrap_or_default();
                (digits, digits.len() + 2)
            }
            None => {
                let digits = rest.bytes().take(2);
                let length = digits.take_while(u8::is_ascii_hexdigit).count();
                (&rest[..length], length)
            }
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u8::from_str_radix(digits, 16).ok().filter(|_| is_number);
        let value = value.ok_or_else(|| unsupported("a number \\x that is not a byte"))?;
        self.at += length;
        Ok(value)
    }

    /// Handles an escape that Rust's `regex` does not have.
    fn foreign(&mut self, byte: u8) -> Result<Escape, String> {
        let what = format!("\\{}", char::from(byte));
        if self.unknown == Unknown::Refused {
            return Err(unsupported(&what));
        }
        // Properties and names continue after the letter.
        let rest = self.rest();
        let length = match (byte, rest.bytes().next()) {
            (b'K' | b'G' | b'R' | b'X', _) => Some(0),
            (b'p' | b'P', Some(b'{')) => rest.find('}').map(|end| end + 1),
            (b'p' | b'P', Some(letter)) if letter.is_ascii_alphabetic() => Some(1),
            (b'g' | b'k', Some(b'{')) => rest.find('}').map(|end| end + 1),
            _ => None,
        };
        self.at += length.ok_or_else(|| unsupported(&what))?;
        Ok(Escape::Unknown)
    }

    /// Handles syntax outside of classes that was read and cannot be translated.
    fn unknown(&mut self, what: &str) -> Result<(), String> {
        match self.unknown {
            Unknown::Refused => Err(unsupported(what)),
            Unknown::Widened => self.put(ANYTHING),
        }
    }
}
