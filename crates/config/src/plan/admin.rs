//! How a running server is looked into and changed.

use std::path::PathBuf;

use super::listen::Address;

/// Where the admin interface is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Admin {
    /// On a Unix socket of the process's own, where there is a directory for it.
    #[default]
    Default,
    /// Nowhere.
    Off,
    /// On this Unix socket.
    Unix(PathBuf),
    /// On a TCP address, for who has the token in this file.
    Tcp {
        /// Never a Unix socket's.
        address: Address,
        /// A line of at least 16 visible ASCII characters.
        token_file: PathBuf,
    },
}
