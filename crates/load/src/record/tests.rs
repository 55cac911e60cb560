//! Counters and their sums.

use onrush_measure::histogram::Histogram;

use super::*;
use crate::protocol::http1::OUTCOMES;

fn status(status: u16) -> Outcome {
    Outcome {
        number: status - 100,
        class: (status / 100 - 1) as u8,
    }
}

const TOOK: ResponseTimes = ResponseTimes {
    send_lag: 1,
    first_byte: 9,
    service: 19,
    response: 20,
    own: 0,
};

#[test]
fn responses_and_failures_equal_finished_requests() {
    let mut record = Record::new(&OUTCOMES);
    record.responded((status(200), 1), &TOOK, Measured::Yes);
    record.responded((status(404), 1), &TOOK, Measured::No);
    record.failed(Failure::Reset, 3);
    record.count(Failure::ConnectRefused, 2);
    record.flush_times();
    assert_eq!((record.tally.requests, record.responses()), (5, 2));
    assert_eq!(record.tally.errors, 5);
    assert_eq!(record.tally.first_byte_sum_ns, 20);
    assert_eq!((record.times.response.count(), record.unmeasured), (1, 1));
    assert_eq!(record.connect_failures(), 2);
    let said = [("200".to_owned(), 1), ("404".to_owned(), 1)];
    assert_eq!(record.outcome_counts().collect::<Vec<_>>(), said);
    assert_eq!(record.refusals(), 1);
    assert_eq!(record.tally.statuses, [0, 1, 0, 1, 0]);
}

#[test]
fn responses_with_equal_times_are_all_measured() {
    let slow = ResponseTimes {
        response: 90,
        own: 40,
        ..TOOK
    };
    let mut record = Record::new(&OUTCOMES);
    for took in [TOOK, TOOK, TOOK, slow, TOOK, slow, slow] {
        record.responded((status(200), 1), &took, Measured::Yes);
    }
    record.flush_times();
    record.flush_times();
    let times = &record.times;
    assert!(times.is_consistent(7));
    let counts = |times: &Histogram| times.recorded().collect::<Vec<_>>();
    assert_eq!(counts(&times.response), [(20, 4), (90, 3)]);
    assert_eq!(counts(&times.undelayed), [(20, 4), (50, 3)]);
    assert_eq!(counts(&times.service), [(19, 7)]);
}

#[test]
fn merge_adds_records() {
    let mut sum = Record::new(&OUTCOMES);
    for _ in 0..2 {
        let mut record = Record::new(&OUTCOMES);
        record.responded((status(999), 1), &TOOK, Measured::Yes);
        record.failed(Failure::Other, 1);
        record.resent = 4;
        record.established = 2;
        sum.merge(&record);
    }
    assert_eq!((sum.responses(), sum.tally.errors, sum.resent), (2, 2, 8));
    assert_eq!(sum.established, 4);
    assert!(sum.times.is_consistent(2));
    assert_eq!(sum.failures_of(Failure::Other), 2);
    assert_eq!(
        sum.outcome_counts().collect::<Vec<_>>(),
        [("999".to_owned(), 2)]
    );
    assert_eq!(sum.tally.statuses, [0; 5]);
}
