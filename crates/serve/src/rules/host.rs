//! The Host field for servers (RFC 9112 3.2).

use onrush_config::plan::{Piece, Template, Variable};
use onrush_http::is_authority;
use onrush_http::write::HeadWriter;

use crate::routing::variables::VariableValues;
use crate::rules::edits::Edits;

/// Source of the Host field.
#[derive(Debug)]
pub(crate) enum HostRule {
    /// The Host of the client's request.
    Client,
    /// The server's own address.
    Server,
    Set(Template),
}

/// Longest Host that is sent: a host name and a port.
pub(crate) const HOST_BYTES_MAX: usize = 300;

impl HostRule {
    /// Removes the Host from the edits of a route.
    pub(crate) fn take(edits: &mut Edits) -> Self {
        match edits.take("host") {
            (_, Some(template)) => HostRule::Set(template),
            (true, None) => HostRule::Server,
            (false, None) => HostRule::Client,
        }
    }

    /// Number of variables, and bytes of the remaining text.
    pub(crate) fn template_size(&self) -> (usize, usize) {
        let HostRule::Set(template) = self else {
            return (0, HOST_BYTES_MAX);
        };
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Variable(_) => 0,
        };
        (template.0.len(), template.0.iter().map(text).sum())
    }

    pub(crate) fn needs_request_id(&self) -> bool {
        let id = Piece::Variable(Variable::RequestId);
        matches!(self, HostRule::Set(template) if template.0.contains(&id))
    }

    /// Whether the result is a valid host. Variables may be empty, and a field of the client may have any value; a
    /// server that routes by Host must not get an invalid one (RFC 9110 7.2).
    #[inline]
    pub(crate) fn yields_valid_host(&self, facts: &VariableValues<'_>) -> bool {
        match self {
            HostRule::Client | HostRule::Server => true,
            // Checked with the configuration.
            HostRule::Set(template) if template.as_text().is_some() => true,
            HostRule::Set(template) => {
                let mut room = [0; HOST_BYTES_MAX];
                let mut writer = HeadWriter::new(&mut room);
                facts.render(template, &mut |bytes| {
                    writer.raw(bytes);
                });
                writer
                    .finish()
                    .is_some_and(|length| is_authority(&room[..length]))
            }
        }
    }

    /// Writes the Host; `asked` is the client's, if any, and `own` the server's.
    pub(crate) fn write(
        &self,
        asked: Option<&str>,
        own: &str,
        facts: &VariableValues<'_>,
        writer: &mut HeadWriter<'_>,
    ) {
        match self {
            HostRule::Client => {
                writer.raw(asked.unwrap_or(own).as_bytes());
            }
            HostRule::Server => {
                writer.raw(own.as_bytes());
            }
            HostRule::Set(template) => facts.render(template, &mut |bytes| {
                writer.raw(bytes);
            }),
        }
    }
}
