//! Health of a group's servers: active checks, and ejection by the outcome of requests.

use std::num::NonZeroU32;
use std::time::Duration;

use super::pattern::Pattern;
use crate::limits;

/// Active checks of each server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Kind of check.
    pub check: Check,
    /// Interval between checks.
    pub interval: Duration,
    /// Timeout of a check.
    pub timeout: Duration,
    /// Consecutive successful checks that mark a server up.
    pub rise: NonZeroU32,
    /// Consecutive failed checks that mark a server down.
    pub fall: NonZeroU32,
    /// Random deviation from the interval, as a percentage of it, at most 50: checks of several load balancers should
    /// not coincide.
    pub jitter: u8,
    /// Port for checks, if it differs from that of requests.
    pub port: Option<u16>,
}

impl Health {
    /// Default settings for a check.
    pub fn of(check: Check) -> Health {
        Health {
            check,
            interval: limits::HEALTH_INTERVAL,
            timeout: limits::HEALTH_TIMEOUT,
            rise: limits::HEALTH_RISE,
            fall: limits::HEALTH_FALL,
            jitter: limits::HEALTH_JITTER,
            port: None,
        }
    }
}

/// Kind of check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// A TCP connection.
    Tcp,
    /// `GET path`.
    Http {
        /// Path; begins with `/`.
        path: String,
        /// Host field; `None` for the server's address.
        host: Option<String>,
        /// Ranges of healthy statuses, inclusive.
        status: Vec<(u16, u16)>,
        /// Pattern to be found in the first 64 KiB of the body.
        body: Option<Pattern>,
    },
    /// `grpc.health.v1.Health/Check` with the expected answer SERVING (gRPC Health Checking Protocol).
    Grpc {
        /// Name of the service; empty for the whole server.
        service: String,
        /// `:authority`; `None` for the server's address.
        host: Option<String>,
    },
}

impl Check {
    /// A gRPC check of the whole server.
    pub(crate) fn of_grpc() -> Check {
        Check::Grpc {
            service: String::new(),
            host: None,
        }
    }
}

/// Ejection of servers by the outcome of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eject {
    /// Failures that count.
    pub on: EjectOn,
    /// Consecutive failures that eject a server.
    pub consecutive_failures: Option<NonZeroU32>,
    /// Percentage of failures in the last ten seconds that ejects a server.
    pub error_share: Option<u8>,
    /// Latency that ejects a server, as a percentage of the other servers' latency (300: three times).
    pub latency_share: Option<u16>,
    /// Time of the first ejection; each further one doubles it, up to five minutes.
    pub time: Duration,
    /// Maximum percentage of ejected servers; one server always stays.
    pub share_max: u8,
}

/// Failures that may eject a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EjectOn {
    /// Connection failures: no connection (one suffices), closed before a response, or no response in time.
    Connections,
    /// Connection failures, invalid or incomplete responses, and statuses from 500 on.
    #[default]
    Responses,
}

impl Default for Eject {
    fn default() -> Eject {
        Eject::on(EjectOn::default())
    }
}

impl Eject {
    /// Default settings for this kind of failures.
    pub fn on(on: EjectOn) -> Eject {
        let (error_share, share_max) = match on {
            EjectOn::Connections => (None, limits::EJECT_SHARE_MAX_OF_CONNECTIONS),
            EjectOn::Responses => (Some(limits::EJECT_ERROR_SHARE), limits::EJECT_SHARE_MAX),
        };
        Eject {
            on,
            consecutive_failures: Some(limits::EJECT_FAILURES),
            error_share,
            latency_share: None,
            time: limits::EJECT_TIME,
            share_max,
        }
    }

    /// Whether failures can eject a server, not only latency.
    pub(crate) fn counts_failures(&self) -> bool {
        self.on == EjectOn::Connections
            || self.consecutive_failures.is_some()
            || self.error_share.is_some()
    }

    /// Maximum number of ejected servers in a group of this size.
    pub(crate) fn max_ejected(&self, servers: usize) -> usize {
        let share = servers * usize::from(self.share_max) / 100;
        share.max(1).min(servers - 1)
    }

    /// Whether no criterion is enabled.
    pub(crate) fn is_idle(&self) -> bool {
        self.on == EjectOn::Responses
            && self.consecutive_failures.is_none()
            && self.error_share.is_none()
            && self.latency_share.is_none()
    }
}
