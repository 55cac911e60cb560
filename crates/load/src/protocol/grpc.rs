//! gRPC over HTTP/2: requests are those of HTTP/2, and what a response says is the code that stands in its trailers, or in its head
//! where that is all of it. A response that is none of gRPC's says the status of HTTP that it has.

pub(crate) mod check;

use onrush_http::header_is;
use onrush_http::http2::End;
use onrush_http::http2::fields::FieldSection;

use crate::requests::grpc::code;
use crate::requests::grpc::message::{Unary, is_grpc};
use crate::requests::response::{Outcome, Outcomes};

/// Codes, and above them statuses of HTTP other than 200, by their own numbers.
pub(crate) static OUTCOMES: Outcomes = Outcomes {
    count: 1000,
    classes: ["not gRPC", "OK", "", "4xx codes", "5xx codes"],
    noun: "",
    name: |number| match code::name(number) {
        Some(name) => name.to_owned(),
        None => format!("HTTP {number}"),
    },
    is_refusal: |number| number > 0,
    refusals: "were not OK",
    is_unaccepted: |number| number > 0,
    // A code is the server's answer to a call, as a status is to a request. What has another status than 200 is no answer of a
    // server of gRPC.
    is_failure: |number| number > code::CODE_MAX,
    is_false: |_| false,
};

/// What is said of a response without a code.
const NO_CODE: &str = "a response without grpc-status";

/// The response to a call, as far as it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Call {
    message: Unary,
    /// The code, where one has come.
    code: Option<u16>,
    /// The status of HTTP.
    status: u16,
}

impl Call {
    /// A head with this `status`, which is not that of an interim response, has come; `end`: whether it is all there is.
    ///
    /// # Errors
    /// Why it does not begin a response to a call.
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
                return Err("a response has a grpc-encoding, where only identity was accepted");
            }
        }
        if end == End::Stream {
            call.end(fields)?;
        }
        Ok(call)
    }

    /// Data has come.
    ///
    /// # Errors
    /// Why it is not that of a response to a call.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        match self.status {
            200 => self.message.take(bytes),
            // What a proxy says to people.
            _ => Ok(()),
        }
    }

    /// The fields that a response ends with have come.
    ///
    /// # Errors
    /// Why they do not end one.
    pub(crate) fn end(&mut self, fields: &FieldSection) -> Result<(), &'static str> {
        if self.status != 200 {
            return Ok(());
        }
        let mut values = values(fields, "grpc-status");
        let value = values.next().ok_or(NO_CODE)?;
        if values.next().is_some() {
            // Which of them is meant nobody can know, not even where they are the same today.
            return Err("a response with more than one grpc-status");
        }
        let code = code::parse(value).ok_or("a grpc-status that is no number from 0 to 16")?;
        self.code = Some(code);
        Ok(())
    }

    /// What a whole response says.
    ///
    /// # Errors
    /// Why it is none.
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

/// The value of a field; of several of the name that of the first.
fn value<'f>(fields: &'f FieldSection, wanted: &str) -> Option<&'f [u8]> {
    values(fields, wanted).next()
}

/// The values of all fields of a name.
fn values<'f>(fields: &'f FieldSection, wanted: &str) -> impl Iterator<Item = &'f [u8]> {
    let fields = fields.iter();
    let fields = fields.filter(move |(name, _)| header_is(name, wanted));
    fields.map(|(_, value)| value)
}
