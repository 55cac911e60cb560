//! Decoding errors. The tables of both ends differ afterwards, so they end the connection.

/// Why a block is invalid: a connection error of type COMPRESSION_ERROR (RFC 9113 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The block ends inside a field.
    Truncated,
    /// No table has an entry with this index (RFC 7541 2.3.3).
    UnknownIndex,
    /// An integer above every valid index, length or size (RFC 7541 5.1).
    IntegerTooLarge,
    /// A Huffman-coded string contains the end-of-string symbol (RFC 7541 5.2).
    EndOfString,
    /// A Huffman-coded string ends with invalid padding (RFC 7541 5.2).
    Padding,
    /// A size update above our SETTINGS_HEADER_TABLE_SIZE (RFC 7541 6.3).
    SizeUpdateTooLarge,
    /// A size update after a field (RFC 7541 4.2).
    SizeUpdateTooLate,
    /// The block copies far more than it contains, or has far more fields than are stored. The coding is valid.
    TooMuchWork,
}

impl Error {
    /// Description for logs and GOAWAY.
    pub const fn reason(self) -> &'static str {
        match self {
            Error::Truncated => "the header block ends inside a field",
            Error::UnknownIndex => "a header field has an index outside of the tables",
            Error::IntegerTooLarge => "an integer in the header block is too large",
            Error::EndOfString => "a Huffman-coded string contains the end-of-string symbol",
            Error::Padding => "a Huffman-coded string has wrong padding",
            Error::SizeUpdateTooLarge => "a header table size above SETTINGS_HEADER_TABLE_SIZE",
            Error::SizeUpdateTooLate => "the size of the header table changes after a field",
            Error::TooMuchWork => "far too many fields, or names copied from the table",
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for Error {}
