//! Turns requests into gRPC calls: the path names a method, and the body is a length-prefixed message. Done once,
//! before the run.

use super::{Body, Request};
use crate::limits::BODY_BYTES_MAX;
use crate::requests::grpc::descriptors::Descriptors;
use crate::requests::grpc::message::{framed, is_grpc};

/// Default fields of calls: two that servers require, and a refusal of compressed messages.
const FIELDS: [(&str, &str); 3] = [
    ("content-type", "application/grpc"),
    ("te", "trailers"),
    ("grpc-accept-encoding", "identity"),
];

/// Returns the `common` fields with the defaults that they lack.
///
/// # Errors
/// A sentence about the first invalid field.
pub(crate) fn fields(common: &[(String, String)]) -> Result<Vec<(String, String)>, String> {
    check_fields(common)?;
    let has = |wanted: &str| {
        let mut names = common.iter().map(|(name, _)| name);
        names.any(|name| name.eq_ignore_ascii_case(wanted))
    };
    let own = FIELDS.iter().filter(|(name, _)| !has(name));
    let own = own.map(|&(name, value)| (name.to_owned(), value.to_owned()));
    Ok(common.iter().cloned().chain(own).collect())
}

/// Turns `requests` into calls. A text body is JSON, a body of bytes is an encoded message.
///
/// # Errors
/// A sentence with the request, the reason and a remedy.
pub(crate) fn prepare(
    requests: &mut [Request],
    descriptors: Option<&Descriptors>,
) -> Result<(), String> {
    let of = requests.len();
    requests.iter_mut().try_for_each(|request| {
        make_one(request, descriptors).map_err(|why| match of {
            1 => why,
            _ => format!("{}: {why}", request.path),
        })
    })
}

fn make_one(request: &mut Request, descriptors: Option<&Descriptors>) -> Result<(), String> {
    let path = &request.path;
    check_path(path)?;
    check_fields(&request.headers)?;
    if let Some(descriptors) = descriptors {
        descriptors.check(path)?;
    }
    let message = match (&request.body, descriptors) {
        (Body::None, _) => framed(&[]),
        (Body::Bytes(bytes), _) => framed(bytes),
        (Body::Text(text), _) if text.contains("{{") => {
            return Err("a message has a variable ({{…}}), but messages are encoded once, before the run: list several \
                in a file (--requests-file), or use variables in headers (-H)".to_owned());
        }
        (Body::Text(text), Some(descriptors)) => framed(&descriptors.encode(path, text)?),
        (Body::Text(_), None) => {
            return Err("a message as JSON needs its descriptors, which are not requested from the server (reflection): \
                give the file that protoc --include_imports --descriptor_set_out=FILE writes (--descriptors FILE), or \
                the message's bytes (--body-file FILE)".to_owned());
        }
    };
    let message = message.filter(|message| message.len() <= BODY_BYTES_MAX);
    let message = message.ok_or_else(|| {
        format!(
            "a message is too large: expected {BODY_BYTES_MAX} bytes at most, including its prefix"
        )
    })?;
    "POST".clone_into(&mut request.method);
    request.body = Body::Bytes(message.into());
    Ok(())
}

/// Refuses a path that is not like `/package.Service/Method`. Any characters may be between the slashes (gRPC over
/// HTTP2, Path).
fn check_path(path: &str) -> Result<(), String> {
    let names = path
        .strip_prefix('/')
        .and_then(|path| path.rsplit_once('/'));
    match names {
        Some((service, method))
            if !service.is_empty() && !method.is_empty() && !path.contains('?') =>
        {
            Ok(())
        }
        _ => Err(format!(
            "{path:?} is not a method: expected /package.Service/Method, such as /grpc.health.v1.Health/Check"
        )),
    }
}

fn check_fields(fields: &[(String, String)]) -> Result<(), String> {
    for (name, value) in fields {
        let wrong = |why: &str| Err(format!("header {name:?} has the value {value:?}: {why}"));
        match &*name.to_ascii_lowercase() {
            "content-type" if !is_grpc(value.as_bytes()) => {
                return wrong(
                    "gRPC needs application/grpc, perhaps with +proto or another format after it: leave it out",
                );
            }
            "grpc-encoding" if value != "identity" => {
                return wrong("messages are sent uncompressed: leave it out");
            }
            "grpc-accept-encoding" if value != "identity" => {
                return wrong("compressed messages are not supported: leave it out");
            }
            "te" if value != "trailers" => return wrong("gRPC servers require the value trailers"),
            _ => {}
        }
    }
    Ok(())
}
