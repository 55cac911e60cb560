//! TLS towards servers.

use super::handler::Module;
use super::scope::Scope;
use super::work::Context;
use crate::document::Value;
use crate::source::directive::Directive;
use crate::source::guards::Guards;

const NOT_VERIFIED: &str = "certificates of servers are not verified";

/// The value of a group's `tls`. Fails if a certificate revocation list has no equivalent.
pub(super) fn tls<'a>(
    work: &mut Context<'a>,
    scope: &Scope<'a>,
    module: Module,
) -> Result<Value, String> {
    note_fixed_tls(work, scope, module);
    let mut entries = Vec::new();
    let verify = scope.one(&module.directive("ssl_verify"));
    if let Some(directive) = verify {
        work.notes.carried(directive);
    }
    let verified = match verify.is_some_and(|directive| directive.argument(0) == "on") {
        true => Verified::Yes,
        false => Verified::No,
    };
    if verified == Verified::No {
        // The default of nginx.
        entries.push(("verify".to_owned(), Value::Truth(false)));
    }
    // A certificate and its key are written together, or neither.
    let mut is_whole = true;
    for (name, key) in [
        ("ssl_trusted_certificate", "ca"),
        ("ssl_certificate", "certificate"),
        ("ssl_certificate_key", "key"),
    ] {
        let Some(directive) = scope.one(&module.directive(name)) else {
            continue;
        };
        if key == "ca" && verified == Verified::No {
            work.notes.without_effect(directive, NOT_VERIFIED);
            continue;
        }
        if directive.argument(0).contains('$') {
            work.notes
                .left_out(directive, "file names cannot contain variables");
            entries.retain(|(known, _)| !matches!(known.as_str(), "certificate" | "key"));
            is_whole &= key == "ca";
            continue;
        }
        if key == "ca" || is_whole {
            let path = work.path(directive.argument(0));
            entries.push((key.to_owned(), Value::Text(path)));
            work.notes.carried(directive);
        }
    }
    if let Some(directive) = scope.one(&module.directive("ssl_name")) {
        let name = directive.argument(0);
        // nginx sends the name without a port.
        let name = match name.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() && !host.ends_with(':') => host,
            _ => name,
        };
        let is_name = !name.starts_with('*') && onrush_config::value::parse_host(name).is_ok();
        match is_name {
            false => work.notes.left_out(
                directive,
                "the server's own host name is requested (SNI): expected a host name without variables",
            ),
            true => {
                entries.push(("name".to_owned(), Value::text(name)));
                work.notes.carried(directive);
            }
        }
    }
    let crl = scope.one(&module.directive("ssl_crl"));
    crl.map_or(Ok(()), |crl| revocation(work, crl, verified))?;
    Ok(Value::Table(entries))
}

/// Whether upstream certificates are verified.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verified {
    Yes,
    No,
}

/// Handles a revocation list for upstream certificates.
fn revocation<'a>(
    work: &mut Context<'a>,
    directive: &'a Directive,
    verified: Verified,
) -> Result<(), String> {
    match (verified, work.guards) {
        (Verified::Yes, Guards::Closed) => {
            let why =
                "groups have no revocation lists (--open-guards accepts revoked certificates)";
            work.notes.left_out(directive, why);
            return Err(why.to_owned());
        }
        (Verified::Yes, Guards::Open) => {
            let why = "revoked certificates are accepted";
            work.notes.left_out(directive, why);
        }
        (Verified::No, _) => work.notes.without_effect(directive, NOT_VERIFIED),
    }
    Ok(())
}

/// Notes on TLS directives for which Onrush has fixed behaviour.
fn note_fixed_tls<'a>(work: &mut Context<'a>, scope: &Scope<'a>, module: Module) {
    for name in [
        "ssl_server_name",
        "ssl_protocols",
        "ssl_ciphers",
        "ssl_session_reuse",
        "ssl_verify_depth",
        "ssl_conf_command",
    ] {
        if let Some(directive) = scope.one(&module.directive(name)) {
            let how = "Onrush always sends the server name (SNI), and uses TLS 1.2 or 1.3 with its own ciphers";
            work.notes.approximated(directive, how);
        }
    }
    if let Some(directive) = scope.one(&module.directive("ssl_password_file")) {
        work.notes
            .left_out(directive, "keys cannot have a password");
    }
}
