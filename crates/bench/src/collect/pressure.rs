//! Pressure stall information (Documentation/accounting/psi.rst of the kernel).

use std::time::Duration;

use onrush_machine::pressure::stalls;

use super::counters::{Count, Counters};

/// Resources, by their files below `/proc/pressure`.
pub const RESOURCES: [&str; 3] = ["cpu", "memory", "io"];

/// Reads the file of a resource: `RESOURCE_some_waiting` is the time in which at least one thread waited,
/// `RESOURCE_full_waiting` the time in which all non-idle threads waited.
pub fn pressure(resource: &str, subject: &str, text: &str, counters: &mut Counters) {
    let times = stalls(text).map(|(kind, us)| {
        let time = Count::Time(Duration::from_micros(us));
        (format!("{resource}_{kind}_waiting"), time)
    });
    counters.add(subject, times);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_and_full_pressure_are_read() {
        let text = "some avg10=75.05 avg60=64.27 avg300=31.60 total=137673693\n\
            full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
        let mut counters = Counters::default();
        pressure("cpu", "pressure", text, &mut counters);
        pressure(
            "io",
            "pressure",
            "some avg10=0.00 total=\nnothing\n",
            &mut counters,
        );
        let at = |measure| counters.at("pressure", measure);
        let time = |us| Some(Count::Time(Duration::from_micros(us)));
        assert_eq!(at("cpu_some_waiting"), time(137_673_693));
        assert_eq!(at("cpu_full_waiting"), time(12));
        assert_eq!(at("io_some_waiting"), None);
    }
}
