//! Text with variables: read once, then written for each request.

use onrush_engine::random::Random;

use super::data::Data;

/// Text in which variables stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Template {
    pieces: Box<[Piece]>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Bytes(Box<[u8]>),
    /// The number of the request in the run.
    Counter,
    /// An even number from `low` on, of `count` numbers.
    Random {
        low: u64,
        count: u64,
    },
    /// What the request's row has in this column.
    Data(usize),
}

/// Everything that variables stand for in one request.
pub(crate) struct Values<'d> {
    pub(crate) number: u64,
    pub(crate) random: Random,
    pub(crate) data: Option<&'d Data>,
}

/// Digits of the largest number.
const DIGITS_MAX: usize = 20;

impl Template {
    /// Reads `text`; its columns are those of `data`.
    ///
    /// # Errors
    /// A sentence about the first variable that is none.
    pub(crate) fn parse(text: &str, data: Option<&Data>) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            bytes.extend_from_slice(before.as_bytes());
            let (name, behind) = behind.split_once("}}").ok_or_else(|| {
                format!("a variable begins with {{{{ in {text:?} and does not end with }}}}")
            })?;
            match name {
                // So that text can have two braces.
                "" => bytes.extend_from_slice(b"{{"),
                name => {
                    if !bytes.is_empty() {
                        pieces.push(Piece::Bytes(std::mem::take(&mut bytes).into()));
                    }
                    pieces.push(variable(name, data)?);
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

    /// Text without variables, whatever stands in it.
    pub(crate) fn fixed(bytes: Vec<u8>) -> Template {
        Template {
            pieces: Box::new([Piece::Bytes(bytes.into())]),
        }
    }

    /// Whether it is the same for all requests.
    pub(crate) fn is_fixed(&self) -> bool {
        let is_fixed = |piece: &Piece| matches!(piece, Piece::Bytes(_));
        self.pieces.iter().all(is_fixed)
    }

    /// The most bytes that it comes to.
    pub(crate) fn bytes_max(&self, data: Option<&Data>) -> usize {
        let bytes = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Counter | Piece::Random { .. } => DIGITS_MAX,
            Piece::Data(column) => data.map_or(0, |data| data.bytes_max(*column)),
        };
        self.pieces.iter().map(bytes).sum()
    }

    /// The columns that stand in it.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Data(column) => Some(*column),
            Piece::Bytes(_) | Piece::Counter | Piece::Random { .. } => None,
        })
    }

    /// Appends to `out` what it is for one request.
    pub(crate) fn write(&self, values: &Values<'_>, out: &mut Vec<u8>) {
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
                    let data = values.data.expect("a column is of data that is there");
                    out.extend_from_slice(data.value(values.number, *column));
                }
            }
        }
    }
}

/// What `{{name}}` stands for.
fn variable(name: &str, data: Option<&Data>) -> Result<Piece, String> {
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
            format!("{{{{{name}}}}} is no range: expected one such as {{{{random:1-1000}}}}")
        });
    }
    if let Some(column) = name.strip_prefix("data:") {
        let Some(data) = data else {
            return Err(format!(
                "{{{{{name}}}}} wants data: give a CSV file with --data"
            ));
        };
        return data.column(column).map(Piece::Data);
    }
    Err(format!(
        "{{{{{name}}}}} is no variable: expected {{{{counter}}}}, {{{{random:LOW-HIGH}}}} or {{{{data:COLUMN}}}}, and {{{{}}}} for two braces"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Data {
        Data::parse("user,word\nann,\"a,b\"\nbob,c\n", "d.csv").unwrap()
    }

    fn written(text: &str, number: u64) -> String {
        let data = data();
        let mut out = Vec::new();
        let template = Template::parse(text, Some(&data)).unwrap();
        let values = Values {
            number,
            random: Random::stream(1, number),
            data: Some(&data),
        };
        template.write(&values, &mut out);
        assert!(out.len() <= template.bytes_max(Some(&data)));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn variables_stand_for_what_belongs_to_the_request() {
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
    fn random_numbers_are_from_their_range_and_the_same_for_the_same_request() {
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
    fn what_is_no_variable_is_refused_with_what_was_expected() {
        let data = data();
        for (text, part) in [
            ("{{count}}", "expected {{counter}}"),
            ("{{counter", "does not end with }}"),
            ("{{random:2-1}}", "is no range"),
            ("{{random:x}}", "is no range"),
            ("{{random:0-18446744073709551615}}", "is no range"),
            ("{{data:name}}", "expected one of user, word"),
        ] {
            let error = Template::parse(text, Some(&data)).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let error = Template::parse("{{data:user}}", None).unwrap_err();
        assert!(error.contains("--data"), "{error}");
    }
}
