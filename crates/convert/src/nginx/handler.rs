//! What responds in a location that serves no files: a server that is forwarded to, or something that Onrush does not have.

use super::scope::Scope;
use crate::directive::Directive;

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
