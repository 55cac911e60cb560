//! Content handlers of a location: forwarding to a server, or a handler that Onrush does not have.

use super::known;
use super::scope::Scope;
use crate::source::directive::Directive;

/// Handlers that Onrush does not have.
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

/// Prefixes of directives that are not content handlers. Any other unknown directive of a location may belong to a
/// module that generates the response.
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

/// Further directives that are not content handlers, by full names because a prefix would match too many.
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

/// Directives that forward to a server: nginx redirects to the path with a slash at the end of such a location.
pub(super) const PASSES: [&str; 6] = [
    "proxy_pass",
    "grpc_pass",
    "fastcgi_pass",
    "uwsgi_pass",
    "scgi_pass",
    "memcached_pass",
];

/// A module that forwards over HTTP. The directives of both modules differ only in their prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Module {
    /// `proxy_pass`, by HTTP/1.
    Proxy,
    /// `grpc_pass`, by HTTP/2.
    Grpc,
}

impl Module {
    /// The module that forwards in this scope; [`Module::Proxy`] if none does.
    pub(super) fn of(scope: &Scope<'_>) -> Module {
        match Handler::of(scope) {
            Some(Handler::Forward(module, _)) => module,
            Some(Handler::Foreign(_)) | None => Module::Proxy,
        }
    }

    /// The module's directive for `name`: `proxy_ssl_name` or `grpc_ssl_name` for `ssl_name`.
    pub(super) fn directive(self, name: &str) -> String {
        match self {
            Module::Proxy => format!("proxy_{name}"),
            Module::Grpc => format!("grpc_{name}"),
        }
    }
}

/// A content handler, with its directive.
#[derive(Clone, Copy, Debug)]
pub(super) enum Handler<'a> {
    Forward(Module, &'a Directive),
    Foreign(&'a Directive),
}

impl<'a> Handler<'a> {
    /// A directive of the location itself that the converter does not know and that may be a content handler.
    pub(super) fn unknown(scope: &Scope<'a>) -> Option<&'a Directive> {
        scope
            .own_level()
            .find(|directive| may_respond(directive.name()))
    }

    /// The content handler of a location. The last directive on the innermost level takes precedence, as in nginx.
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
