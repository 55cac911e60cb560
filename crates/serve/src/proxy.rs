//! Forwarding requests to groups of servers.

pub(crate) mod forward;

mod download;
mod failure;
mod relay;
mod rewrite;
mod upload;

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "groups cannot be configured for all policies yet")
)]
mod balance;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "groups do not limit retries yet")
)]
mod budget;
mod chance;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "groups do not take servers out yet")
)]
mod eject;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "no group measures latencies yet")
)]
mod ewma;
pub(crate) mod group;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "groups do not check their servers yet")
)]
mod health;
mod pool;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "servers do not come up later yet")
)]
mod slow_start;
mod window;

pub(crate) use group::Group;
