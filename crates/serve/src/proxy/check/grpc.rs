//! The gRPC health checking protocol (`grpc.health.v1`), with a minimal encoder and decoder for its two messages. Pure.

use super::http2::CheckResponse;
use crate::observe::protobuf::Writer;
use crate::proxy::health::CheckFault;

pub(super) const PATH: &str = "/grpc.health.v1.Health/Check";

/// `HealthCheckRequest` for a service of up to 255 bytes, with its length prefix (Length-Prefixed-Message).
pub(super) fn request(service: &str) -> Vec<u8> {
    let mut message = Writer::default();
    if !service.is_empty() {
        message.text(1, service.as_bytes());
    }
    let message = message.into_bytes();
    let mut framed = vec![0];
    framed.extend((message.len() as u32).to_be_bytes());
    framed.extend(message);
    framed
}

/// Checks that the status is SERVING.
///
/// # Errors
/// The fault of the answer.
pub(super) fn evaluate(answer: &CheckResponse) -> Result<(), CheckFault> {
    if answer.status != 200 {
        return Err(CheckFault::Status(answer.status));
    }
    match answer.grpc_status {
        None => return Err(CheckFault::NoGrpcStatus),
        Some(0) => {}
        Some(status) => return Err(CheckFault::GrpcStatus(status)),
    }
    match serving_status(&answer.body) {
        Some(SERVING) => Ok(()),
        Some(other) => Err(CheckFault::NotServing(other)),
        None => Err(CheckFault::NoGrpcMessage),
    }
}

/// `ServingStatus` of the protocol.
const SERVING: u8 = 1;

/// The status of a `HealthCheckResponse` with its length prefix: field 1, an enum, 0 if absent.
fn serving_status(framed: &[u8]) -> Option<u8> {
    let (&[compressed, a, b, c, d], message) = framed.split_first_chunk()?;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    match message {
        _ if compressed != 0 || message.len() != length => None,
        [] => Some(0),
        &[0x08, status @ 0..0x80] => Some(status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &[u8], grpc_status: Option<u16>) -> CheckResponse {
        CheckResponse {
            status: 200,
            body: body.to_vec(),
            grpc_status,
            is_whole: true,
        }
    }

    #[test]
    fn grpc_request_has_length_prefix() {
        assert_eq!(request(""), [0, 0, 0, 0, 0]);
        assert_eq!(request("ab"), [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
        let long = request(&"a".repeat(200));
        assert_eq!(&long[..8], [0, 0, 0, 0, 203, 0x0a, 0xc8, 1]);
        assert_eq!(long.len(), 5 + 203);
    }

    #[test]
    fn only_serving_status_passes_grpc_check() {
        let serving = [0, 0, 0, 0, 2, 8, 1];
        assert!(evaluate(&answer(&serving, Some(0))).is_ok());
        for (body, status, said) in [
            (&[0, 0, 0, 0, 2, 8, 2][..], Some(0), "says NOT_SERVING"),
            (&[0, 0, 0, 0, 0], Some(0), "says UNKNOWN"),
            (&[0, 0, 0, 0, 2, 8, 3], Some(0), "says SERVICE_UNKNOWN"),
            (&serving, None, "has no grpc-status"),
            (&[], Some(5), "has grpc-status 5"),
            (
                &[1, 0, 0, 0, 2, 8, 1],
                Some(0),
                "is not a HealthCheckResponse",
            ),
            (
                &[0, 0, 0, 0, 3, 8, 1],
                Some(0),
                "is not a HealthCheckResponse",
            ),
        ] {
            let fault = evaluate(&answer(body, status)).expect_err(said);
            assert!(fault.to_string().ends_with(said), "{fault}: {said}");
        }
    }
}
