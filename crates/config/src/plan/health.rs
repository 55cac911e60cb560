//! How the servers of a group are watched: by asking them, and by what requests meet.

use std::num::NonZeroU32;
use std::time::Duration;

use super::pattern::Pattern;
use crate::limits;

/// Active checks of every server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// What is asked.
    pub check: Check,
    /// From one check to the next.
    pub interval: Duration,
    /// For one check.
    pub timeout: Duration,
    /// Checks in a row that bring a server back.
    pub rise: NonZeroU32,
    /// Failed checks in a row that take a server out.
    pub fall: NonZeroU32,
    /// By how much of the interval checks may be early or late, in percent, so that those of many
    /// balancers do not come at once; at most 50.
    pub jitter: u8,
    /// Another port than that of requests.
    pub port: Option<u16>,
}

impl Health {
    /// Checks with everything else at its default.
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

/// What a check asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Whether it accepts a connection.
    Tcp,
    /// `GET path`.
    Http {
        /// Begins with `/`.
        path: String,
        /// Its Host field; none for the server's address.
        host: Option<String>,
        /// Statuses that are good: ranges, both ends included.
        status: Vec<(u16, u16)>,
        /// What has to be found in the first 64 KiB of the body.
        body: Option<Pattern>,
    },
    /// `grpc.health.v1.Health/Check`, which has to say SERVING (the health checking protocol of gRPC).
    Grpc {
        /// The name of the service that is asked for; an empty one stands for the whole server.
        service: String,
        /// Its `:authority`; none for the server's address.
        host: Option<String>,
    },
}

impl Check {
    /// Asks whether the whole server is SERVING.
    pub(crate) fn of_grpc() -> Check {
        Check::Grpc {
            service: String::new(),
            host: None,
        }
    }
}

/// When a server is taken out for what requests met there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eject {
    /// What counts as a failure.
    pub on: EjectOn,
    /// Failures in a row.
    pub consecutive_failures: Option<NonZeroU32>,
    /// Failures of the last ten seconds' requests, in percent.
    pub error_share: Option<u8>,
    /// So many times slower than the others, in percent (300: three times).
    pub latency_share: Option<u16>,
    /// For how long the first time; each time after that twice as long, up to five minutes.
    pub time: Duration,
    /// How many of the servers may be out, in percent; one always stays.
    pub share_max: u8,
}

/// Which failures may take a server out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EjectOn {
    /// Those of connections: none was made, of which one is enough, or it ended without a response, or none came in time.
    Connections,
    /// Those, and bad responses, responses that stopped, and statuses from 500 on.
    #[default]
    Responses,
}

impl Default for Eject {
    fn default() -> Eject {
        Eject::on(EjectOn::default())
    }
}

impl Eject {
    /// What counts failures of this kind does by default.
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

    /// Whether failures can take a server out by it, and not only slowness.
    pub(crate) fn looks_at_failures(&self) -> bool {
        self.on == EjectOn::Connections
            || self.consecutive_failures.is_some()
            || self.error_share.is_some()
    }

    /// How many of so many servers may be out at the same time.
    pub(crate) fn out_max(&self, servers: usize) -> usize {
        let share = servers * usize::from(self.share_max) / 100;
        share.max(1).min(servers - 1)
    }

    /// Whether it looks at nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.on == EjectOn::Responses
            && self.consecutive_failures.is_none()
            && self.error_share.is_none()
            && self.latency_share.is_none()
    }
}
