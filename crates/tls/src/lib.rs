//! Connections as HTTP sees them: bytes in, bytes out, and what lies between them and the socket is settled here.
//!
//! Both sides use it, the server towards its clients and its servers, and the load generator. rustls shakes hands and
//! makes the keys; the records behind the handshake are sealed and opened here, in the engine's buffers.
#![forbid(unsafe_code)]

mod limits;

mod transport;

mod handshake;
mod heard;
mod key_log;
mod session;

mod record;
mod secret;

mod acceptor;
mod connector;
mod verify;

mod certificate;
mod cipher;
mod watch;

mod error;
mod failure;
mod info;
mod version;

pub use acceptor::client_names::{ClientNames, NamedClients};
pub use acceptor::clients::{Authorities, Clients};
pub use acceptor::{Acceptor, Profile, ServerSetup};
pub use certificate::Identity;
pub use certificate::names::Misdirected;
pub use cipher::Cipher;
pub use connector::{ClientSetup, Connector, Group, Resume, Verify};
pub use error::{HandshakeError, Subject, Trouble};
pub use failure::Failure;
pub use info::Info;
pub use transport::Transport;
pub use version::Version;
pub use watch::{Reloaded, Watch, Watched};
