//! Roles on other machines: connections to the machines, and requests to their agents.

mod hosts;

mod clock;
mod connection;
mod reach;
mod slurm;

mod program;
mod report;
mod settings;
mod window;

pub(super) use self::clock::now;
pub(super) use self::hosts::Hosts;
pub(super) use self::program::{Distant, launch, ports, step_aside};
pub(super) use self::report::texts;
pub(super) use self::settings::apply;
pub(super) use self::window::RemoteWindow;
