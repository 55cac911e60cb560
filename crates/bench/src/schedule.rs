//! Order of the trials in each round. The same seed gives the same order.
//!
//! Slow changes of a machine (heat, neighbours, memory) affect the trial that runs at that time. Rounds are
//! interleaved, so that they affect all variants, and shuffled, so that they do not affect the same variant in each
//! round. Works are shuffled among each other, and variants within their work, so that compared variants run close
//! together.

use onrush_measure::random::Random;

use crate::options::Seed;
use crate::scenario::{Experiment, Order, Rate, Work};

/// One variant of one work, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Index in [`Experiment::works`].
    pub work: usize,
    /// Index among the work's variants.
    pub variant: usize,
}

/// Trials of all rounds.
#[derive(Debug, Clone)]
pub struct Schedule {
    order: Order,
    seed: Seed,
    variants: Vec<Vec<usize>>,
    /// For each work, the work whose rate it needs, which runs first.
    dependencies: Vec<Option<usize>>,
}

impl Schedule {
    /// A schedule of the variants selected by `is_measured`.
    pub fn new(
        experiment: &Experiment,
        seed: Seed,
        is_measured: impl Fn(Cell) -> bool,
    ) -> Schedule {
        let works = experiment.works.iter().enumerate();
        let variants = works.map(|(work, described)| {
            let all = 0..described.variants.len();
            all.filter(|&variant| is_measured(Cell { work, variant }))
                .collect()
        });
        Schedule {
            order: experiment.order,
            seed,
            variants: variants.collect(),
            dependencies: dependencies(&experiment.works),
        }
    }

    /// Number of trials per round.
    pub fn len(&self) -> usize {
        self.variants.iter().map(Vec::len).sum()
    }

    /// Whether there is nothing to measure.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Seed of the order.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Trials of a round, counted from 1, in order.
    pub fn round(&self, round: u32) -> Vec<Cell> {
        let mut works: Vec<usize> = (0..self.variants.len()).collect();
        let mut variants = self.variants.clone();
        if self.order == Order::Shuffled {
            let mut random = Random::new(self.seed.0 ^ (u64::from(round) << 32));
            random.shuffle(&mut works);
            for variants in &mut variants {
                random.shuffle(variants);
            }
        }
        let cells = self
            .in_dependency_order(works)
            .into_iter()
            .flat_map(|work| {
                let variants = variants[work].iter();
                variants.map(move |&variant| Cell { work, variant })
            });
        cells.collect()
    }

    /// Moves each work after the work that it needs.
    fn in_dependency_order(&self, mut waiting: Vec<usize>) -> Vec<usize> {
        let mut placed: Vec<usize> = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let is_ready =
                |work: &usize| self.dependencies[*work].is_none_or(|need| placed.contains(&need));
            // Works need only earlier ones, so one of them is always ready.
            let next = waiting.iter().position(is_ready).unwrap_or(0);
            placed.push(waiting.remove(next));
        }
        placed
    }
}

fn dependencies(works: &[Work]) -> Vec<Option<usize>> {
    let need = |work: &Work| match &work.rate {
        None | Some(Rate::Fixed(_)) => None,
        Some(Rate::Share { work, point, .. }) => works
            .iter()
            .position(|other| other.name == *work && other.point == *point),
    };
    works.iter().map(need).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scenario;

    /// Three points of a work with three variants each, and a work at a share of the rate of each.
    fn experiment(order: &str) -> Experiment {
        let variants = ["a", "b", "c"].map(|name| format!("[[work.variant]]\nname = \"{name}\"\n"));
        let variants = variants.concat();
        let text = format!(
            "name = \"t\"\norder = \"{order}\"\n[program.s]\ncommand = [\"s\", \"{{port}}\"]\n\
             [program.c]\ncommand = [\"c\", \"{{connections}}\"]\n\
             [[work]]\nname = \"most\"\nserver = \"s\"\nclient = \"c\"\nsweep = {{ connections = [1, 2, 3] }}\n{variants}\
             [[work]]\nname = \"paced\"\nserver = \"s\"\nclient = \"c\"\nsweep = {{ connections = [1, 2, 3] }}\n\
             rate = {{ share = 0.5, work = \"most\", variant = \"a\" }}\n{variants}"
        );
        scenario::parse("t.toml", &text).unwrap_or_else(|mistake| panic!("{mistake}"))
    }

    fn schedule(order: &str, seed: u64) -> Schedule {
        Schedule::new(&experiment(order), Seed(seed), |_| true)
    }

    #[test]
    fn round_runs_each_trial_once_grouped_by_work() {
        let schedule = schedule("shuffled", 7);
        assert_eq!(schedule.len(), 18);
        for round in 1..=20 {
            let cells = schedule.round(round);
            let unique: BTreeSet<Cell> = cells.iter().copied().collect();
            assert_eq!((cells.len(), unique.len()), (18, 18));
            let mut works: Vec<usize> = cells.iter().map(|cell| cell.work).collect();
            works.dedup();
            assert_eq!(works.len(), 6, "{works:?}");
        }
    }

    #[test]
    fn paced_work_runs_after_its_reference() {
        for seed in 0..50 {
            let cells = schedule("shuffled", seed).round(1);
            let place = |work| cells.iter().position(|cell| cell.work == work);
            for work in 0..3 {
                assert!(place(work) < place(work + 3), "{cells:?}");
            }
        }
    }

    #[test]
    fn shuffle_differs_per_round_and_repeats_by_seed() {
        let rounds = |seed| -> Vec<Vec<Cell>> {
            let schedule = schedule("shuffled", seed);
            (1..=4).map(|round| schedule.round(round)).collect()
        };
        assert_eq!(rounds(1), rounds(1));
        assert_ne!(rounds(1), rounds(2));
        assert_ne!(rounds(1)[0], rounds(1)[1]);
    }

    #[test]
    fn variants_come_first_equally_often() {
        let schedule = schedule("shuffled", 3);
        let mut first = [0; 3];
        for round in 1..=300 {
            first[schedule.round(round)[0].variant] += 1;
        }
        assert!(
            first.iter().all(|count| (70..=130).contains(count)),
            "{first:?}"
        );
    }

    #[test]
    fn file_order_is_kept_on_request() {
        let schedule = Schedule::new(&experiment("file"), Seed(9), |cell| cell.variant != 1);
        let cells = schedule.round(3);
        assert_eq!(cells.len(), 12);
        assert!(cells.is_sorted(), "{cells:?}");
        assert!(Schedule::new(&experiment("file"), Seed(9), |_| false).is_empty());
    }
}
