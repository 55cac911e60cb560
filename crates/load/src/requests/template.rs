//! Text with variables, parsed once and rendered for each request.

use onrush_engine::random::Random;

use super::data::Data;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Template {
    pieces: Box<[Piece]>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Bytes(Box<[u8]>),
    /// Run-wide number of the request.
    Counter,
    /// A uniform random number among `count` numbers from `low` on.
    Random {
        low: u64,
        count: u64,
    },
    /// This column of the request's row.
    Data(usize),
    /// A value with this index that a journey extracted from a response.
    Taken(usize, Place),
}

/// Position of a text in its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In the request line, where extracted values are percent-encoded.
    Target,
    /// In a field or in the body.
    Other,
}

/// Names of variables besides the built-in ones.
#[derive(Clone, Copy)]
pub(crate) struct Names<'n> {
    pub(crate) data: Option<&'n Data>,
    /// Names of the values that journeys extract from responses, by index.
    pub(crate) taken: &'n [String],
}

/// Values of variables in one request.
pub(crate) struct Values<'d> {
    pub(crate) number: u64,
    pub(crate) random: Random,
    pub(crate) data: Option<&'d Data>,
}

const DIGITS_MAX: usize = 20;

impl Template {
    /// Parses `text` at `place`, with the variables of `names`.
    ///
    /// # Errors
    /// A sentence about the first unknown variable.
    pub(crate) fn parse(text: &str, names: Names<'_>, place: Place) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            bytes.extend_from_slice(before.as_bytes());
            let (name, behind) = behind.split_once("}}").ok_or_else(|| {
                format!("the variable that starts with {{{{ in {text:?} lacks its closing }}}}")
            })?;
            match name {
                // An escaped pair of braces.
                "" => bytes.extend_from_slice(b"{{"),
                name => {
                    if !bytes.is_empty() {
                        pieces.push(Piece::Bytes(std::mem::take(&mut bytes).into()));
                    }
                    pieces.push(variable(name, names, place)?);
                }
            }
            rest = behind;
        }
        bytes.extend_from_slice(rest.as_bytes());
        if !bytes.is_empty() {
            pieces.push(Piece::Bytes(bytes.into()));
        }
        Ok(Template {
            pieces: pieces.into(),
        })
    }

    pub(crate) fn and(self, other: Template) -> Template {
        let pieces = self.pieces.into_iter().chain(other.pieces);
        Template {
            pieces: pieces.collect(),
        }
    }

    /// Creates a template without variables; braces have no meaning.
    pub(crate) fn fixed(bytes: Vec<u8>) -> Template {
        Template {
            pieces: Box::new([Piece::Bytes(bytes.into())]),
        }
    }

    pub(crate) fn is_fixed(&self) -> bool {
        let is_fixed = |piece: &Piece| matches!(piece, Piece::Bytes(_));
        self.pieces.iter().all(is_fixed)
    }

    /// Returns an upper bound of its bytes, without values extracted from responses, which have their own limits.
    pub(crate) fn bytes_max(&self, data: Option<&Data>) -> usize {
        let bytes = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Counter | Piece::Random { .. } => DIGITS_MAX,
            Piece::Data(column) => data.map_or(0, |data| data.bytes_max(*column)),
            Piece::Taken(..) => 0,
        };
        self.pieces.iter().map(bytes).sum()
    }

    /// Returns the data columns that it uses.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Data(column) => Some(*column),
            Piece::Bytes(_) | Piece::Counter | Piece::Random { .. } | Piece::Taken(..) => None,
        })
    }

    /// Appends the text for one request to `out`; `taken` has the values extracted in the journey.
    pub(crate) fn write(&self, values: &Values<'_>, taken: &[Vec<u8>], out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(bytes) => out.extend_from_slice(bytes),
                Piece::Counter => out.extend_from_slice(digits.format(values.number).as_bytes()),
                Piece::Random { low, count } => {
                    let number = low + values.random.below(*count);
                    out.extend_from_slice(digits.format(number).as_bytes());
                }
                Piece::Data(column) => {
                    let data = values.data.expect("the column exists in the data");
                    out.extend_from_slice(data.value(values.number, *column));
                }
                Piece::Taken(number, Place::Other) => out.extend_from_slice(&taken[*number]),
                Piece::Taken(number, Place::Target) => encode(&taken[*number], out),
            }
        }
    }
}

/// Appends `value`, percent-encoding bytes that are invalid in paths and queries (RFC 3986 sections 3.3 and 3.4). A
/// percent sign is kept, since a value from a link is already encoded.
fn encode(value: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in value {
        match byte {
            b'"' | b'#' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {}
            0x21..=0x7e => {
                out.push(byte);
                continue;
            }
            _ => {}
        }
        let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
        out.extend_from_slice(&[b'%', high, low]);
    }
}

/// Returns the names of all variables in `text`, including invalid ones.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    let pieces = text.split("{{").skip(1);
    pieces.filter_map(|piece| piece.split_once("}}").map(|(name, _)| name))
}

/// Parses the variable `{{name}}`.
fn variable(name: &str, names: Names<'_>, place: Place) -> Result<Piece, String> {
    let Names { data, taken } = names;
    if name == "counter" {
        return Ok(Piece::Counter);
    }
    if let Some(range) = name.strip_prefix("random:") {
        let numbers = range.split_once('-').and_then(|(low, high)| {
            let (low, high): (u64, u64) = (low.parse().ok()?, high.parse().ok()?);
            let count = high.checked_sub(low)?.checked_add(1)?;
            Some(Piece::Random { low, count })
        });
        return numbers.ok_or_else(|| {
            format!("{{{{{name}}}}} is not a range: expected one such as {{{{random:1-1000}}}}")
        });
    }
    if let Some(column) = name.strip_prefix("data:") {
        let Some(data) = data else {
            return Err(format!(
                "{{{{{name}}}}} needs data: give a CSV file with --data"
            ));
        };
        return data.column(column).map(Piece::Data);
    }
    if let Some(number) = taken.iter().position(|taken| taken == name) {
        return Ok(Piece::Taken(number, place));
    }
    let or_taken = match taken {
        [] => String::new(),
        _ => format!(
            ", a value extracted by a step ({})",
            taken
                .iter()
                .map(|name| format!("{{{{{name}}}}}"))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    Err(format!(
        "{{{{{name}}}}} is not a variable: expected {{{{counter}}}}, {{{{random:LOW-HIGH}}}} or \
         {{{{data:COLUMN}}}}{or_taken}, and {{{{}}}} for two braces"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(data: Option<&Data>) -> Names<'_> {
        Names { data, taken: &[] }
    }

    fn data() -> Data {
        Data::parse("user,word\nann,\"a,b\"\nbob,c\n", "d.csv").unwrap()
    }

    fn written(text: &str, number: u64) -> String {
        let data = data();
        let mut out = Vec::new();
        let template = Template::parse(text, names(Some(&data)), Place::Other).unwrap();
        let values = Values {
            number,
            random: Random::stream(1, number),
            data: Some(&data),
        };
        template.write(&values, &[], &mut out);
        assert!(out.len() <= template.bytes_max(Some(&data)));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn template_variables_are_expanded() {
        for (text, number, expected) in [
            ("", 0, ""),
            ("/a", 7, "/a"),
            ("/{{counter}}/x", 7, "/7/x"),
            ("{{data:user}}={{data:word}}", 0, "ann=a,b"),
            ("{{data:user}}={{data:word}}", 3, "bob=c"),
            ("{{random:5-5}}", 1, "5"),
            ("{{}}counter}}", 1, "{{counter}}"),
            ("}} {", 1, "}} {"),
        ] {
            assert_eq!(written(text, number), expected, "{text}");
        }
    }

    #[test]
    fn random_variables_are_in_range_and_reproducible() {
        let numbers: Vec<u64> = (0..200)
            .map(|number| written("{{random:10-12}}", number).parse().unwrap())
            .collect();
        assert!((10..=12).all(|number| numbers.contains(&number)));
        assert!(numbers.iter().all(|number| (10..=12).contains(number)));
        assert_eq!(
            written("{{random:0-18446744073709551614}}", 3),
            written("{{random:0-18446744073709551614}}", 3)
        );
        let both = written("{{random:0-999999999}} {{random:0-999999999}}", 3);
        let (one, other) = both.split_once(' ').unwrap();
        assert_ne!(one, other, "each of a request's numbers is its own");
    }

    #[test]
    fn extracted_values_are_encoded_in_paths_only() {
        let taken = ["id".to_owned(), "token".to_owned()];
        let names = Names {
            data: None,
            taken: &taken,
        };
        let line = Template::parse("/{{id}}?{{token}}", names, Place::Target).unwrap();
        let field = Template::parse(" {{token}}", names, Place::Other).unwrap();
        let values = Values {
            number: 0,
            random: Random::new(1),
            data: None,
        };
        let mut out = Vec::new();
        let values_taken = ["a/b%20\u{e9}".into(), b"x y\r\n#&=".to_vec()];
        line.and(field).write(&values, &values_taken, &mut out);
        let expected = "/a/b%20%C3%A9?x%20y%0D%0A%23&= x y\r\n#&=";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let error = Template::parse("{{tokne}}", names, Place::Other).unwrap_err();
        assert!(error.contains("({{id}}, {{token}})"), "{error}");
        let all: Vec<&str> = super::names("{{a}} {{}} {{b:c}} {{d").collect();
        assert_eq!(all, ["a", "", "b:c"]);
    }

    #[test]
    fn invalid_variables_are_refused() {
        let data = data();
        for (text, part) in [
            ("{{count}}", "expected {{counter}}"),
            ("{{counter", "lacks its closing }}"),
            ("{{random:2-1}}", "is not a range"),
            ("{{random:x}}", "is not a range"),
            ("{{random:0-18446744073709551615}}", "is not a range"),
            ("{{data:name}}", "expected one of user, word"),
        ] {
            let error = Template::parse(text, names(Some(&data)), Place::Other).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let error = Template::parse("{{data:user}}", names(None), Place::Other).unwrap_err();
        assert!(error.contains("--data"), "{error}");
    }
}
