//! Session stickiness by cookie.

use onrush_http::cookie;
use onrush_http::forwarded::Scheme;
use onrush_http::request::RequestHead;

use super::{Group, NO_SERVER};

impl Group {
    /// Index of the server in the client's cookie, or [`NO_SERVER`].
    pub(crate) fn sticky_server(&self, head: &RequestHead<'_, '_>) -> u32 {
        let named = self.plan.sticky.as_ref().and_then(|sticky| {
            let value = cookie::find(head.headers, &sticky.cookie)?;
            let identity = u64::from_str_radix(str::from_utf8(value).ok()?, 16).ok()?;
            self.servers
                .iter()
                .position(|server| server.identity.get() == identity)
        });
        named.map_or(NO_SERVER, |index| index as u32)
    }

    /// The stickiness cookie of this server for a client that uses `scheme`, if the group has stickiness. With HTTPS it
    /// is `Secure`, so that it is never sent over plain HTTP (RFC 6265 5.4).
    pub(crate) fn cookie(&self, server: u32, scheme: Scheme) -> Option<String> {
        let sticky = self.plan.sticky.as_ref()?;
        let age_max = match sticky.age_max {
            Some(age_max) => format!("; Max-Age={}", age_max.as_secs()),
            None => String::new(),
        };
        let secure = match scheme {
            Scheme::Https => "; Secure",
            Scheme::Http => "",
        };
        let identity = self.server(server).identity.get();
        Some(format!(
            "{}={identity:016x}; Path=/; HttpOnly; SameSite=Lax{age_max}{secure}",
            sticky.cookie
        ))
    }
}
