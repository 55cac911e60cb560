//! Histograms of a result as strings.

use onrush_measure::histogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::record::figures::Kind;
use crate::record::incomplete_waits::IncompleteWaits;
use crate::record::times::Times;

/// Histograms in nanoseconds as compressed HdrHistogram V2 in Base64, with three significant digits as recorded.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Histograms {
    /// From the intended start of a request to the last byte of its response.
    pub response: String,
    /// From the request being written to the last byte of its response.
    pub service: String,
    /// From the intended start of a request to its being written.
    pub send_lag: String,
    /// From the request being written to the complete head of its response.
    pub first_byte: String,
    /// Connect times.
    pub connect: String,
    /// Times of TLS handshakes.
    pub tls: String,
    /// Response times minus the generator's own delays; `None` in results of versions that did not measure it.
    #[serde(default)]
    pub undelayed: Option<String>,
    /// Waits of requests without a response, since their intended start.
    #[serde(default)]
    pub unanswered: Option<String>,
    /// Waits of requests without a response, since a connection was free for them.
    #[serde(default)]
    pub unanswered_service: Option<String>,
}

impl Histograms {
    /// Encodes histograms.
    pub fn of(times: &Times, unanswered: &IncompleteWaits) -> Histograms {
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

    /// Decodes the histograms of times.
    ///
    /// # Errors
    /// Names the histogram that cannot be decoded.
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

    /// Decodes the waits of requests without a response.
    ///
    /// # Errors
    /// As [`times`](Self::times).
    pub fn unanswered(&self) -> Result<IncompleteWaits, String> {
        Ok(IncompleteWaits {
            response: optional("unanswered", self.unanswered.as_deref())?,
            service: optional("unanswered_service", self.unanswered_service.as_deref())?,
        })
    }
}

/// Decodes a histogram that results of older versions lack.
fn optional(name: &str, text: Option<&str>) -> Result<Histogram, String> {
    text.map_or(Ok(Histogram::new()), |text| {
        Histogram::from_base64(text).map_err(|reason| format!("histograms.{name}: {reason}"))
    })
}
