//! Text with variables, for header fields and redirects.

/// Text in which `{name}` is replaced by a property of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(pub Vec<Piece>);

/// Piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// Property of the request.
    Variable(Variable),
}

/// Property of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `{client.address}`: IP address of the client, from trusted proxies if they send one.
    ClientAddress,
    /// `{client.port}`: port of the client.
    ClientPort,
    /// `{scheme}`: `http` or `https`.
    Scheme,
    /// `{method}`
    Method,
    /// `{host}`: as sent by the client, with port.
    Host,
    /// `{host.name}`: without port.
    HostName,
    /// `{path}`: as received, without the query.
    Path,
    /// `{path.rest}`: the path after the route's prefix.
    PathRest,
    /// `{query}`: without the `?`; may be empty.
    Query,
    /// `{uri}`: path and query as received.
    Uri,
    /// `{header:Name}`: the first field of this name; may be empty.
    Header(String),
    /// `{tls.version}`: `TLSv1.3`; empty without TLS.
    TlsVersion,
    /// `{tls.cipher}`
    TlsCipher,
    /// `{tls.server_name}`: the server name requested by the client (SNI).
    TlsServerName,
    /// `{tls.client_subject}`: subject of the client's certificate.
    TlsClientSubject,
    /// `{upstream}`: name of the group; empty if the request is not forwarded.
    Upstream,
    /// `{server}`: configured address of the server that responds. In responses only.
    Server,
    /// `{request_id}`: unique identifier of 32 hexadecimal digits.
    RequestId,
}

impl Template {
    /// The text of a template without variables.
    pub fn as_text(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }
}
