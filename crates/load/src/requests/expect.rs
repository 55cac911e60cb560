//! Checks whether a response meets its expectation.

use memchr::memmem::Finder;
use onrush_http::Refusal;
use onrush_http::body::BodyReader;

use super::{Expect, Statuses};
use crate::limits::http1::RESPONSE_LIMITS;
use crate::requests::response::ExpectationResult;

/// Compiled expectation of a response.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    statuses: Box<[Statuses]>,
    body: Option<Finder<'static>>,
}

impl Expected {
    /// Returns `None` if any response is accepted.
    pub(crate) fn new(expect: &Expect) -> Option<Expected> {
        let has_any = !expect.statuses.is_empty() || expect.body.is_some();
        has_any.then(|| Expected {
            statuses: expect.statuses.as_slice().into(),
            body: expect
                .body
                .as_ref()
                .map(|text| Finder::new(text).into_owned()),
        })
    }

    /// Checks the status and the result of the search in the body.
    pub(crate) fn judge(&self, status: u16, body: Option<&Search>) -> ExpectationResult {
        let is_one = |of: &Statuses| (of.from..=of.to).contains(&status);
        if !self.statuses.is_empty() && !self.statuses.iter().any(is_one) {
            return ExpectationResult::OtherOutcome;
        }
        match body {
            Some(search) if !search.is_found => ExpectationResult::OtherBody,
            _ => ExpectationResult::Yes,
        }
    }

    /// Returns a search in the body, if the body must contain something. Boxed, since most responses are not searched
    /// and connections should stay small.
    pub(crate) fn search(&self) -> Option<Box<Search>> {
        let finder = self.body.as_ref()?;
        Some(Box::new(Search {
            is_found: finder.needle().is_empty(),
            end: Vec::new(),
        }))
    }

    pub(crate) fn search_piece(&self, search: &mut Search, piece: &[u8]) {
        if let Some(finder) = &self.body {
            search.search_piece(finder, piece);
        }
    }

    /// As [`BodyReader::skip`], but searches the payload.
    pub(crate) fn skip(
        &self,
        search: &mut Search,
        body: &mut BodyReader,
        input: &[u8],
    ) -> Result<usize, Refusal> {
        let mut at = 0;
        while at < input.len() {
            let step = body.advance(&input[at..], &RESPONSE_LIMITS)?;
            if step.consumed == 0 {
                break;
            }
            self.search_piece(search, &input[at..][step.payload]);
            at += step.consumed;
        }
        Ok(at)
    }
}

/// State of the search in a body that arrives in pieces.
pub(crate) struct Search {
    is_found: bool,
    /// Last bytes received, in which a match may have begun; fewer than the expected bytes.
    end: Vec<u8>,
}

impl Search {
    fn search_piece(&mut self, finder: &Finder<'_>, piece: &[u8]) {
        if self.is_found || piece.is_empty() {
            return;
        }
        let overlap = finder.needle().len() - 1;
        // Search across the boundary of two pieces.
        self.end
            .extend_from_slice(&piece[..overlap.min(piece.len())]);
        self.is_found = finder.find(&self.end).is_some() || finder.find(piece).is_some();
        if piece.len() >= overlap {
            self.end.clear();
            self.end.extend_from_slice(&piece[piece.len() - overlap..]);
        } else {
            self.end.drain(..self.end.len().saturating_sub(overlap));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_http::Framing;
    use proptest::prelude::*;

    fn expected(statuses: &[&str], body: Option<&str>) -> Expected {
        let statuses = statuses.iter().map(|text| Statuses::parse(text).unwrap());
        let expect = Expect {
            statuses: statuses.collect(),
            body: body.map(str::to_owned),
        };
        Expected::new(&expect).unwrap()
    }

    #[test]
    fn expected_statuses_match_codes_and_classes() {
        let expected = expected(&["204", "3xx"], None);
        for (status, met) in [
            (204, ExpectationResult::Yes),
            (302, ExpectationResult::Yes),
            (200, ExpectationResult::OtherOutcome),
            (404, ExpectationResult::OtherOutcome),
        ] {
            assert_eq!(expected.judge(status, None), met, "{status}");
        }
    }

    #[test]
    fn empty_expectation_checks_nothing() {
        assert!(Expected::new(&Expect::default()).is_none());
    }

    fn met(wanted: &str, pieces: &[&[u8]], framing: Framing) -> ExpectationResult {
        let expected = expected(&[], Some(wanted));
        let mut search = expected.search().unwrap();
        let mut body = BodyReader::of_response(framing);
        let mut input = Vec::new();
        for piece in pieces {
            input.extend_from_slice(piece);
            let consumed = expected.skip(&mut search, &mut body, &input).unwrap();
            input.drain(..consumed);
        }
        expected.judge(200, Some(&search))
    }

    #[test]
    fn body_match_ignores_chunk_headers() {
        let pieces: [&[u8]; 2] = [b"3\r\nabc\r\n2\r", b"\nde\r\n0\r\n\r\n"];
        assert_eq!(
            met("bcd", &pieces, Framing::Chunked),
            ExpectationResult::Yes
        );
        assert_eq!(
            met("\r\n", &pieces, Framing::Chunked),
            ExpectationResult::OtherBody
        );
        assert_eq!(met("", &pieces, Framing::Chunked), ExpectationResult::Yes);
    }

    proptest! {
        #[test]
        fn body_match_is_independent_of_read_boundaries(
            body in "[ab]{0,12}",
            wanted in "[ab]{1,4}",
            cuts in proptest::collection::vec(0usize..12, 0..5),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &body.as_bytes()[cut[0]..cut[1]]).collect();
            let found = met(&wanted, &pieces, Framing::Length(body.len() as u64)) == ExpectationResult::Yes;
            prop_assert_eq!(found, body.contains(&wanted));
        }
    }
}
