//! The histograms of a result as text.

use onrush_measure::histogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::record::figures::Kind;
use crate::record::times::Times;
use crate::record::unanswered::Unanswered;

/// Histograms in nanoseconds as HdrHistogram V2, compressed, in Base64; three significant digits, as they were recorded.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Histograms {
    /// From the intended start of a request to the last byte of its response.
    pub response: String,
    /// From written to the last byte.
    pub service: String,
    /// From the intended start to written.
    pub send_lag: String,
    /// From written to the end of the head.
    pub first_byte: String,
    /// Of connections: being made.
    pub connect: String,
    /// Of connections: the TLS handshake.
    pub tls: String,
    /// The response times without what the generator itself added to them; none in results of versions that did not
    /// measure it.
    #[serde(default)]
    pub undelayed: Option<String>,
    /// How long requests without a response had waited since their intended start.
    #[serde(default)]
    pub unanswered: Option<String>,
    /// The same since a connection was free for them.
    #[serde(default)]
    pub unanswered_service: Option<String>,
}

impl Histograms {
    /// The text of these times.
    pub fn of(times: &Times, unanswered: &Unanswered) -> Histograms {
        let text = |kind| times.of(kind).to_base64();
        Histograms {
            response: text(Kind::Response),
            service: text(Kind::Service),
            send_lag: text(Kind::SendLag),
            first_byte: text(Kind::FirstByte),
            connect: text(Kind::Connect),
            tls: text(Kind::Tls),
            undelayed: Some(times.undelayed.to_base64()),
            unanswered: Some(unanswered.response.to_base64()),
            unanswered_service: Some(unanswered.service.to_base64()),
        }
    }

    /// The times of this text.
    ///
    /// # Errors
    /// Says which of them is something else.
    pub fn times(&self) -> Result<Times, String> {
        let mut times = Times::default();
        for kind in Kind::ALL {
            let text = match kind {
                Kind::Response => &self.response,
                Kind::Service => &self.service,
                Kind::SendLag => &self.send_lag,
                Kind::FirstByte => &self.first_byte,
                Kind::Connect => &self.connect,
                Kind::Tls => &self.tls,
            };
            *times.of_mut(kind) = Histogram::from_base64(text)
                .map_err(|reason| format!("histograms.{}: {reason}", kind.name()))?;
        }
        times.undelayed = optional("undelayed", self.undelayed.as_deref())?;
        Ok(times)
    }

    /// The waits of requests without a response.
    ///
    /// # Errors
    /// As [`times`](Self::times).
    pub fn unanswered(&self) -> Result<Unanswered, String> {
        Ok(Unanswered {
            response: optional("unanswered", self.unanswered.as_deref())?,
            service: optional("unanswered_service", self.unanswered_service.as_deref())?,
        })
    }
}

/// A histogram that older versions did not write.
fn optional(name: &str, text: Option<&str>) -> Result<Histogram, String> {
    text.map_or(Ok(Histogram::new()), |text| {
        Histogram::from_base64(text).map_err(|reason| format!("histograms.{name}: {reason}"))
    })
}
