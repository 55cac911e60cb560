//! Selection of the running server to connect to.

use std::path::PathBuf;

use anyhow::{Context, bail};
use onrush_admin::client::Endpoint;
use onrush_admin::{Token, location};

/// Options that select a server; without them, the only server of this user. They may be given before or after a subcommand.
/// clap checks conflicts between options only within one of these places, so they are checked here.
#[derive(clap::Args)]
pub(crate) struct ServerSelector {
    /// Admin interface: unix:PATH or IP:PORT [default: the only server of this user]
    #[arg(long, value_name = "ADDR", global = true, display_order = 100)]
    address: Option<String>,
    /// Select the server with this process ID
    #[arg(long, value_name = "PID", global = true, display_order = 101)]
    pid: Option<u32>,
    /// File with the token, for an admin interface on a TCP address
    #[arg(long, value_name = "FILE", global = true, display_order = 102)]
    token_file: Option<PathBuf>,
}

/// Why no server could be selected, with the exit code.
pub(crate) struct SelectionError {
    pub(crate) code: u8,
    pub(crate) why: anyhow::Error,
}

impl ServerSelector {
    /// Address of the server's admin interface.
    ///
    /// # Errors
    /// If no interface or more than one is found, or if the flags are invalid.
    pub(crate) fn place(&self) -> Result<Endpoint, SelectionError> {
        self.check()
            .map_err(|why| SelectionError { code: 1, why })?;
        if let Some(text) = &self.address {
            return self
                .addressed(text)
                .map_err(|why| SelectionError { code: 1, why });
        }
        if let Some(process) = self.pid {
            return Ok(Endpoint::Unix(location::socket_of(process)));
        }
        let mut all = location::live_sockets();
        if let (Some((_, path)), true) = (all.pop(), all.is_empty()) {
            return Ok(Endpoint::Unix(path));
        }
        let processes: Vec<String> = location::live_sockets()
            .iter()
            .map(|(process, _)| process.to_string())
            .collect();
        Err(match processes.is_empty() {
            true => SelectionError {
                code: 2,
                why: anyhow::anyhow!(
                    "no server of this user has an admin socket in {}: pass --address, or run as the user of the server",
                    location::directory().display()
                ),
            },
            false => SelectionError {
                code: 1,
                why: anyhow::anyhow!(
                    "several servers are running: expected --pid with one of {}",
                    processes.join(", ")
                ),
            },
        })
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.address.is_some() && self.pid.is_some() {
            bail!("--address and --pid both select a server: use only one");
        }
        if self.token_file.is_some() && self.address.is_none() {
            bail!("--token-file needs --address IP:PORT: Unix sockets need no token");
        }
        Ok(())
    }

    fn addressed(&self, text: &str) -> anyhow::Result<Endpoint> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Endpoint::Unix(path.into()));
        }
        let address = text
            .parse()
            .with_context(|| format!("--address {text:?}: expected unix:PATH or IP:PORT"))?;
        let token = self.token_file.as_deref().map(|path| {
            Token::read(path).with_context(|| format!("--token-file {}", path.display()))
        });
        Ok(Endpoint::Tcp(address, token.transpose()?))
    }
}
