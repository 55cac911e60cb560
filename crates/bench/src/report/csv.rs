//! `raw.csv` and `samples.csv`: one number per row, so that any tool can group them.

use crate::outcome::{Outcome, Trial, VariantOutcome, WorkOutcome};

/// All metrics of all trials, including invalid ones, which are marked.
pub(super) fn raw(outcome: &Outcome) -> String {
    let mut text = String::from(
        "round,at_s,work,variant,ours,valid,disturbed,client_is_limit,metric,value,point,unsteady,control_disturbed\n",
    );
    each_trial(outcome, |work, variant, trial| {
        for (metric, value) in &trial.metrics {
            text.push_str(&row(&[
                trial.round.to_string(),
                format!("{:.3}", trial.at_s),
                work.name.clone(),
                variant.name.clone(),
                variant.ours.to_string(),
                trial.is_valid().to_string(),
                trial.disturbed.is_some().to_string(),
                trial.client_is_limit.to_string(),
                metric.clone(),
                value.to_string(),
                work.point.to_string(),
                trial.unsteady.is_some().to_string(),
                (!trial.control_disturbed.is_empty()).to_string(),
            ]));
        }
    });
    text
}

/// All seconds of all trials: shares of CPUs and roles, rates of interfaces and clients, and other kernel counters.
pub(super) fn samples(outcome: &Outcome) -> String {
    let mut text = String::from("round,work,variant,t_s,subject,measure,value,point\n");
    each_trial(outcome, |work, variant, trial| {
        let mut add = |t: f64, subject: &str, measure: &str, value: f64| {
            text.push_str(&row(&[
                trial.round.to_string(),
                work.name.clone(),
                variant.name.clone(),
                format!("{t:.3}"),
                subject.into(),
                measure.into(),
                format!("{value:.4}"),
                work.point.to_string(),
            ]));
        };
        for sample in &trial.samples {
            for cpu in &sample.cpus {
                let subject = format!("cpu{}", cpu.cpu);
                for (measure, value) in [
                    ("user", cpu.user),
                    ("system", cpu.system),
                    ("softirq", cpu.softirq),
                    ("irq", cpu.irq),
                    ("steal", cpu.steal),
                ] {
                    add(sample.t, &subject, measure, value);
                }
            }
            for (role, cpus) in &sample.roles {
                add(sample.t, role.name(), "cpus", *cpus);
            }
            for (name, used) in &sample.interfaces {
                for (measure, value) in [
                    ("rx_packets_per_s", used.rx_packets),
                    ("tx_packets_per_s", used.tx_packets),
                    ("rx_bytes_per_s", used.rx_bytes),
                    ("tx_bytes_per_s", used.tx_bytes),
                    ("rx_errors_per_s", used.rx_errors),
                    ("tx_errors_per_s", used.tx_errors),
                    ("rx_dropped_per_s", used.rx_dropped),
                    ("tx_dropped_per_s", used.tx_dropped),
                ] {
                    add(sample.t, name, measure, value);
                }
            }
            for (subject, measures) in &sample.counters {
                for (measure, value) in measures {
                    add(sample.t, subject, measure, *value);
                }
            }
        }
        for second in &trial.seconds {
            add(second.t, "client", "rps", second.rps);
        }
    });
    text
}

fn each_trial(outcome: &Outcome, mut visit: impl FnMut(&WorkOutcome, &VariantOutcome, &Trial)) {
    for work in &outcome.works {
        for variant in &work.variants {
            for trial in &variant.trials {
                visit(work, variant, trial);
            }
        }
    }
}

fn row(fields: &[String]) -> String {
    let quoted = |field: &String| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field.clone()
        }
    };
    let fields: Vec<_> = fields.iter().map(quoted).collect();
    format!("{}\n", fields.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::outcome;

    #[test]
    fn commas_and_quotes_are_quoted() {
        let fields = ["a,b", "say \"x\"", "plain"].map(String::from);
        assert_eq!(row(&fields), "\"a,b\",\"say \"\"x\"\"\",plain\n");
    }

    #[test]
    fn trial_flags_appear_in_all_its_rows() {
        let mut outcome = outcome();
        outcome.works[0].variants[0].trials[1].unsteady = Some(0.2);
        let rows = outcome.works[0].variants[0].trials[1].metrics.len();
        let text = raw(&outcome);
        let marked = |line: &&str| line.ends_with(",true,false");
        let marked: Vec<&str> = text.lines().filter(marked).collect();
        assert_eq!(marked.len(), rows, "{text}");
        assert!(marked.iter().all(|line| line.starts_with("2,")), "{text}");
    }

    #[test]
    fn rows_match_header_length() {
        for text in [raw(&outcome()), samples(&outcome())] {
            let mut lines = text.lines();
            let head = lines.next().expect("a head").matches(',').count();
            assert!(text.lines().count() > 10);
            assert!(
                lines.all(|line| line.matches(',').count() == head),
                "{text}"
            );
        }
    }
}
