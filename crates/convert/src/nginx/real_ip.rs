//! `real_ip_header` and `set_real_ip_from`: the senders whose word about a client's address counts.

use super::scope::Scope;
use super::work::Work;
use crate::condition::network;
use crate::directive::Directive;

/// Whether the result takes the client's address from the PROXY header where nginx does not.
pub(super) fn believes_header(scope: &Scope<'_>) -> bool {
    let is_with = |listen: &&Directive| {
        let mut options = listen.arguments().iter();
        options.any(|option| option == "proxy_protocol")
    };
    let header = scope.value("real_ip_header");
    !header.eq_ignore_ascii_case("proxy_protocol") && scope.all("listen").iter().any(is_with)
}

/// The networks of `set_real_ip_from`.
pub(super) fn trusted<'a>(work: &mut Work<'a>, scope: &Scope<'a>) -> Vec<String> {
    let mut networks = Vec::new();
    for directive in scope.all("set_real_ip_from") {
        match network(directive.argument(0)) {
            Some(network) => {
                work.notes.carried(directive);
                networks.push(network);
            }
            None => {
                let why = "Onrush trusts networks, not names or sockets";
                work.notes.left_out(directive, why);
            }
        }
    }
    networks
}
