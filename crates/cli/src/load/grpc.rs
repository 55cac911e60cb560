//! Flags of gRPC calls.

use std::path::Path;
use std::time::Duration;

use onrush_load::grpc;
use onrush_load::grpc::descriptors::Descriptors;
use onrush_load::grpc::limits::DESCRIPTORS_BYTES_MAX;
use onrush_load::plan::Options;
use onrush_load::target::Target;

pub(super) fn descriptors(path: &Path) -> Result<Descriptors, String> {
    let bytes = onrush_file::read(path, DESCRIPTORS_BYTES_MAX).map_err(|error| error.to_string());
    let descriptors = bytes.and_then(|bytes| Descriptors::parse(&bytes));
    descriptors.map_err(|why| format!("{}: {why}", path.display()))
}

/// Refuses the first of `flags` that is given if `url` is a gRPC target.
pub(super) fn check_flags(url: &Target, flags: &[(&str, bool)]) -> Result<(), String> {
    let given = flags.iter().find(|(_, is_given)| *is_given);
    match given {
        Some((flag, _)) if url.scheme.is_grpc() => Err(format!(
            "{flag} is only for HTTP requests, and {} uses gRPC: remove the option",
            url.url
        )),
        _ => Ok(()),
    }
}

/// Sends the timeout to gRPC servers as `grpc-timeout`, unless a header field sets it.
pub(super) fn add_grpc_timeout(options: &mut Options, time: Duration) {
    const NAME: &str = "grpc-timeout";
    let mut names = options.headers.iter().map(|(name, _)| name);
    if options.target.scheme.is_grpc() && !names.any(|name| name.eq_ignore_ascii_case(NAME)) {
        options.headers.push((NAME.to_owned(), grpc::timeout(time)));
    }
}
