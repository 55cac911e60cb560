//! Authorization: on a Unix socket by user (root or the server's own), on a TCP address by token.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use onrush_engine::Stream;
use onrush_file::InputError;
use onrush_http::request::RequestHead;

/// Minimum length of a token in bytes, against guessing.
const TOKEN_MIN: usize = 16;

/// Maximum length of a token in bytes.
const TOKEN_MAX: usize = 512;

/// Maximum size of a token file in bytes: the token and a line ending.
const TOKEN_FILE_BYTES_MAX: u64 = TOKEN_MAX as u64 + 2;

/// Bearer token that clients of a TCP address send: `Authorization: Bearer …` (RFC 6750, 2.1).
#[derive(Clone)]
pub struct Token(String);

/// Error of [`Token::read`].
#[derive(Debug)]
pub enum TokenError {
    /// The file cannot be read.
    Read(InputError),
    /// The content is not a valid token.
    Invalid,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Read(error) => error.fmt(f),
            TokenError::Invalid => write!(
                f,
                "expected one line of {TOKEN_MIN} to {TOKEN_MAX} visible ASCII characters, such as `openssl rand -hex 32` \
                 prints"
            ),
        }
    }
}

impl std::error::Error for TokenError {}

impl TokenError {
    /// Whether the process lacks permission to read the file.
    pub fn is_denied(&self) -> bool {
        matches!(self, TokenError::Read(InputError::System(error)) if error.kind() == ErrorKind::PermissionDenied)
    }
}

impl Token {
    /// Reads a token from a file.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let text = onrush_file::read_text(path, TOKEN_FILE_BYTES_MAX).map_err(TokenError::Read)?;
        Token::new(text.trim_end_matches(['\r', '\n'])).ok_or(TokenError::Invalid)
    }

    /// Returns `None` if `text` is not a valid token.
    pub fn new(text: &str) -> Option<Token> {
        let is_valid = (TOKEN_MIN..=TOKEN_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_valid.then(|| Token(text.to_owned()))
    }

    /// The token as it is sent.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares in time that does not depend on the number of matching bytes.
    fn is(&self, other: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let differences = own.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
        std::hint::black_box(differences) == 0 && own.len() == other.len()
    }
}

/// The token in force; a reload replaces it.
#[derive(Clone, Debug)]
pub struct CurrentToken(Arc<RwLock<Token>>);

impl CurrentToken {
    /// Wraps the first token.
    pub fn new(token: Token) -> CurrentToken {
        CurrentToken(Arc::new(RwLock::new(token)))
    }

    /// Accepts only `token` from now on.
    pub fn replace(&self, token: Token) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = token;
    }

    fn is(&self, other: &[u8]) -> bool {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is(other)
    }
}

/// Hides the token, so that it does not get into logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Reason for refusing a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Denial {
    /// The token is missing or wrong.
    Token,
    /// A page of another site sent the request.
    CrossSite,
}

/// Clients that may request a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Audience {
    /// Anyone who follows a link to the status page, which contains no data and cannot be framed.
    Navigation,
    /// Anyone: load balancers, service managers, and the files of the status page. None of them sends a token.
    Public,
    /// Clients with the token, if one is configured.
    Authorized,
}

/// Access that a connection has before its first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Authority {
    /// The peer of the Unix socket is root or the user of this process.
    Trusted,
    /// The peer of the Unix socket is another user.
    Refused,
    /// TCP: each request carries the token.
    ByToken,
}

/// Authority of the peer of a connection.
pub(crate) fn authority_of(stream: &Stream) -> Authority {
    match stream.peer_user() {
        Some(user) if user == 0 || user == rustix::process::geteuid().as_raw() => {
            Authority::Trusted
        }
        Some(_) => Authority::Refused,
        None => Authority::ByToken,
    }
}

/// Checks whether a request for a path with this audience may be served.
pub(crate) fn check(
    head: &RequestHead<'_, '_>,
    token: Option<&CurrentToken>,
    audience: Audience,
) -> Result<(), Denial> {
    let value = |name: &str| {
        let mut named = head
            .headers
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.next().map(|header| header.value)
    };
    // Browsers mark requests of other sites (Fetch Metadata; Origin, RFC 6454). Origin is not compared with Host: after
    // DNS rebinding both contain the foreign name.
    let is_foreign = match (value("sec-fetch-site"), value("origin")) {
        (Some(site), _) => !matches!(site, b"same-origin" | b"none"),
        (None, Some(_)) => true,
        (None, None) => false,
    };
    // A top-level navigation: the page with the link cannot read the response.
    let is_visit = audience == Audience::Navigation
        && value("sec-fetch-mode") == Some(b"navigate")
        && value("sec-fetch-dest") == Some(b"document")
        && value("origin").is_none();
    if is_foreign && !is_visit {
        return Err(Denial::CrossSite);
    }
    let Some(token) = token.filter(|_| audience == Audience::Authorized) else {
        return Ok(());
    };
    let sent = value("authorization").and_then(|value| {
        let (scheme, sent) = value.split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then_some(sent)
    });
    match sent.is_some_and(|sent| token.is(sent)) {
        true => Ok(()),
        false => Err(Denial::Token),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use onrush_http::{HeaderSlots, Limits, Parsed, request};

    const TOKEN: &str = "0123456789abcdef";

    fn outcome(fields: &str, audience: Audience) -> Result<(), Denial> {
        let token = Token::new(TOKEN).expect("it is long enough");
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let mut slots = HeaderSlots::new();
        let Parsed::Complete(head) = request::parse(text.as_bytes(), &mut slots, &Limits::DEFAULT)
        else {
            panic!("it is a request: {text}")
        };
        check(&head, Some(&CurrentToken::new(token)), audience)
    }

    #[test]
    fn token_requires_minimum_length_and_visible_ascii() {
        for wrong in [
            "",
            "0123456789abcde",
            "0123456789abcde f",
            "0123456789abcdé",
            &"x".repeat(513),
        ] {
            assert!(Token::new(wrong).is_none(), "{wrong}");
        }
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        fs::write(&path, format!("{TOKEN}\n")).expect("it is ours");
        assert_eq!(Token::read(&path).expect("it is one").text(), TOKEN);
        fs::write(&path, format!("{TOKEN}\n{TOKEN}\n")).expect("it is ours");
        assert!(matches!(Token::read(&path), Err(TokenError::Invalid)));
    }

    #[test]
    fn token_is_required() {
        assert_eq!(
            outcome(
                &format!("Authorization: Bearer {TOKEN}\r\n"),
                Audience::Authorized
            ),
            Ok(())
        );
        assert_eq!(
            outcome(
                &format!("authorization: bearer {TOKEN}\r\n"),
                Audience::Authorized
            ),
            Ok(())
        );
        for wrong in [
            String::new(),
            format!("Authorization: {TOKEN}\r\n"),
            format!("Authorization: Bearer {TOKEN}0\r\n"),
            format!("Authorization: Bearer {}\r\n", &TOKEN[1..]),
            "Authorization: Bearer \r\n".to_owned(),
            format!("Authorization: Basic {TOKEN}\r\n"),
        ] {
            assert_eq!(
                outcome(&wrong, Audience::Authorized),
                Err(Denial::Token),
                "{wrong}"
            );
            assert_eq!(outcome(&wrong, Audience::Public), Ok(()), "{wrong}");
        }
    }

    #[test]
    fn cross_site_requests_are_refused() {
        for fields in [
            "Origin: http://evil.example\r\n",
            "Origin: null\r\n",
            "Sec-Fetch-Site: cross-site\r\n",
            "Sec-Fetch-Site: same-site\r\nOrigin: http://h\r\n",
        ] {
            let fields = format!("{fields}Authorization: Bearer {TOKEN}\r\n");
            assert_eq!(
                outcome(&fields, Audience::Public),
                Err(Denial::CrossSite),
                "{fields}"
            );
        }
        let link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
        let visit = format!("{link}Sec-Fetch-Dest: document\r\n");
        assert_eq!(outcome(&visit, Audience::Navigation), Ok(()));
        for (fields, audience) in [
            (visit.clone(), Audience::Public),
            (visit.clone(), Audience::Authorized),
            (format!("{visit}Origin: null\r\n"), Audience::Navigation),
            (
                format!("{link}Sec-Fetch-Dest: iframe\r\n"),
                Audience::Navigation,
            ),
        ] {
            let refused = outcome(&fields, audience);
            assert_eq!(refused, Err(Denial::CrossSite), "{audience:?} {fields}");
        }
        let own = format!(
            "Sec-Fetch-Site: same-origin\r\nOrigin: http://h\r\nAuthorization: Bearer {TOKEN}\r\n"
        );
        assert_eq!(outcome(&own, Audience::Authorized), Ok(()));
    }
}
