//! Roles on other machines: connections to the machines, and requests to their agents.

mod hosts;

mod clock;
mod connect;
mod connection;
mod slurm;

mod program;
mod report;
mod settings;
mod window;

pub(super) use self::clock::now;
pub(super) use self::hosts::Hosts;
pub(super) use self::program::{RemoteProgram, launch, pin_self, ports};
pub(super) use self::report::texts;
pub(super) use self::settings::apply;
pub(super) use self::window::RemoteWindow;
