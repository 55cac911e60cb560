//! What responds in a location that serves no files: a server that is forwarded to, or something that Onrush does not have.

use super::known;
use super::scope::Scope;
use crate::source::directive::Directive;

/// What Onrush has nothing for.
const FOREIGN: [&str; 8] = [
    "fastcgi_pass",
    "uwsgi_pass",
    "scgi_pass",
    "memcached_pass",
    "stub_status",
    "content_by_lua_block",
    "content_by_lua_file",
    "empty_gif",
];

/// Beginnings of directives that change or describe a response and never make one. A directive of a location that is neither
/// here nor known otherwise may belong to a module that responds in its place.
const NO_HANDLERS: [&str; 95] = [
    "access",
    "add_",
    "addition_",
    "aio",
    "alias",
    "allow",
    "ancient_browser",
    "auth_",
    "autoindex",
    "body_filter_by_",
    "break",
    "brotli",
    "charset",
    "chunked_",
    "client_",
    "connection_",
    "create_full_",
    "dav_",
    "default_type",
    "deny",
    "directio",
    "disable_",
    "error_",
    "etag",
    "expires",
    "f4f",
    "fancyindex",
    "fastcgi_",
    "flv",
    "geo",
    "grpc_",
    "gunzip",
    "gzip",
    "header",
    "health_check",
    "http2",
    "http3",
    "if",
    "ignore_",
    "image_filter",
    "include",
    "index",
    "internal",
    "js_",
    "keepalive",
    "large_",
    "limit_",
    "lingering_",
    "location",
    "log_",
    "lua_",
    "max_",
    "memcached_",
    "merge_",
    "min_",
    "mirror",
    "modern_browser",
    "modsecurity",
    "more_",
    "mp4",
    "msie_",
    "open",
    "otel_",
    "output_",
    "override_",
    "pagespeed",
    "perl_",
    "port_",
    "post",
    "proxy_",
    "quic_",
    "random_index",
    "read_ahead",
    "real_ip",
    "recursive_",
    "request_",
    "reset_",
    "resolver",
    "return",
    "rewrite",
    "root",
    "satisfy",
    "scgi_",
    "secure_link",
    "send",
    "server_",
    "set",
    "slice",
    "source_",
    "ssi",
    "ssl_",
    "sub",
    "tcp_",
    "uwsgi_",
    "xslt",
];

/// Further such directives, by full names, since a prefix would match too many.
const NO_HANDLERS_WHOLE: [&str; 12] = [
    "session_log",
    "status_zone",
    "testcookie",
    "try_files",
    "types",
    "types_hash_bucket_size",
    "types_hash_max_size",
    "underscores_in_headers",
    "uninitialized_variable_warn",
    "userid",
    "valid_referers",
    "zstd",
];

/// What has another server respond: nginx redirects to the slash at the end of such a location.
pub(super) const PASSES: [&str; 6] = [
    "proxy_pass",
    "grpc_pass",
    "fastcgi_pass",
    "uwsgi_pass",
    "scgi_pass",
    "memcached_pass",
];

/// A module of nginx that forwards by HTTP. What each of them says of its servers has the same words behind its own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Module {
    /// `proxy_pass`, by HTTP/1.
    Proxy,
    /// `grpc_pass`, by HTTP/2.
    Grpc,
}

impl Module {
    /// The one that forwards here, whose directives count; that of `proxy_pass` where none does.
    pub(super) fn of(scope: &Scope<'_>) -> Module {
        match Handler::of(scope) {
            Some(Handler::Forward(module, _)) => module,
            Some(Handler::Foreign(_)) | None => Module::Proxy,
        }
    }

    /// The name of its own directive: `proxy_ssl_name` or `grpc_ssl_name` for `ssl_name`.
    pub(super) fn directive(self, name: &str) -> String {
        match self {
            Module::Proxy => format!("proxy_{name}"),
            Module::Grpc => format!("grpc_{name}"),
        }
    }
}

/// What responds, with the directive that says so.
#[derive(Clone, Copy, Debug)]
pub(super) enum Handler<'a> {
    Forward(Module, &'a Directive),
    Foreign(&'a Directive),
}

impl<'a> Handler<'a> {
    /// A directive of the location itself that the converter does not know and that may respond there.
    pub(super) fn unknown(scope: &Scope<'a>) -> Option<&'a Directive> {
        scope
            .own_level()
            .find(|directive| may_respond(directive.name()))
    }

    /// Of several the last of the innermost, as the one sets the other aside in nginx.
    pub(super) fn of(scope: &Scope<'a>) -> Option<Handler<'a>> {
        let names = [&FOREIGN[..], &["proxy_pass", "grpc_pass"]].concat();
        let directive = scope.own_of(&names)?;
        Some(match directive.name() {
            "proxy_pass" => Handler::Forward(Module::Proxy, directive),
            "grpc_pass" => Handler::Forward(Module::Grpc, directive),
            _ => Handler::Foreign(directive),
        })
    }
}

fn may_respond(name: &str) -> bool {
    if name.ends_with("_pass") || matches!(name, "js_content" | "perl") {
        return true;
    }
    let is_known = NO_HANDLERS.iter().any(|begin| name.starts_with(begin))
        || NO_HANDLERS_WHOLE.contains(&name);
    !is_known && !known::is_known(name)
}
