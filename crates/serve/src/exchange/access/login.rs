//! The Basic authentication scheme (RFC 7617), with a cache of verified credentials.
//!
//! Checking a password is slow by design, so it happens on a separate thread ([`password_verifier`](super::password_verifier)), and each core
//! caches successful checks. A cached check costs one decoding, two keyed hashes and four comparisons.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use onrush_engine::{Core, Instant};
use onrush_http::basic_auth::{self, Credentials};
use onrush_http::limits::BASIC_CREDENTIALS_BYTES_MAX;
use onrush_http::request::RequestHead;

use super::password_verifier::{Outcome, Pending, Verifier};
use super::users::Users;
use crate::limits::{LOGIN_IDLE, LOGINS_MAX};

/// Basic authentication of one route, prepared for one core.
#[derive(Debug)]
pub(super) struct BasicAuthenticator {
    challenge: String,
    users: Arc<Users>,
    verifier: Verifier,
    known: Known,
}

/// The next step for a request.
#[derive(Debug)]
pub(super) enum Step {
    LetIn,
    /// 401, with the challenge.
    Ask,
    /// The password is being checked.
    Wait(Pending),
    /// 503: too many passwords wait to be checked.
    Busy,
}

impl BasicAuthenticator {
    pub(super) fn new(realm: &str, users: &Arc<Users>, verifier: &Verifier) -> Self {
        Self {
            // RFC 7617 2.1: `charset` makes clients send UTF-8.
            challenge: format!("Basic realm=\"{realm}\", charset=\"UTF-8\""),
            users: Arc::clone(users),
            verifier: verifier.clone(),
            known: Known::default(),
        }
    }

    pub(super) fn challenge(&self) -> &str {
        &self.challenge
    }

    /// Checks the password of a request on the calling thread.
    pub(super) fn verify_now(&self, head: &RequestHead<'_, '_>) -> Outcome {
        let mut room = [0; BASIC_CREDENTIALS_BYTES_MAX];
        let credentials = basic_auth::credentials(head.headers, &mut room);
        let is_right = credentials.is_some_and(|it| self.users.verify(it.user, it.password));
        match is_right {
            true => Outcome::Right,
            false => Outcome::Wrong,
        }
    }

    /// Decides the next step of a request; `checked` is the outcome of its password check, if it has waited for one.
    pub(super) fn step(
        &self,
        head: &RequestHead<'_, '_>,
        checked: Option<Outcome>,
        core: &Core,
    ) -> Step {
        let now = core.now();
        let mut room = [0; BASIC_CREDENTIALS_BYTES_MAX];
        let Some(credentials) = basic_auth::credentials(head.headers, &mut room) else {
            return Step::Ask;
        };
        let mark = self.known.mark(credentials);
        match checked {
            Some(Outcome::Right) => {
                self.known.remember(mark, now);
                Step::LetIn
            }
            Some(Outcome::Wrong) => Step::Ask,
            Some(Outcome::Unknown) => Step::Busy,
            None if self.known.contains(mark, now) => Step::LetIn,
            None => match self.verifier.submit(core, &self.users, credentials) {
                Some(pending) => Step::Wait(pending),
                None => Step::Busy,
            },
        }
    }
}

/// Cache of verified credentials, four-way set-associative.
struct Known {
    secret: RandomState,
    /// Empty until the first password is verified.
    places: RefCell<Vec<Place>>,
}

#[derive(Clone, Copy, Default)]
struct Place {
    mark: CredentialHash,
    until: Instant,
}

/// Identifies credentials: two 64-bit hashes (SipHash) with a random secret. A second pair with the same mark (1 in
/// 2^128) cannot be searched offline.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct CredentialHash(u64, u64);

const WAYS: usize = 4;

/// Prints neither the marks nor the secret: together they allow password guessing.
impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Known({})", self.places.borrow().len())
    }
}

impl Default for Known {
    fn default() -> Self {
        Self {
            secret: RandomState::new(),
            places: RefCell::default(),
        }
    }
}

impl Known {
    fn mark(&self, credentials: Credentials<'_>) -> CredentialHash {
        let half =
            |which: u8| (self.secret).hash_one((which, credentials.user, credentials.password));
        CredentialHash(half(0), half(1))
    }

    /// Whether the mark is cached; if so, its lifetime restarts.
    fn contains(&self, mark: CredentialHash, now: Instant) -> bool {
        let mut places = self.places.borrow_mut();
        if places.is_empty() {
            return false;
        }
        let set = &mut places[set_of(mark)];
        let found = set
            .iter_mut()
            .find(|place| place.mark == mark && place.until > now);
        if let Some(place) = found {
            place.until = now + LOGIN_IDLE;
            return true;
        }
        false
    }

    /// Stores the mark in place of the least recently used one of its set.
    fn remember(&self, mark: CredentialHash, now: Instant) {
        let mut places = self.places.borrow_mut();
        if places.is_empty() {
            places.resize(LOGINS_MAX, Place::default());
        }
        let set = &mut places[set_of(mark)];
        let oldest = set
            .iter_mut()
            .min_by_key(|place| (place.mark != mark, place.until));
        if let Some(place) = oldest {
            let until = now + LOGIN_IDLE;
            *place = Place { mark, until };
        }
    }
}

fn set_of(mark: CredentialHash) -> std::ops::Range<usize> {
    let set = mark.0 as usize % (LOGINS_MAX / WAYS);
    set * WAYS..(set + 1) * WAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(known: &Known, user: &str, password: &str) -> CredentialHash {
        known.mark(Credentials {
            user: user.as_bytes(),
            password: password.as_bytes(),
        })
    }

    #[test]
    fn cached_login_expires_when_unused() {
        let known = Known::default();
        let ali = mark(&known, "ali", "open sesame");
        let start = Instant::from_nanoseconds(1);
        assert!(!known.contains(ali, start));
        known.remember(ali, start);
        let mut now = start;
        for _ in 0..3 {
            now = now + LOGIN_IDLE / 2;
            assert!(known.contains(ali, now));
        }
        assert!(!known.contains(ali, now + LOGIN_IDLE));
    }

    #[test]
    fn cached_login_requires_same_name_and_password() {
        let known = Known::default();
        let now = Instant::from_nanoseconds(1);
        known.remember(mark(&known, "ali", "baba"), now);
        for (user, password) in [("ali", "bab"), ("alib", "aba"), ("baba", "ali"), ("", "")] {
            assert!(
                !known.contains(mark(&known, user, password), now),
                "{user} {password}"
            );
        }
        assert_ne!(
            mark(&known, "ali", "baba").0,
            mark(&Known::default(), "ali", "baba").0
        );
    }

    #[test]
    fn login_cache_evicts_least_recently_used() {
        let known = Known::default();
        let ali = mark(&known, "ali", "open sesame");
        for number in 0..10 * LOGINS_MAX as u64 {
            let now = Instant::from_nanoseconds(1 + number);
            known.remember(ali, now);
            known.remember(mark(&known, &number.to_string(), ""), now);
            assert!(known.contains(ali, now));
        }
        assert_eq!(known.places.borrow().len(), LOGINS_MAX);
    }
}
