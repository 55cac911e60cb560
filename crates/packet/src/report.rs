//! Questions about a flow, and reports in response. A report is never longer than its question, so a sink cannot be
//! used for a traffic amplification attack.
//!
//! ```text
//!  header (18) | received 8 | bytes 8 | duplicated 8 | reordered 8 | too late 8 | next 8 | jitter, nanoseconds 8
//!              | dropped 8 | receiver's CPU time, nanoseconds 8 | core 2 | answers 1 | nothing 5
//! ```

use crate::header::{Flow, HEADER_BYTES, Header, Kind};
use crate::tally::FlowCounters;

/// Length of a report, and minimum length of a question.
pub const REPORT_BYTES: usize = HEADER_BYTES + 9 * 8 + 8;

/// Treatment of test datagrams by the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Counts them.
    Sink,
    /// Counts them and sends them back.
    Echo,
}

/// Report of a receiver about one flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Report {
    /// The flow.
    pub flow: Flow,
    /// Number of the question.
    pub report_request: u32,
    /// Counters of the flow.
    pub tally: FlowCounters,
    /// Number of datagrams of all flows dropped because the socket's receive buffer was full, since the socket was
    /// created (SO_RXQ_OVFL, socket(7)). The kernel reports the count with the next datagram that it queues.
    pub dropped: u64,
    /// CPU time of the thread that owns the socket since its start, in nanoseconds.
    pub cpu: u64,
    /// Number of that thread's core in its process. Flows of one core share a socket and a thread.
    pub core: u16,
    /// Role of the receiver.
    pub role: Role,
}

/// Encodes a question about a flow, with the minimum length.
pub fn report_request(flow: Flow, number: u32) -> [u8; REPORT_BYTES] {
    let header = Header {
        kind: Kind::ReportRequest,
        flow,
        sequence: number,
        sent: 0,
    };
    let mut bytes = [0; REPORT_BYTES];
    bytes[..HEADER_BYTES].copy_from_slice(&header.bytes());
    bytes
}

/// Decodes a question into flow and number. `None` if the datagram is not a question, or is shorter than a report.
pub fn read_report_request(datagram: &[u8]) -> Option<(Flow, u32)> {
    let header = Header::read(datagram)?;
    match header.kind {
        Kind::ReportRequest if datagram.len() >= REPORT_BYTES => {
            Some((header.flow, header.sequence))
        }
        Kind::ReportRequest | Kind::Data | Kind::Report => None,
    }
}

impl Report {
    /// Encodes the report.
    pub fn bytes(&self) -> [u8; REPORT_BYTES] {
        let header = Header {
            kind: Kind::Report,
            flow: self.flow,
            sequence: self.report_request,
            sent: 0,
        };
        let FlowCounters {
            received,
            bytes: payload,
            duplicated,
            reordered,
            too_late,
            next,
            jitter,
        } = self.tally;
        let numbers = [
            received,
            payload,
            duplicated,
            reordered,
            too_late,
            next,
            jitter.to_bits(),
            self.dropped,
            self.cpu,
        ];
        let mut bytes = [0; REPORT_BYTES];
        bytes[..HEADER_BYTES].copy_from_slice(&header.bytes());
        let (body, rest) = bytes[HEADER_BYTES..].as_chunks_mut::<8>();
        debug_assert!(rest.is_empty());
        for (place, number) in body.iter_mut().zip(numbers) {
            *place = number.to_be_bytes();
        }
        let last = body.last_mut().expect("a report has ten numbers");
        last[..2].copy_from_slice(&self.core.to_be_bytes());
        last[2] = match self.role {
            Role::Sink => 0,
            Role::Echo => 1,
        };
        bytes
    }

    /// Decodes a report. `None` if the datagram is not one.
    pub fn read(datagram: &[u8]) -> Option<Report> {
        let header = Header::read(datagram)?;
        let whole: &[u8; REPORT_BYTES] = datagram.try_into().ok()?;
        let (body, _) = whole[HEADER_BYTES..].as_chunks::<8>();
        let number = |at: usize| u64::from_be_bytes(body[at]);
        let role = match body[9][2] {
            0 => Role::Sink,
            1 => Role::Echo,
            _ => return None,
        };
        let jitter = f64::from_bits(number(6));
        match header.kind {
            Kind::Report if jitter.is_finite() => {}
            Kind::Report | Kind::Data | Kind::ReportRequest => return None,
        }
        Some(Report {
            flow: header.flow,
            report_request: header.sequence,
            tally: FlowCounters {
                received: number(0),
                bytes: number(1),
                duplicated: number(2),
                reordered: number(3),
                too_late: number(4),
                next: number(5),
                jitter,
            },
            dropped: number(7),
            cpu: number(8),
            core: u16::from_be_bytes([body[9][0], body[9][1]]),
            role,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FLOW: Flow = Flow { run: 7, number: 3 };

    #[test]
    fn report_request_is_as_long_as_report() {
        let asked = report_request(FLOW, 9);
        assert_eq!(read_report_request(&asked), Some((FLOW, 9)));
        assert_eq!(read_report_request(&asked[..REPORT_BYTES - 1]), None);
        assert_eq!(Report::read(&asked), None);
    }

    proptest! {
        #[test]
        fn report_round_trips(numbers: [u64; 8], jitter in 0.0..1e12f64, core: u16, echoes: bool) {
            let [received, bytes, duplicated, reordered, too_late, next, dropped, cpu] = numbers;
            let tally = FlowCounters { received, bytes, duplicated, reordered, too_late, next, jitter };
            let role = if echoes { Role::Echo } else { Role::Sink };
            let report = Report { flow: FLOW, report_request: 4, tally, dropped, cpu, core, role };
            prop_assert_eq!(Report::read(&report.bytes()), Some(report));
        }

        #[test]
        fn arbitrary_report_bytes_round_trip_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            if let Some(report) = Report::read(&bytes) {
                prop_assert_eq!(Report::read(&report.bytes()), Some(report));
            }
        }
    }
}
