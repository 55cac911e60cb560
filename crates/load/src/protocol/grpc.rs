//! gRPC over HTTP/2. The outcome of a response is the code in its trailers, or in its head if that ends the stream. For
//! a response that is not gRPC, it is the HTTP status.

pub(crate) mod check;

use onrush_http::header_is;
use onrush_http::http2::End;
use onrush_http::http2::fields::FieldSection;

use crate::requests::grpc::code;
use crate::requests::grpc::message::{Unary, is_grpc};
use crate::requests::response::{Outcome, Outcomes};

/// gRPC codes, and HTTP statuses other than 200 by their number.
pub(crate) static OUTCOMES: Outcomes = Outcomes {
    count: 1000,
    classes: ["not gRPC", "OK", "", "4xx codes", "5xx codes"],
    noun: "",
    name: |number| match code::name(number) {
        Some(name) => name.to_owned(),
        None => format!("HTTP {number}"),
    },
    is_refusal: |number| number > 0,
    refusal_phrase: "were not OK",
    is_unexpected: |number| number > 0,
    // A code is the server's answer to a call, as a status is to a request. A status other than 200 does not come from
    // a gRPC server.
    is_failure: |number| number > code::CODE_MAX,
    is_mismatched: |_| false,
};

const NO_CODE: &str = "a response without grpc-status";

/// State of the response to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Call {
    message: Unary,
    code: Option<u16>,
    status: u16,
}

impl Call {
    /// Starts from a final head with `status`; `end` is whether the head ends the stream.
    ///
    /// # Errors
    /// The reason why the response is invalid.
    pub(crate) fn begin(
        status: u16,
        fields: &FieldSection,
        end: End,
    ) -> Result<Call, &'static str> {
        let mut call = Call {
            status,
            ..Call::default()
        };
        if status != 200 {
            return Ok(call);
        }
        if !value(fields, "content-type").is_some_and(is_grpc) {
            return Err("the content-type of a response is not application/grpc");
        }
        match value(fields, "grpc-encoding") {
            None | Some(b"identity") => {}
            Some(_) => {
                return Err("a response has a grpc-encoding, but only identity was accepted");
            }
        }
        if end == End::Stream {
            call.end(fields)?;
        }
        Ok(call)
    }

    /// Takes data of the body.
    ///
    /// # Errors
    /// The reason why the data is invalid.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        match self.status {
            200 => self.message.take(bytes),
            // An error page of a proxy.
            _ => Ok(()),
        }
    }

    /// Takes the fields that end the response.
    ///
    /// # Errors
    /// The reason why they are invalid.
    pub(crate) fn end(&mut self, fields: &FieldSection) -> Result<(), &'static str> {
        if self.status != 200 {
            return Ok(());
        }
        let mut values = values(fields, "grpc-status");
        let value = values.next().ok_or(NO_CODE)?;
        if values.next().is_some() {
            // Ambiguous, even if both are the same.
            return Err("a response with more than one grpc-status");
        }
        let code = code::parse(value).ok_or("a grpc-status that is not a number from 0 to 16")?;
        self.code = Some(code);
        Ok(())
    }

    /// Returns the outcome of a complete response.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub(crate) fn outcome(&self) -> Result<Outcome, &'static str> {
        if self.status != 200 {
            return Ok(Outcome {
                number: self.status,
                class: 0,
            });
        }
        let number = self.code.ok_or(NO_CODE)?;
        if number == 0 {
            self.message.end()?;
        }
        Ok(Outcome {
            number,
            class: code::class(number) - 1,
        })
    }
}

fn value<'f>(fields: &'f FieldSection, wanted: &str) -> Option<&'f [u8]> {
    values(fields, wanted).next()
}

fn values<'f>(fields: &'f FieldSection, wanted: &str) -> impl Iterator<Item = &'f [u8]> {
    let fields = fields.iter();
    let fields = fields.filter(move |(name, _)| header_is(name, wanted));
    fields.map(|(_, value)| value)
}
