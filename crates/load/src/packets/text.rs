//! Text form of the report.

use std::fmt;

use onrush_measure::units;

use super::report::Report;
use super::run::Second;
use crate::report::latency::Latency;

/// Column titles of [`Second`].
pub const COLUMNS: &str = "#     time       sent/s   received/s      missing";

impl fmt::Display for Second {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{:>10.0} {:>12} {:>12} {:>12}",
            self.t,
            units::count(self.sent),
            units::count(self.received),
            units::count(self.missing)
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes_per_s = self.sent_bytes as f64 / self.duration_s.max(f64::MIN_POSITIVE);
        writeln!(
            out,
            "sent         {} in {:.2} s: {}, {} of payload",
            units::plural(self.sent, "datagram"),
            self.duration_s,
            units::rate(self.sent_per_s),
            units::bits_per_s(bytes_per_s),
        )?;
        self.write_unsent(out)?;
        self.write_received(out)?;
        for lookup in &self.dns {
            writeln!(out, "{lookup}")?;
        }
        for origin in &self.origins {
            writeln!(out, "by           {origin}")?;
        }
        self.write_times(out)?;
        self.write_cpu(out)?;
        for outcome in &self.thresholds {
            writeln!(out, "{outcome}")?;
        }
        write!(out, "{}", self.verdict)
    }
}

impl Report {
    fn write_unsent(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.datagrams_per_message {
            1 if self.departure == "xdp" => "xdp (one per frame)".to_owned(),
            1 => format!("{} (one per message)", self.departure),
            count => format!("{} ({count} datagrams per message)", self.departure),
        };
        writeln!(out, "send mode    {how}")?;
        if let Some(rate) = self.rate_asked {
            writeln!(
                out,
                "rate         {} requested; {} skipped",
                units::rate(rate),
                units::count(self.skipped)
            )?;
        }
        for (reason, count) in &self.unsent {
            writeln!(out, "not sent     {}: {reason}", units::count(*count))?;
        }
        Ok(())
    }

    fn write_received(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(received) = self.received else {
            return writeln!(out, "received     not known");
        };
        let known = |count: Option<u64>| units::count(count.unwrap_or(0));
        writeln!(
            out,
            "received     {}: {}; {} duplicated, {} reordered",
            units::count(received),
            units::rate(self.received_per_s.unwrap_or(0.0)),
            known(self.duplicated),
            known(self.reordered),
        )?;
        if let Some(losses) = &self.losses {
            writeln!(out, "lost         {}", losses.line(self.sent))?;
        }
        if self.late > 0 {
            writeln!(
                out,
                "late         {} after their timeout",
                units::count(self.late)
            )?;
        }
        match self.jitter_us {
            Some(jitter) => writeln!(out, "jitter       {}", units::nanoseconds(jitter * 1e3)),
            None => Ok(()),
        }
    }

    fn write_times(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            ("round trip", &self.latency_us),
            ("from sent", &self.service_us),
            ("lateness", &self.lateness_us),
        ];
        let known: Vec<(&str, &Latency)> = all
            .into_iter()
            .filter(|(_, latency)| latency.mean.is_some())
            .collect();
        if known.is_empty() {
            return Ok(());
        }
        let titles: Vec<String> = known
            .iter()
            .map(|(name, _)| format!("{name:>10}"))
            .collect();
        writeln!(out, "latency       {}", titles.join(" "))?;
        let time = |us: f64| units::nanoseconds(us * 1e3);
        let line = |name: &str| -> String {
            let cells = known
                .iter()
                .map(|(_, latency)| format!("{:>10}", latency.text(name, "-", time)));
            cells.collect::<Vec<String>>().join(" ")
        };
        writeln!(out, "       mean   {}", line("mean"))?;
        let most = known
            .iter()
            .max_by_key(|(_, latency)| latency.percentiles.len());
        let names = most
            .map(|(_, latency)| latency.percentiles.clone())
            .unwrap_or_default();
        for (name, _) in names {
            writeln!(out, "  {name:>7} %   {}", line(&name))?;
        }
        writeln!(out, "        max   {}", line("max"))
    }

    fn write_cpu(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(own) = self.cpu_us_per_datagram else {
            return Ok(());
        };
        let shares: Vec<String> = self
            .cpu_shares
            .iter()
            .map(|share| format!("{:.0} %", share * 100.0))
            .collect();
        let far = self
            .far_cpu_us_per_datagram
            .map_or(String::new(), |far| format!("; the target {far:.3} us"));
        writeln!(
            out,
            "own CPU      {own:.3} us per datagram{far}; threads busy {}",
            shares.join(", ")
        )?;
        for (name, moved) in &self.interfaces {
            writeln!(
                out,
                "interface    {name}: {} out, {} in, {} dropped",
                units::plural(moved.tx_packets, "packet"),
                units::count(moved.rx_packets),
                units::count(moved.tx_dropped + moved.rx_dropped)
            )?;
        }
        Ok(())
    }
}
