//! Admin interface of a running server.

use std::path::PathBuf;

use super::listen::Address;

/// Address of the admin interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Admin {
    /// A Unix socket in the default directory, if there is one.
    #[default]
    Default,
    /// No admin interface.
    Off,
    /// This Unix socket.
    Unix(PathBuf),
    /// A TCP address with a token.
    Tcp {
        /// Never a Unix socket.
        address: Address,
        /// File with the token, a line of at least 16 visible ASCII characters.
        token_file: PathBuf,
    },
}
