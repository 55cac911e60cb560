//! Parser of one response. It works on the receive buffer and copies nothing.

use std::cell::RefCell;

use onrush_http::Refusal;
use onrush_http::body::BodyReader;

use super::heads::{Head, HeadCache};
use super::held_head::HeldHead;
use crate::limits::http1::RESPONSE_LIMITS;
use crate::requests::cookies::CookieJar;
use crate::requests::expect::{Expected, Search};
use crate::requests::mix::Recipe;
use crate::requests::response::{ExpectationResult, Outcome, Response, Stage, Step};

/// Lowest status: a status has three digits (RFC 9112 section 4).
pub(super) const STATUS_MIN: u16 = 100;

pub(crate) struct Incoming<'c> {
    heads: &'c HeadCache,
    recipe: &'c Recipe,
    jar: Option<&'c RefCell<CookieJar>>,
    state: State,
}

enum State {
    ExpectHead(HeldHead),
    ExpectBody(Body),
}

/// Response after its head.
struct Body {
    status: u16,
    keep_alive: bool,
    reader: BodyReader,
    search: Option<Box<Search>>,
}

impl<'c> Incoming<'c> {
    pub(super) fn new(
        heads: &'c HeadCache,
        recipe: &'c Recipe,
        jar: Option<&'c RefCell<CookieJar>>,
    ) -> Incoming<'c> {
        Incoming {
            heads,
            recipe,
            jar,
            state: State::ExpectHead(HeldHead::default()),
        }
    }

    #[inline]
    pub(crate) fn step(&mut self, input: &[u8]) -> (usize, Step) {
        let mut at = 0;
        let step = self.advance(input, &mut at);
        (at, step.unwrap_or_else(Step::Refused))
    }

    fn advance(&mut self, input: &[u8], at: &mut usize) -> Result<Step, &'static str> {
        loop {
            match &mut self.state {
                State::ExpectHead(_) => match self.head(input, at)? {
                    Some(head) => self.state = State::ExpectBody(Body::new(head, self.recipe)),
                    None => return Ok(Step::Partial(Stage::Head)),
                },
                State::ExpectBody(body) => {
                    *at += body.skip(self.recipe, &input[*at..]).map_err(reason)?;
                    return Ok(match body.reader.is_complete() {
                        true => Step::Done(body.response(self.recipe)),
                        false => Step::Partial(Stage::Body),
                    });
                }
            }
        }
    }

    /// Parses the head at `at` and advances `at`; `None` if it is incomplete.
    fn head(&mut self, input: &[u8], at: &mut usize) -> Result<Option<Head>, &'static str> {
        let State::ExpectHead(held) = &mut self.state else {
            return Ok(None);
        };
        loop {
            let found = held.read(&input[*at..], |input| {
                let head = self.heads.read(input, self.recipe.method)?;
                Ok(head.map(|head| (head, head.bytes)))
            });
            let (bytes, head) = found.map_err(reason)?;
            *at += bytes;
            let Some(head) = head else {
                return Ok(None);
            };
            match head.status {
                101 => return Err("switched to a protocol that was not requested"),
                // An interim response (RFC 9110 section 15.2).
                ..200 => {}
                200.. => {
                    if let Some(jar) = self.jar {
                        self.heads.put_cookies(&mut jar.borrow_mut());
                    }
                    return Ok(Some(head));
                }
            }
        }
    }

    /// Returns how many of the body's remaining bytes may be skipped without being read.
    #[inline]
    pub(crate) fn skippable_bytes(&self) -> u64 {
        match &self.state {
            State::ExpectBody(body) if body.search.is_none() => {
                body.reader.remaining().unwrap_or(0)
            }
            State::ExpectHead(_) | State::ExpectBody(_) => 0,
        }
    }

    pub(crate) fn skip_bytes(&mut self, count: u64) {
        let State::ExpectBody(body) = &mut self.state else {
            unreachable!("the head was parsed");
        };
        body.reader.count_forwarded(count);
    }

    /// Returns the response if the end of the connection completes it.
    pub(crate) fn end(&self) -> Option<Response> {
        let State::ExpectBody(body) = &self.state else {
            return None;
        };
        body.reader.end_of_input().ok()?;
        Some(Response {
            keep_alive: false,
            ..body.response(self.recipe)
        })
    }
}

impl Body {
    fn new(head: Head, recipe: &Recipe) -> Body {
        Body {
            status: head.status,
            keep_alive: head.keep_alive,
            reader: BodyReader::of_response(head.framing),
            search: recipe.expected.as_ref().and_then(Expected::search),
        }
    }

    fn skip(&mut self, recipe: &Recipe, input: &[u8]) -> Result<usize, Refusal> {
        match (&mut self.search, &recipe.expected) {
            _ if self.reader.is_complete() => Ok(0),
            (Some(search), Some(expected)) => expected.skip(search, &mut self.reader, input),
            (None, _) | (_, None) => self.reader.skip(input, &RESPONSE_LIMITS),
        }
    }

    fn response(&self, recipe: &Recipe) -> Response {
        let met = match &recipe.expected {
            Some(expected) => expected.judge(self.status, self.search.as_deref()),
            None => ExpectationResult::Yes,
        };
        Response {
            outcome: outcome(self.status),
            keep_alive: self.keep_alive && !recipe.closes,
            expectation: met,
        }
    }
}

pub(crate) fn outcome(status: u16) -> Outcome {
    Outcome {
        number: status - STATUS_MIN,
        // Index of the class: 1xx is 0.
        class: (status / 100 - 1) as u8,
    }
}

fn reason(refusal: Refusal) -> &'static str {
    refusal.reason
}
