//! Flags that set when requests start.

use std::num::NonZeroU64;
use std::time::Duration;

use onrush_load::limits::STAIRS_MAX;
use onrush_load::pace::arrivals::{ArrivalPlan, Spacing};
use onrush_load::pace::profile::{Profile, Stairs};
use onrush_load::pace::{Pace, Start};
use onrush_load::plan::{Connecting, Shard};
use onrush_load::wall_clock::WallTime;
use onrush_measure::amount::{AmountError, count, duration, duration_or};

use super::value::{Rate, Switch, rate, rate_per};

/// When requests start, and what counts.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Pace")]
pub(super) struct PaceArgs {
    /// Send this many requests per second in all [default: unlimited]
    ///
    /// 6k/m is per minute, 90/h per hour. The rate does not depend on the responses, and latency is measured from the intended start of a request
    #[arg(short = 'R', long, help_heading = None, display_order = 1, value_name = "RATE", value_parser = rate_per)]
    rate: Option<Rate>,

    /// Connections per second in all, independent of earlier ones, each with one request: like -R with -r 1 and no connections opened before the start. -c is the maximum of open connections
    #[arg(long, value_name = "RATE", value_parser = rate_per, conflicts_with = "connect_first", hide_short_help = true)]
    connections_per_second: Option<Rate>,

    /// Arrival times at a rate: even, random within each interval, or independent as from many users (Poisson) [default: even]
    #[arg(long, value_name = "HOW", value_enum, hide_short_help = true)]
    spacing: Option<SpacingArg>,

    /// Change the rate step by step, FROM:TO:STEP/TIME such as 10k:100k:10k/20s; the run ends with the last step
    #[arg(long, value_name = "STAIRS", value_parser = stairs, hide_short_help = true)]
    stairs: Option<Stairs>,

    /// Bursts: COUNT requests at once every TIME, such as 100/10ms
    #[arg(long, value_name = "BURST", value_parser = burst, hide_short_help = true)]
    burst: Option<Burst>,

    /// Send this many requests per second on each connection, evenly, independent of the responses
    #[arg(long, value_name = "RATE", value_parser = rate, hide_short_help = true)]
    rate_per_connection: Option<NonZeroU64>,

    /// Pause between a response and the next request of the connection, varied by 3 %; a bare number is milliseconds
    #[arg(short = 'T', long, value_name = "TIME", value_parser = milliseconds, hide_short_help = true)]
    think: Option<Duration>,

    /// Ramp up to full load evenly within this time, and measure afterwards: the rate with -R, else the number of connections
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    ramp: Option<Duration>,

    /// Like --ramp, but in ten steps, each with a slope for a quarter of its time, as h1load does
    #[arg(short = 's', long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    soft_start: Option<Duration>,

    /// Run at full load for this time before measuring
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    warm_up: Option<Duration>,

    /// Open all connections before the clock starts [default: on with a rate, off without]
    #[arg(long, value_name = "on|off", value_enum, hide_short_help = true)]
    connect_first: Option<Switch>,

    /// Skip and count requests that are later than this, instead of sending them [default: send all]
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    catch_up: Option<Duration>,

    /// Start at this time, such as 2026-11-22T12:00:00Z or seconds since 1970; with --connect-first the connections are opened before it
    #[arg(long, value_name = "TIME", value_parser = WallTime::parse, hide_short_help = true)]
    start_at: Option<WallTime>,

    /// Run part I of N, from 1/N to N/N: rate, count, connections, source addresses and ports are divided exactly between the N generators
    #[arg(long, value_name = "I/N", value_parser = shard, hide_short_help = true)]
    shard: Option<ShardArg>,

    /// Seed of random arrivals and pauses
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "0",
        hide_short_help = true
    )]
    seed: u64,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum SpacingArg {
    Even,
    Jittered,
    Exponential,
}

/// A number of requests, and the time between two bursts.
#[derive(Clone, Copy, Debug)]
struct Burst {
    size: u64,
    every: Duration,
}

/// Own type, because clap would misinterpret the library's.
#[derive(Clone, Copy, Debug)]
struct ShardArg(Shard);

/// Combined meaning of the flags.
pub(super) struct PaceOptions {
    pub(super) pace: Pace,
    pub(super) start: Start,
    pub(super) warm_up: Duration,
    pub(super) connecting: Connecting,
    /// Requests after which a connection is closed, where the pace sets it.
    pub(super) requests_per_connection: Option<u64>,
    pub(super) catch_up: Option<Duration>,
    pub(super) start_at: Option<WallTime>,
    pub(super) shard: Shard,
    pub(super) seed: u64,
    /// Length of the run, where the pace determines it.
    pub(super) duration: Option<Duration>,
}

fn stairs(text: &str) -> Result<Stairs, String> {
    let expected = || {
        format!("{text:?} is not a staircase: expected FROM:TO:STEP/TIME such as 10k:100k:10k/20s")
    };
    // The rates may have a slash, too.
    let (rates, hold) = text.rsplit_once('/').ok_or_else(expected)?;
    let rates: Vec<&str> = rates.split(':').collect();
    let [from, to, step] = rates[..] else {
        return Err(expected());
    };
    let hold = duration(hold).map_err(|why| why.to_string())?;
    if hold.is_zero() {
        return Err("the time of a step must be more than 0".to_owned());
    }
    let stairs = Stairs {
        from: rate(from)?,
        to: rate(to)?,
        step: rate(step)?,
        hold,
    };
    let steps = stairs.from.get().abs_diff(stairs.to.get()) / stairs.step.get();
    if steps >= STAIRS_MAX {
        return Err(format!(
            "{text:?} has {} steps: expected at most {STAIRS_MAX}; use a larger STEP",
            steps + 1
        ));
    }
    Ok(stairs)
}

fn burst(text: &str) -> Result<Burst, String> {
    let (size, every) = text
        .split_once('/')
        .ok_or_else(|| format!("{text:?} is not a burst: expected COUNT/TIME such as 100/10ms"))?;
    let said = |why: AmountError| why.to_string();
    let size = count(size).map_err(said)?;
    let every = duration(every).map_err(said)?;
    if size == 0 || every.is_zero() {
        return Err(format!(
            "{text:?} is not a burst: expected COUNT of at least 1 and TIME above 0, such as 100/10ms"
        ));
    }
    Ok(Burst { size, every })
}

/// A number without unit is milliseconds, as in h1load.
fn milliseconds(text: &str) -> Result<Duration, AmountError> {
    duration_or(text, "ms")
}

fn shard(text: &str) -> Result<ShardArg, String> {
    let expected = || format!("{text:?} is not a part: expected I/N such as 1/3, counted from 1");
    let (index, count) = text.split_once('/').ok_or_else(expected)?;
    let (index, count): (u64, u64) = match (index.parse(), count.parse()) {
        (Ok(index), Ok(count)) if (1..=count).contains(&index) => (index - 1, count),
        _ => return Err(expected()),
    };
    Ok(ShardArg(Shard { index, count }))
}

const PER_SECOND: &str = "--connections-per-second";

impl PaceArgs {
    /// Combines the flags.
    pub(super) fn paced(self) -> Result<PaceOptions, String> {
        self.refuse()?;
        let start = match (self.ramp, self.soft_start) {
            (Some(time), _) => Start::Ramp(time),
            (None, Some(time)) => Start::Stairs(time),
            (None, None) => Start::AtOnce,
        };
        let is_of_connections = self.connections_per_second.is_some();
        let is_open = self.rate.is_some() || self.stairs.is_some() || self.burst.is_some();
        let has_rate = is_open || self.rate_per_connection.is_some();
        let connecting = match self.connect_first {
            Some(Switch::On) => Connecting::Before,
            Some(Switch::Off) => Connecting::AtStart,
            None if has_rate => Connecting::Before,
            None => Connecting::AtStart,
        };
        Ok(PaceOptions {
            duration: self.stairs.map(|stairs| stairs.duration()),
            pace: self.pace(start),
            start,
            requests_per_connection: is_of_connections.then_some(1),
            warm_up: self.warm_up.unwrap_or_default(),
            connecting,
            catch_up: self.catch_up,
            start_at: self.start_at,
            shard: self.shard.map(|ShardArg(shard)| shard).unwrap_or_default(),
            seed: self.seed,
        })
    }

    fn pace(&self, start: Start) -> Pace {
        let spaced = |profile: Profile| {
            Pace::Open(ArrivalPlan::Spaced {
                profile,
                spacing: match self.spacing {
                    None | Some(SpacingArg::Even) => Spacing::Even,
                    Some(SpacingArg::Jittered) => Spacing::Jittered,
                    Some(SpacingArg::Exponential) => Spacing::Exponential,
                },
                seed: self.seed,
            })
        };
        if let Some(Rate { count, period }) = self.rate.or(self.connections_per_second) {
            return spaced(start.profile(count).per(period));
        }
        if let Some(stairs) = &self.stairs {
            return spaced(Profile::stairs(stairs));
        }
        if let Some(Burst { size, every }) = self.burst {
            return Pace::Open(ArrivalPlan::Bursts { size, every });
        }
        match (self.rate_per_connection, self.think) {
            (Some(rate), _) => Pace::EachConnection(rate),
            (None, Some(time)) => Pace::Think(time),
            (None, None) => Pace::Closed,
        }
    }

    /// Refuses the first pair of flags that exclude each other.
    fn refuse(&self) -> Result<(), String> {
        let paces = [
            ("-R", self.rate.is_some()),
            (PER_SECOND, self.connections_per_second.is_some()),
            ("--stairs", self.stairs.is_some()),
            ("--burst", self.burst.is_some()),
            ("--rate-per-connection", self.rate_per_connection.is_some()),
            ("-T", self.think.is_some()),
        ];
        let given: Vec<&str> = paces
            .into_iter()
            .filter_map(|(name, is_given)| is_given.then_some(name))
            .collect();
        if let [first, second, ..] = given[..] {
            return Err(format!(
                "{first} and {second} both set when requests start: use only one"
            ));
        }
        let pace = given.first().copied();
        if self.ramp.is_some() && self.soft_start.is_some() {
            return Err("--ramp and -s both set how the load grows: use only one".into());
        }
        let has_start = self.ramp.is_some() || self.soft_start.is_some();
        if let (true, Some(pace @ ("--stairs" | "--burst" | "--rate-per-connection"))) =
            (has_start, pace)
        {
            return Err(format!(
                "{pace} cannot be used with --ramp or -s: use --warm-up, or --ramp with -R"
            ));
        }
        if self.spacing.is_some() && !matches!(pace, Some("-R" | PER_SECOND | "--stairs")) {
            return Err("--spacing needs a rate: use it with -R or --stairs".into());
        }
        if self.catch_up.is_some()
            && !matches!(pace, Some("-R" | PER_SECOND | "--stairs" | "--burst"))
        {
            return Err(
                "--catch-up needs scheduled requests, and a closed loop has none: use it with -R"
                    .into(),
            );
        }
        if has_start && matches!(self.connect_first, Some(Switch::On)) && self.rate.is_none() {
            return Err(
                "--connect-first opens all connections at once, and --ramp and -s add them over time: use only one"
                    .into(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: PaceArgs,
    }

    fn paced(line: &str) -> Result<PaceOptions, String> {
        let words = std::iter::once("load").chain(line.split_whitespace());
        match Line::try_parse_from(words) {
            Ok(line) => line.args.paced(),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn default_pace_is_closed_loop() {
        let paced = paced("").ok().unwrap();
        assert_eq!((paced.pace, paced.start), (Pace::Closed, Start::AtOnce));
        assert_eq!(paced.connecting, Connecting::AtStart);
    }

    #[test]
    fn rate_opens_connections_before_start() {
        for (line, connecting) in [
            ("-R 5", Connecting::Before),
            ("--rate-per-connection 5", Connecting::Before),
            ("-R 5 --connect-first off", Connecting::AtStart),
            ("-T 5", Connecting::AtStart),
        ] {
            assert_eq!(paced(line).ok().unwrap().connecting, connecting, "{line}");
        }
    }

    #[test]
    fn connection_rate_opens_no_connection_before_start() {
        let paced = paced("--connections-per-second 600/m --spacing jittered")
            .ok()
            .unwrap();
        assert_eq!(paced.pace.target_rate(1), Some(10.0));
        assert_eq!(paced.connecting, Connecting::AtStart);
        assert_eq!(paced.requests_per_connection, Some(1));
    }

    #[test]
    fn stairs_end_after_last_step() {
        let paced = paced("--stairs 10k:30k:10k/20s").ok().unwrap();
        assert_eq!(paced.duration, Some(Duration::from_secs(60)));
        assert_eq!(paced.pace.target_rate(1), Some(30_000.0));
        let with_units = self::paced("--stairs 10k/s:1.8m/m:10k/s/20s").ok().unwrap();
        assert_eq!(with_units.pace, paced.pace);
    }

    #[test]
    fn stair_and_connection_rates_must_be_integers() {
        let pace = |line| paced(line).ok().unwrap().pace;
        for line in ["--rate-per-connection 100/s", "--rate-per-connection 6k/m"] {
            assert_eq!(pace(line), pace("--rate-per-connection 100"));
        }
        for line in [
            "--rate-per-connection 1.5",
            "--rate-per-connection 90/m",
            "--stairs 1:2:0.5/1s",
        ] {
            let error = paced(line).err().unwrap();
            assert!(
                error.contains("not a whole number per second"),
                "{line}: {error}"
            );
        }
    }

    #[test]
    fn rate_accepts_minutes_and_hours() {
        let asked = |line| paced(line).ok().unwrap().pace.target_rate(1);
        for (line, rate) in [
            ("-R 100", 100.0),
            ("-R 100/s", 100.0),
            ("-R 6k/m", 100.0),
            ("--rate 90/m", 1.5),
            ("--rate 900/h", 0.25),
            ("-R 1.5", 1.5),
            ("-R 0.5/s", 0.5),
            ("--connections-per-second 1.5/s", 1.5),
        ] {
            assert_eq!(asked(line), Some(rate), "{line}");
        }
        assert_eq!(
            paced("-R 6k/m").ok().unwrap().pace,
            paced("-R 100").ok().unwrap().pace
        );
        for line in ["-R 5/d", "-R 0/m", "-R 5/", "-R /s"] {
            assert!(paced(line).is_err(), "{line}");
        }
    }

    #[test]
    fn think_time_without_unit_is_milliseconds() {
        let pace = |line| paced(line).ok().unwrap().pace;
        assert_eq!(pace("-T 50"), Pace::Think(Duration::from_millis(50)));
        assert_eq!(pace("-T 2s"), Pace::Think(Duration::from_secs(2)));
    }

    #[test]
    fn time_without_unit_is_refused() {
        for line in [
            "--ramp 1",
            "-s 1",
            "--soft-start 1.5",
            "--warm-up 1",
            "-R 5 --catch-up 1",
            "--stairs 10:20:10/1",
            "--burst 3/500",
        ] {
            let error = paced(line).err().unwrap();
            let expected = "expected a number and its unit, such as 250ms, 1.5s";
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn shards_are_numbered_from_one() {
        let part = paced("--shard 2/3").ok().unwrap().shard;
        assert_eq!((part.index, part.count), (1, 3));
    }

    #[test]
    fn conflicting_flags_are_refused_with_advice() {
        for (line, part) in [
            ("-R 5 -T 5", "-R and -T both set when"),
            ("-R 5 --connections-per-second 5", "both set when"),
            ("--burst 5/1s --stairs 1:2:1/1s", "use only one"),
            ("--ramp 5s -s 5s", "use only one"),
            ("--burst 5/1s --ramp 5s", "use --warm-up"),
            ("--spacing even", "use it with -R"),
            ("-T 5 --catch-up 1s", "use it with -R"),
            ("--ramp 5s --connect-first on", "use only one"),
            ("--stairs 5", "is not a staircase"),
            ("--stairs 1:2:1/0s", "must be more than 0"),
            (
                "--stairs 1:1m:1/1ms",
                "has 1000000 steps: expected at most 10000",
            ),
            ("--burst 5", "is not a burst"),
            ("--shard 0/3", "counted from 1"),
            ("--shard 4/3", "counted from 1"),
            ("--start-at 12:00", "expected one such as 2026-"),
        ] {
            let error = paced(line).err().unwrap();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
