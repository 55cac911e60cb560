//! Text with variables: what header fields and redirects are made of.

/// Text in which `{name}` stands for what is known of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(pub Vec<Piece>);

/// Part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it is.
    Text(String),
    /// What the request says.
    Variable(Variable),
}

/// What is known of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `{client.address}`: the client's IP address, as far as it can be trusted.
    ClientAddress,
    /// `{client.port}`: its port.
    ClientPort,
    /// `{scheme}`: `http` or `https`.
    Scheme,
    /// `{method}`
    Method,
    /// `{host}`: as the client named it, with its port.
    Host,
    /// `{host.name}`: without its port.
    HostName,
    /// `{path}`: as received, without the query.
    Path,
    /// `{path.rest}`: what is left of the path behind the route's prefix.
    PathRest,
    /// `{query}`: without the `?`; empty when there is none.
    Query,
    /// `{uri}`: path and query as received.
    Uri,
    /// `{header:Name}`: the first field of that name; empty when there is none.
    Header(String),
    /// `{tls.version}`: `TLSv1.3`; empty without TLS.
    TlsVersion,
    /// `{tls.cipher}`
    TlsCipher,
    /// `{tls.server_name}`: the name the client asked for (SNI).
    TlsServerName,
    /// `{tls.client_subject}`: of the certificate the client has shown.
    TlsClientSubject,
    /// `{upstream}`: the name of the group that responds; empty when none does.
    Upstream,
    /// `{server}`: the address of the server that responds, as configured. In responses only.
    Server,
    /// `{request_id}`: 32 hexadecimal digits that no other request has.
    RequestId,
}

impl Template {
    /// The text itself, when it has no variables.
    pub fn as_text(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }
}
