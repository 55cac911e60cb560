//! The report as text.

use std::fmt;

use onrush_measure::units;

use super::{Report, classes, journeys};
use crate::limits::{BUSY_DURATION_MIN, OWN_MIN_US, OWN_SHARE_SUSPECT};

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "requests     {} in {:.2} s: {}, {} ({})",
            units::count(self.requests),
            self.duration_s,
            units::rate(self.rps),
            units::bytes(self.bytes_per_s) + "/s",
            units::bits_per_s(self.bytes_per_s),
        )?;
        writeln!(out, "errors       {}", self.errors_line())?;
        writeln!(out, "statuses     {}", self.statuses_line())?;
        for lookup in &self.dns {
            writeln!(out, "{lookup}")?;
        }
        if let Some(memcached) = &self.memcached {
            write!(out, "{memcached}")?;
        }
        if let Some(line) = self.clock_line() {
            writeln!(out, "started      {line}")?;
        }
        if self.unfinished > 0 {
            writeln!(
                out,
                "unfinished   {} without a response at the end; {} of the responses were received in the half second \
                 after it",
                units::plural(self.unfinished, "request"),
                units::count(self.late)
            )?;
        }
        self.write_connections(out)?;
        self.write_times(out)?;
        classes::write(out, &self.by_class)?;
        self.write_kinds(out)?;
        journeys::write(out, self.setup.as_ref(), &self.journeys)?;
        if let Some(cpu_us) = self.cpu_us_per_request {
            let shares: Vec<String> = self
                .cores
                .iter()
                .map(|core| format!("{:.0} %", core.share * 100.0))
                .collect();
            let busy = match self.duration_s < BUSY_DURATION_MIN.as_secs_f64() {
                // CPU time is counted in steps that may be longer than the run.
                true => "the run was too short to measure the CPU use of threads".to_owned(),
                false => format!("threads busy {}", shares.join(", ")),
            };
            writeln!(out, "own CPU      {cpu_us:.2} us per request; {busy}")?;
        }
        for outcome in &self.thresholds {
            writeln!(out, "{outcome}")?;
        }
        write!(out, "{}", self.verdict)?;
        self.other_warnings()
            .iter()
            .try_for_each(|warning| writeln!(out, "warning: {warning}"))
    }
}

impl Report {
    /// Writes the number of connections, the ports in use, and TLS.
    fn write_connections(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "connections  {}", units::count(self.connections))?;
        let again = [
            (
                self.resent_after_close(),
                "the server closed the connection",
            ),
            (self.refused, "the server refused a stream"),
        ];
        for (requests, what) in again.iter().filter(|(requests, _)| *requests > 0) {
            let requests = units::plural(*requests, "request");
            write!(out, "; {requests} sent again after {what}")?;
        }
        let connect_us = self.connect_us.mean.unwrap_or_default();
        if let Some(own) = own_part(self.connect_own_us.unwrap_or_default(), connect_us) {
            let mean = units::nanoseconds(connect_us * 1000.0);
            write!(out, "; opened in {mean} on average, {own}")?;
        }
        writeln!(out)?;
        self.write_ports(out)?;
        if let Some(tls) = &self.tls {
            writeln!(
                out,
                "TLS          {}, {} resumed, mean {}{}; {} {}",
                units::plural(tls.handshakes, "handshake"),
                units::count(tls.resumed),
                units::nanoseconds(tls.mean_us * 1000.0),
                own_part(tls.own_us, tls.mean_us).map_or(String::new(), |own| format!(", {own}")),
                tls.version,
                tls.cipher,
            )?;
        }
        Ok(())
    }

    /// Writes the three latencies side by side: response time, service time and send lag.
    fn write_times(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.latency_us.mean.is_none() {
            return Ok(());
        }
        let time = |us: f64| units::nanoseconds(us * 1000.0);
        let all = [&self.latency_us, &self.service_us, &self.send_lag_us];
        let columns = |name: &str| {
            all.map(|latency| format!("{:>9}", latency.text(name, "-", time)))
                .join(" ")
        };
        writeln!(
            out,
            "latency       response   service  send lag  95 % interval of response"
        )?;
        writeln!(out, "       mean  {}", columns("mean"))?;
        for (percentile, _) in &self.latency_us.percentiles {
            let interval = self.latency_us.interval(percentile);
            let interval = interval.map_or(String::new(), |interval| {
                format!("  {}", interval.text(time))
            });
            writeln!(
                out,
                "  {percentile:>7} %  {}{interval}",
                columns(percentile)
            )?;
        }
        writeln!(out, "        max  {}", columns("max"))?;
        let lost = self.unanswered.response.count();
        if lost == 0 {
            return Ok(());
        }
        let all = lost + self.times.response.count();
        writeln!(
            out,
            "no response  {} of {}: percentiles count each as longer than it had waited; the mean excludes them",
            units::count(lost),
            units::plural(all, "request")
        )
    }

    /// Writes the use of local ports, if it was read.
    fn write_ports(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(ports) = &self.ports else {
            return Ok(());
        };
        writeln!(
            out,
            "ports        {} of {}; connections in TIME_WAIT: {} before, {} at the end",
            units::plural(ports.local, "local port"),
            match ports.addresses {
                1 => "one address".to_owned(),
                more => format!("each of {} addresses", units::count(more)),
            },
            units::count(ports.time_wait_before),
            units::count(ports.time_wait_after),
        )
    }

    fn write_kinds(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.by_request.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "requests    responses  unexpected      mean       p50       p99       max"
        )?;
        for row in &self.by_request {
            let time = |name: &str| {
                let latency = &row.latency_us;
                latency.text(name, "-", |us| units::nanoseconds(us * 1000.0))
            };
            writeln!(
                out,
                "{:>21}  {:>10} {:>9} {:>9} {:>9} {:>9}  {}",
                units::count(row.requests),
                units::count(row.unexpected),
                time("mean"),
                time("50"),
                time("99"),
                time("max"),
                row.name,
            )?;
        }
        Ok(())
    }

    /// Start and accuracy of the clock, if a start was configured or several generators started together.
    fn clock_line(&self) -> Option<String> {
        let clock = &self.clock;
        let started = clock.started_at.as_ref()?;
        let is_of_interest = clock.start_asked.is_some()
            || clock.spread_us.is_some()
            || self.options.shard.is_some();
        let time = |us: f64| units::nanoseconds(us * 1000.0);
        let state = match clock.synchronized {
            None => "of unknown synchronization",
            Some(false) => "that is not synchronized",
            Some(true) => "that is synchronized",
        };
        let spread = clock.spread_us.map_or(String::new(), |us| {
            format!(", the last within {} of the first,", time(us))
        });
        let wrong = match (clock.synchronized, clock.offset_us, clock.error_max_us) {
            (Some(true), Some(offset), Some(most)) => {
                let sign = if offset < 0.0 { "-" } else { "" };
                format!(
                    " (offset {sign}{}, error at most {})",
                    time(offset.abs()),
                    time(most)
                )
            }
            (Some(true), None, Some(most)) => format!(" (error at most {})", time(most)),
            _ => String::new(),
        };
        is_of_interest.then(|| format!("{started}{spread} by a clock {state}{wrong}"))
    }

    fn errors_line(&self) -> String {
        let kinds: Vec<String> = self
            .errors_by_kind
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(kind, count)| format!("{kind} {}", units::count(*count)))
            .collect();
        match kinds.len() {
            0 => "0".to_owned(),
            _ => format!("{}: {}", units::count(self.errors), kinds.join(", ")),
        }
    }

    fn statuses_line(&self) -> String {
        let statuses: Vec<String> = self
            .statuses
            .iter()
            .map(|(status, count)| format!("{status}: {}", units::count(*count)))
            .collect();
        match statuses.len() {
            0 => "none".to_owned(),
            _ => statuses.join(", "),
        }
    }
}

/// Returns a note on a mean time of connections whose own part is large; `None` if it is small.
fn own_part(own_us: f64, mean_us: f64) -> Option<String> {
    let share = own_us / mean_us.max(f64::MIN_POSITIVE);
    let is_told = share > OWN_SHARE_SUSPECT && own_us > OWN_MIN_US;
    is_told.then(|| {
        format!(
            "up to {:.0} % of it in the generator's own queue",
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::rows::TlsRow;

    #[test]
    fn resent_requests_are_reported_by_cause() {
        for (resent, refused, expected) in [
            (0, 0, "connections  3\n"),
            (
                2,
                0,
                "connections  3; 2 requests sent again after the server closed the connection\n",
            ),
            (
                1,
                1,
                "connections  3; 1 request sent again after the server refused a stream\n",
            ),
            (
                5,
                4,
                "connections  3; 1 request sent again after the server closed the connection; 4 requests sent again after the server refused a stream\n",
            ),
        ] {
            let report = Report {
                connections: 3,
                resent,
                refused,
                ..Report::default()
            };
            let text = report.to_string();
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn generator_share_of_connect_time_is_reported() {
        let text = |mean_us, own_us| {
            let mut report = Report {
                connections: 50,
                connect_own_us: Some(own_us),
                tls: Some(TlsRow {
                    handshakes: 50,
                    mean_us,
                    own_us,
                    ..TlsRow::default()
                }),
                ..Report::default()
            };
            report.connect_us.mean = Some(mean_us);
            report.to_string()
        };
        let told = text(1500.0, 1200.0);
        for expected in [
            "connections  50; opened in 1.50 ms on average, up to 80 % of it in the generator's own queue\n",
            "50 handshakes, 0 resumed, mean 1.50 ms, up to 80 % of it in the generator's own queue;",
        ] {
            assert!(told.contains(expected), "{told}");
        }
        // A small share, and a small amount.
        for (mean_us, own_us) in [(1500.0, 300.0), (150.0, 120.0)] {
            let untold = text(mean_us, own_us);
            assert!(untold.contains("connections  50\n"), "{untold}");
            assert!(!untold.contains("own queue"), "{untold}");
        }
    }
}
