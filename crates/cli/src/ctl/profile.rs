//! `onrush ctl profile`: where the cores of a server spend their time, since its start or within an interval.

use std::io;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use onrush_admin::client::{Endpoint, Response, request};
use onrush_measure::amount::duration;
use onrush_measure::table::Table;
use serde_json::{Map, Value, json};

use super::cell::{array_items, text_cell, time};

pub(super) const PATH: &str = "/v1/profile";

/// Longest interval: `ctl` waits until it has passed.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// What is looked at.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Profile the next TIME (1ms to 1h), such as 10s [default: the time since the start]
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    interval: Option<Duration>,
    /// Show only this core [default: all cores together]
    #[arg(long, value_name = "N")]
    pub(super) core: Option<u64>,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    match duration(text) {
        Ok(interval) if !interval.is_zero() && interval <= INTERVAL_MAX => Ok(interval),
        Ok(_) => Err("expected 1ms to 1h".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Requests the profile once, or at both ends of an interval.
///
/// # Errors
/// As [`request`], and when a different server responds at the end of the interval.
pub(super) fn fetch(place: &Endpoint, args: &Args) -> io::Result<Response> {
    let first = request(place, PATH, None)?;
    let Some(interval) = args.interval.filter(|_| first.status == 200) else {
        return Ok(first);
    };
    thread::sleep(interval);
    let second = request(place, PATH, None)?;
    if second.status != 200 {
        return Ok(second);
    }
    let between = difference(&first.json(), &second.json());
    let body = between.ok_or_else(|| {
        io::Error::other("another server process has replaced it since the first profile")
    })?;
    Ok(Response {
        status: 200,
        body: format!("{body}\n").into_bytes(),
    })
}

/// Difference of two profiles; `None` when they cannot come from the same server.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    let cores = array_items(&after["cores"]).filter_map(|core| {
        let mut earlier = array_items(&before["cores"]).filter(|one| one["core"] == core["core"]);
        let mut between = since(earlier.next()?, core);
        if let Some(Value::Object(between)) = &mut between {
            between.insert("core".to_owned(), core["core"].clone());
        }
        Some(between)
    });
    Some(json!({
        "all": since(&before["all"], &after["all"])?,
        "cores": cores.collect::<Option<Vec<Value>>>()?,
        "silent_cores": after["silent_cores"],
    }))
}

fn since(before: &Value, after: &Value) -> Option<Value> {
    let mut between = Map::new();
    for name in ["elapsed", "cpu_time", "run_queue_time", "had_work"] {
        between.insert(name.to_owned(), less(&before[name], &after[name])?);
    }
    let mut works = Vec::new();
    for work in array_items(&after["work"]) {
        let mut earlier = array_items(&before["work"]).filter(|one| one["work"] == work["work"]);
        let nothing = json!({ "calls": 0, "time": 0.0, "latency": 0.0, "cpu_time": 0.0 });
        let earlier = earlier.next().unwrap_or(&nothing);
        let calls = work["calls"]
            .as_u64()?
            .checked_sub(earlier["calls"].as_u64()?)?;
        if calls == 0 {
            continue;
        }
        let mut one = json!({ "work": work["work"], "calls": calls });
        for name in ["time", "latency"] {
            one[name] = less(&earlier[name], &work[name])?;
            one[format!("{name}_mean")] = (one[name].as_f64()? / calls as f64).into();
        }
        if !work["cpu_time"].is_null() {
            // For the wait, CPU time is the thread's total minus that of other work; the two are read at slightly
            // different times, so it may seem to decrease.
            one["cpu_time"] = less(&earlier["cpu_time"], &work["cpu_time"]).unwrap_or(json!(0.0));
        }
        works.push(one);
    }
    between.insert("work".to_owned(), works.into());
    Some(Value::Object(between))
}

/// Difference of two amounts; null where the kernel does not report them.
fn less(before: &Value, after: &Value) -> Option<Value> {
    match (before.as_f64(), after.as_f64()) {
        (Some(before), Some(after)) if before <= after => Some((after - before).into()),
        (Some(_), Some(_)) => None,
        _ => Some(Value::Null),
    }
}

/// `part` as a percentage of `whole`.
fn share(part: &Value, whole: &Value) -> String {
    match (part.as_f64(), whole.as_f64()) {
        (Some(part), Some(whole)) if whole > 0.0 => format!("{:.1} %", 100.0 * part / whole),
        _ => "-".to_owned(),
    }
}

/// Summary of the CPU time of the threads.
fn cpu_summary(profile: &Value) -> String {
    let (elapsed, ran) = (&profile["elapsed"], &profile["cpu_time"]);
    let had_work = match &profile["had_work"] {
        Value::Null => String::new(),
        had_work => format!(
            "; busy polling, {} with work ({})",
            time(had_work),
            share(had_work, elapsed)
        ),
    };
    format!(
        "{} of {} on a CPU ({}), {} waiting for a CPU{had_work}",
        time(ran),
        time(elapsed),
        share(ran, elapsed),
        time(&profile["run_queue_time"])
    )
}

/// CPU time, or, if the core busy-polls, the time during which it had work.
fn used(core: &Value) -> &Value {
    match &core["had_work"] {
        Value::Null => &core["cpu_time"],
        had_work => had_work,
    }
}

/// Formats the profile as a table, the longest work first; the wait for the kernel, which is mostly sleep, is last.
pub(super) fn show(said: &Value, core: Option<u64>) -> anyhow::Result<String> {
    let cores = array_items(&said["cores"]);
    let (whose, profile) = match core {
        None => ("all cores".to_owned(), &said["all"]),
        Some(number) => match cores.clone().find(|one| one["core"] == number) {
            Some(core) => (format!("core {number}"), core),
            None => bail!("core {number} does not exist: onrush ctl status lists the cores"),
        },
    };
    let mut text = format!("{whose}: {}\n", cpu_summary(profile));
    if core.is_none() && cores.clone().count() > 1 {
        let busy = cores.map(|core| {
            format!(
                "core {} {}",
                core["core"],
                share(used(core), &core["elapsed"])
            )
        });
        text += &format!("{}\n", busy.collect::<Vec<_>>().join(", "));
    }
    text.push('\n');
    let head = [
        "work", "calls", "time", "mean", "longest", "latency", "mean", "longest",
    ];
    let mut table = Table::new(&head, 1..head.len());
    let mut works: Vec<&Value> = array_items(&profile["work"]).collect();
    works.sort_by(|one, other| {
        let key = |work: &Value| {
            (
                work["cpu_time"].is_null(),
                work["time"].as_f64().unwrap_or(0.0),
            )
        };
        key(other)
            .partial_cmp(&key(one))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    for work in works {
        let is_task = work["latency"]
            .as_f64()
            .is_some_and(|latency| latency > 0.0);
        let latency = |name: &str| match is_task {
            true => time(&work[name]),
            false => "-".to_owned(),
        };
        table.push(vec![
            text_cell(&work["work"]),
            text_cell(&work["calls"]),
            time(&work["time"]),
            time(&work["time_mean"]),
            time(&work["time_max"]),
            latency("latency"),
            latency("latency_mean"),
            latency("latency_max"),
        ]);
    }
    Ok(text + &table.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(elapsed: f64, calls: u64, seconds: f64) -> Value {
        let wait =
            json!({ "work": "wait", "calls": 1, "time": 1.0, "latency": 0.0, "cpu_time": 0.5 });
        let client = json!({
            "work": "client", "calls": calls, "time": seconds, "time_mean": seconds / calls as f64, "time_max": 0.002,
            "latency": 0.3, "latency_mean": 0.3 / calls as f64, "latency_max": 0.01,
        });
        let one = json!({ "elapsed": elapsed, "cpu_time": elapsed / 2.0, "run_queue_time": null, "work": [wait, client] });
        let mut core = one.clone();
        core["core"] = 0.into();
        json!({ "all": one, "cores": [core], "silent_cores": [] })
    }

    #[test]
    fn profile_of_interval_is_difference() {
        let (before, after) = (profile(10.0, 4, 0.25), profile(15.0, 10, 1.0));
        let between = difference(&before, &after).expect("the same server");
        assert_eq!(between["all"]["elapsed"], 5.0);
        assert_eq!(between["all"]["run_queue_time"], Value::Null);
        let works = between["all"]["work"].as_array().expect("a list");
        assert_eq!(works.len(), 1, "nothing waited between them");
        assert_eq!(works[0]["calls"], 6);
        assert_eq!(works[0]["time_mean"], 0.125);
        assert_eq!(between["cores"][0]["core"], 0);
        assert_eq!(
            difference(&after, &before),
            None,
            "another server began later"
        );
    }

    #[test]
    fn table_fits_terminal_width() {
        let text = show(&profile(123_456.0, 123_456_789, 65_432.1), None).expect("all cores");
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert_eq!(
            lines[0],
            "all cores: 61728.00 s of 123456.00 s on a CPU (50.0 %), - waiting for a CPU"
        );
        assert!(lines[2].starts_with("work"), "{text}");
        assert!(lines[3].starts_with("client  123456789"), "{text}");
        assert!(lines[4].starts_with("wait"), "{text}");
        assert!(show(&profile(1.0, 1, 1.0), Some(7)).is_err());
    }

    #[test]
    fn interval_requires_unit_and_bounds() {
        assert_eq!(parse_interval("5s"), Ok(Duration::from_secs(5)));
        for wrong in ["0s", "2h", "5", "soon"] {
            assert!(parse_interval(wrong).is_err(), "{wrong}");
        }
    }
}
