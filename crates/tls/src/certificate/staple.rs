//! Files of OCSP responses (RFC 6960 4.2.1), sent with the certificate (OCSP stapling, RFC 6066 8). The client verifies
//! the response; this module only checks whether to send it.

use std::path::Path;

use onrush_engine::clock;
use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::asn1_rs::{Any, FromDer};
use x509_parser::time::ASN1Time;

use crate::certificate::pem;
use crate::limits::STAPLE_BYTES_MAX;

/// An OCSP response with status `good` for a certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Staple {
    pub(crate) bytes: Vec<u8>,
    /// `nextUpdate` in Unix time: clients refuse the response from then on.
    pub(crate) until: Option<u64>,
}

/// Reason for not sending a response.
pub(crate) enum StapleError {
    /// The file cannot be read, or contains something else.
    Wrong(String),
    /// The response cannot be used for the certificate: it belongs to an older or newer one, or has expired.
    Unusable(String),
}

/// Reads the response in `file`, which is DER, for a certificate.
///
/// # Errors
/// When the response should not be sent.
pub(crate) fn read(file: &Path, certificate: &X509Certificate<'_>) -> Result<Staple, StapleError> {
    let bytes = onrush_file::read(file, STAPLE_BYTES_MAX)
        .map_err(|error| StapleError::Wrong(format!("it cannot be read: {error}")))?;
    if !pem::is_der(&bytes) {
        let why =
            "it is not DER: expected an OCSP response such as openssl ocsp -respout FILE writes";
        return Err(StapleError::Wrong(why.into()));
    }
    let why = "it is DER, but not an OCSP response";
    let response = Response::parse(&bytes).ok_or_else(|| StapleError::Wrong(why.into()))?;
    let answers = match response {
        Response::Failed(status) => {
            let why = format!("the OCSP responder has failed (response status {status})");
            return Err(StapleError::Unusable(why));
        }
        Response::Responses(answers) => answers,
    };
    let serial = certificate.raw_serial();
    let Some(answer) = answers.iter().find(|answer| answer.serial == serial) else {
        let why = format!(
            "the OCSP response is for another certificate, not for the one with serial number {}",
            certificate.raw_serial_as_string()
        );
        return Err(StapleError::Unusable(why));
    };
    if answer.status != Status::Good {
        let why = format!(
            "the OCSP response reports the certificate as {}",
            answer.status.shown()
        );
        return Err(StapleError::Unusable(why));
    }
    let until = answer.next_update;
    let seconds = until.and_then(|until| u64::try_from(until.timestamp()).ok());
    match (until, seconds) {
        (Some(until), Some(seconds)) if seconds <= clock::unix_seconds() => {
            let why = format!("the OCSP response has expired: {until}");
            Err(StapleError::Unusable(why))
        }
        (_, until) => Ok(Staple { bytes, until }),
    }
}

/// Status of one certificate (SingleResponse).
struct SingleResponse<'b> {
    serial: &'b [u8],
    status: Status,
    next_update: Option<ASN1Time>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Good,
    Revoked,
    Unknown,
}

impl Status {
    fn shown(self) -> &'static str {
        match self {
            Status::Good => "good",
            Status::Revoked => "revoked",
            Status::Unknown => "unknown",
        }
    }
}

enum Response<'b> {
    /// Unsuccessful response status, without any certificate.
    Failed(u8),
    Responses(Vec<SingleResponse<'b>>),
}

const ENUMERATED: u32 = 10;
const SEQUENCE: u32 = 16;

impl<'b> Response<'b> {
    /// Parses an OCSPResponse with a BasicOCSPResponse.
    fn parse(bytes: &'b [u8]) -> Option<Response<'b>> {
        let (outer, []) = of_tag(SEQUENCE, bytes)? else {
            return None;
        };
        let (&[status], rest) = of_tag(ENUMERATED, outer)? else {
            return None;
        };
        if status != 0 {
            return Some(Response::Failed(status));
        }
        // [0] EXPLICIT ResponseBytes: an identifier, and an octet string with the response.
        let (tagged, _) = of_tag(0, rest)?;
        let (response_bytes, _) = of_tag(SEQUENCE, tagged)?;
        let (_, rest) = any(response_bytes)?;
        let (basic, _) = any(rest)?;
        let (basic, _) = of_tag(SEQUENCE, basic.content)?;
        let (data, _) = of_tag(SEQUENCE, basic)?;
        // ResponseData: optional [0] version, [1] or [2] the responder, the time, the answers.
        let (first, rest) = any(data)?;
        let rest = match first.tag {
            0 => any(rest)?.1,
            _ => rest,
        };
        let (_, rest) = any(rest)?;
        let (mut answers, _) = of_tag(SEQUENCE, rest)?;
        let mut all = Vec::new();
        while !answers.is_empty() {
            let (answer, rest) = of_tag(SEQUENCE, answers)?;
            all.push(SingleResponse::parse(answer)?);
            answers = rest;
        }
        Some(Response::Responses(all))
    }
}

impl<'b> SingleResponse<'b> {
    /// Parses a SingleResponse.
    fn parse(bytes: &'b [u8]) -> Option<SingleResponse<'b>> {
        let (mut id, rest) = of_tag(SEQUENCE, bytes)?;
        // CertID: the algorithm, hashes of the issuer's name and key, the serial number.
        for _ in 0..3 {
            id = any(id)?.1;
        }
        let serial = any(id)?.0.content;
        let (status, rest) = any(rest)?;
        let (_this_update, rest) = any(rest)?;
        let next_update = match rest.is_empty() {
            true => None,
            false => match of_tag(0, rest) {
                Some((time, _)) => Some(ASN1Time::from_der(time).ok()?.1),
                // Extensions.
                None => None,
            },
        };
        Some(SingleResponse {
            serial,
            status: match status.tag {
                0 => Status::Good,
                1 => Status::Revoked,
                _ => Status::Unknown,
            },
            next_update,
        })
    }
}

struct Element<'b> {
    tag: u32,
    content: &'b [u8],
}

/// Returns the next element, and the bytes after it.
fn any(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (rest, any) = Any::from_der(bytes).ok()?;
    let element = Element {
        tag: any.tag().0,
        content: any.data,
    };
    Some((element, rest))
}

/// Returns the content of the next element if it has this tag, and the bytes after it.
fn of_tag(tag: u32, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, rest) = any(bytes)?;
    (found.tag == tag).then_some((found.content, rest))
}

#[cfg(test)]
mod tests;
