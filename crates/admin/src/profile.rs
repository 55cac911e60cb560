//! Time spent by the cores on each kind of work, as JSON. Times are in seconds.

use std::time::Duration;

use onrush_engine::WorkFigures;
use onrush_serve::{ProfileView, WAIT_NAME};
use serde_json::{Value, json};

/// Profile of each core and of all together. Kinds of work that did not occur are omitted.
pub(crate) fn profile(cores: &[ProfileView], silent: &[usize]) -> Value {
    let mut sum: Vec<(&'static str, WorkFigures)> = Vec::new();
    for (name, figures) in cores.iter().flat_map(|core| &core.works) {
        match sum.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => add(sum, figures),
            None => sum.push((name, *figures)),
        }
    }
    let total = |of: fn(&ProfileView) -> Duration| cores.iter().map(of).sum::<Duration>();
    let waited = cores.iter().filter_map(|core| core.time.waited);
    let had_work: Option<Duration> = cores.iter().map(|core| core.had_work).sum();
    let all = json!({
        "elapsed": seconds(total(ProfileView::elapsed)),
        "cpu_time": seconds(total(|core| core.time.ran)),
        "run_queue_time": seconds(waited.sum()),
        "had_work": had_work.filter(|_| !cores.is_empty()).map(seconds),
        "work": works(&sum, total(|core| core.time.ran), total(ProfileView::worked)),
    });
    let cores = cores.iter().map(|core| {
        json!({
            "core": core.core,
            "elapsed": seconds(core.elapsed()),
            "cpu_time": seconds(core.time.ran),
            "run_queue_time": core.time.waited.map(seconds),
            "had_work": core.had_work.map(seconds),
            "work": works(&core.works, core.time.ran, core.worked()),
        })
    });
    json!({ "all": all, "cores": cores.collect::<Vec<_>>(), "silent_cores": silent })
}

fn add(sum: &mut WorkFigures, figures: &WorkFigures) {
    sum.calls += figures.calls;
    sum.time += figures.time;
    sum.time_max = sum.time_max.max(figures.time_max);
    sum.latency += figures.latency;
    sum.latency_max = sum.latency_max.max(figures.latency_max);
}

/// `ran` is the CPU time of the threads, `worked` the time in which they did not wait for the kernel.
fn works(works: &[(&'static str, WorkFigures)], ran: Duration, worked: Duration) -> Vec<Value> {
    let done = works.iter().filter(|(_, figures)| figures.calls > 0);
    let work = |(name, figures): &(&'static str, WorkFigures)| {
        let mean = |time: Duration| seconds(time) / figures.calls as f64;
        let mut value = json!({
            "work": name,
            "calls": figures.calls,
            "time": seconds(figures.time),
            "time_mean": mean(figures.time),
            "time_max": seconds(figures.time_max),
            "latency": seconds(figures.latency),
            "latency_mean": mean(figures.latency),
            "latency_max": seconds(figures.latency_max),
        });
        if *name == WAIT_NAME {
            // CPU time of the wait, which is mostly sleep: the thread's CPU time less that of all other work.
            value["cpu_time"] = seconds(ran.saturating_sub(worked)).into();
        }
        value
    };
    done.map(work).collect()
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_engine::clock::ThreadTime;

    fn core(number: usize, works: Vec<(&'static str, WorkFigures)>) -> ProfileView {
        ProfileView {
            core: number,
            time: ThreadTime {
                ran: Duration::from_secs(3),
                waited: Some(Duration::from_secs(1)),
                runs: None,
            },
            had_work: Some(Duration::from_secs(2)),
            works,
        }
    }

    fn figures(calls: u64, seconds: u64, latency_max: u64) -> WorkFigures {
        WorkFigures {
            calls,
            time: Duration::from_secs(seconds),
            time_max: Duration::from_secs(seconds),
            latency: Duration::from_secs(latency_max),
            latency_max: Duration::from_secs(latency_max),
        }
    }

    #[test]
    fn profiles_are_summed_over_cores() {
        let cores = [
            core(
                0,
                vec![(WAIT_NAME, figures(4, 8, 0)), ("a", figures(2, 1, 1))],
            ),
            core(
                1,
                vec![
                    (WAIT_NAME, figures(1, 6, 0)),
                    ("a", figures(1, 2, 3)),
                    ("b", figures(0, 0, 0)),
                ],
            ),
        ];
        let said = profile(&cores, &[2]);
        let all = &said["all"];
        assert_eq!(all["elapsed"], 17.0);
        assert_eq!(all["run_queue_time"], 2.0);
        assert_eq!(
            (&all["had_work"], &said["cores"][1]["had_work"]),
            (&json!(4.0), &json!(2.0))
        );
        let [wait, work] = [0, 1].map(|at| &all["work"][at]);
        assert_eq!(
            (&wait["calls"], &wait["time"], &wait["cpu_time"]),
            (&json!(5), &json!(14.0), &json!(3.0))
        );
        assert_eq!(
            (&work["calls"], &work["time"], &work["time_mean"]),
            (&json!(3), &json!(3.0), &json!(1.0))
        );
        assert_eq!(
            (&work["time_max"], &work["latency"], &work["latency_max"]),
            (&json!(2.0), &json!(4.0), &json!(3.0))
        );
        assert_eq!(
            all["work"].as_array().map(Vec::len),
            Some(2),
            "what was not done is left out"
        );
        assert_eq!(said["cores"][0]["work"][0]["cpu_time"], 2.0);
        assert_eq!(said["silent_cores"], json!([2]));
    }
}
