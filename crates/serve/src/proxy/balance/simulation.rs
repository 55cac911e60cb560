//! Simulations for the tests of policies: groups whose state does not change, and queues in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use onrush_engine::Instant;
use onrush_engine::random::{Random, mix};

use super::{BalanceRequest, Balancer, Member, Policy};
use crate::limits::WEIGHT_SCALE;
use crate::proxy::ewma::{Decay, Ewma};

/// A member with a scaled weight, as groups create it.
pub(super) fn member(server: u32, weight: u32) -> Member {
    Member {
        server,
        weight: weight * WEIGHT_SCALE,
        load_max: u32::MAX,
        identity: mix(u64::from(server)),
    }
}

/// A group whose state does not change between choices.
#[derive(Clone, Debug)]
pub(super) struct Draws<'a> {
    pub(super) policy: Policy,
    pub(super) weights: &'a [u32],
    pub(super) seed: u64,
    /// Requests in flight by server; 0 beyond the end.
    pub(super) load: &'a [u32],
    /// Latency in nanoseconds by server; unknown beyond the end.
    pub(super) latency: &'a [u64],
    pub(super) full: &'a [u32],
    pub(super) avoid: &'a [u32],
}

impl<'a> Draws<'a> {
    pub(super) fn idle(policy: Policy, weights: &'a [u32], seed: u64) -> Self {
        Self {
            policy,
            weights,
            seed,
            load: &[],
            latency: &[],
            full: &[],
            avoid: &[],
        }
    }

    pub(super) fn balancer(&self) -> Balancer {
        let members: Vec<Member> = (0..)
            .zip(self.weights)
            .map(|(server, &weight)| member(server, weight))
            .collect();
        Balancer::new(self.policy, &members, self.seed)
    }

    pub(super) fn choose(&self, balancer: &mut Balancer, key: u64) -> Option<u32> {
        let load = |server: u32| {
            if self.full.contains(&server) {
                return u32::MAX;
            }
            self.load.get(server as usize).copied().unwrap_or(0)
        };
        let latency = |server: u32| self.latency.get(server as usize).copied().unwrap_or(0);
        balancer.choose(&BalanceRequest {
            key,
            load: &load,
            load_sum: self.load.iter().sum(),
            latency: &latency,
            avoid: self.avoid,
        })
    }
}

/// Number of choices of each server, for the keys `0..count`.
pub(super) fn shares(draws: &Draws<'_>, count: u32) -> Vec<u32> {
    let mut balancer = draws.balancer();
    let mut shares = vec![0; draws.weights.len()];
    for key in 0..u64::from(count) {
        let server = draws.choose(&mut balancer, key).expect("some server fits");
        shares[server as usize] += 1;
    }
    shares
}

/// Asserts that the shares are within five standard deviations of a binomial distribution by weight.
#[track_caller]
pub(super) fn assert_shares(shares: &[u32], weights: &[u32], seed: u64) {
    let count = f64::from(shares.iter().sum::<u32>());
    let sum = f64::from(weights.iter().sum::<u32>());
    for (&share, &weight) in shares.iter().zip(weights) {
        let likely = f64::from(weight) / sum;
        let deviation = (count * likely * (1.0 - likely)).sqrt();
        assert!(
            (f64::from(share) - count * likely).abs() <= 5.0 * deviation,
            "{shares:?} for the weights {weights:?} with seed {seed}"
        );
    }
}

/// Servers with one queue each. Arrivals are a Poisson process, service times are exponential.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    pub(super) policy: Policy,
    pub(super) weights: Vec<u32>,
    /// Mean service time by server, in nanoseconds.
    pub(super) service: Vec<u64>,
    /// Mean time between arrivals, in nanoseconds.
    pub(super) gap: f64,
    pub(super) requests: u32,
    /// Number of requests at which a server is full.
    pub(super) load_max: u32,
    pub(super) slowdown: Option<Slowdown>,
    pub(super) seed: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Slowdown {
    pub(super) server: usize,
    pub(super) factor: u64,
    /// The slow period, in numbers of arrived requests.
    pub(super) requests: Range<u32>,
}

pub(super) struct Outcome {
    /// Time from arrival to completion in nanoseconds, ascending.
    latencies: Vec<u64>,
    /// The server of each request.
    chosen: Vec<u32>,
    /// Number of requests by server.
    pub(super) taken: Vec<u32>,
}

impl Queues {
    /// `count` equal servers with a mean service time of 1 ms and this utilisation.
    pub(super) fn even(policy: Policy, count: usize, utilisation: f64, seed: u64) -> Self {
        Self {
            policy,
            weights: vec![1; count],
            service: vec![1_000_000; count],
            gap: 1_000_000.0 / (count as f64 * utilisation),
            requests: 100_000,
            load_max: u32::MAX,
            slowdown: None,
            seed,
        }
    }

    pub(super) fn run(&self) -> Outcome {
        let count = self.weights.len();
        let members: Vec<Member> = (0..)
            .zip(&self.weights)
            .map(|(server, &weight)| Member {
                load_max: self.load_max,
                ..member(server, weight)
            })
            .collect();
        let mut balancer = Balancer::new(self.policy, &members, self.seed);
        let chance = Random::new(!self.seed);
        let mut ewmas = vec![Ewma::default(); count];
        let decay = Decay::new(TIME_CONSTANT);
        // Arrival times of the queued requests by server; completion times of the requests in service.
        let mut queues: Vec<VecDeque<u64>> = vec![VecDeque::new(); count];
        let mut done: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut outcome = Outcome {
            latencies: Vec::new(),
            chosen: Vec::new(),
            taken: vec![0; count],
        };
        let mut comes = 0.0;
        for request in 0..self.requests {
            comes += self.gap * chance.exponential();
            let now = comes as u64;
            while let Some(&Reverse((at, server))) = done.peek().filter(|done| done.0.0 <= now) {
                done.pop();
                let latency = at
                    - queues[server]
                        .pop_front()
                        .expect("the server had this request");
                outcome.latencies.push(latency);
                let at = Instant::from_nanoseconds(at);
                ewmas[server].observe(Duration::from_nanos(latency), at, decay);
                if !queues[server].is_empty() {
                    let work = self.work(server, request, &chance);
                    done.push(Reverse((at.nanoseconds() + work, server)));
                }
            }
            let server = self.choose(&mut balancer, &queues, &ewmas, now);
            outcome.chosen.push(server as u32);
            outcome.taken[server] += 1;
            queues[server].push_back(now);
            if queues[server].len() == 1 {
                let work = self.work(server, request, &chance);
                done.push(Reverse((now + work, server)));
            }
        }
        outcome.latencies.sort_unstable();
        outcome
    }

    fn choose(
        &self,
        balancer: &mut Balancer,
        queues: &[VecDeque<u64>],
        ewmas: &[Ewma],
        now: u64,
    ) -> usize {
        let now = Instant::from_nanoseconds(now);
        let decay = Decay::new(TIME_CONSTANT);
        let question = BalanceRequest {
            key: now.nanoseconds(),
            load: &|server| queues[server as usize].len() as u32,
            load_sum: 0,
            latency: &|server| ewmas[server as usize].value(now, decay),
            avoid: &[],
        };
        balancer.choose(&question).expect("never full") as usize
    }

    fn work(&self, server: usize, request: u32, chance: &Random) -> u64 {
        let slow = self
            .slowdown
            .as_ref()
            .filter(|slow| slow.server == server && slow.requests.contains(&request));
        let mean = self.service[server] * slow.map_or(1, |slow| slow.factor);
        (mean as f64 * chance.exponential()) as u64
    }
}

impl Outcome {
    /// In nanoseconds.
    pub(super) fn percentile(&self, percent: usize) -> u64 {
        self.latencies[self.latencies.len() * percent / 100]
    }

    /// Fraction of `requests` that `server` got.
    pub(super) fn share(&self, server: u32, requests: Range<usize>) -> f64 {
        let chosen = &self.chosen[requests];
        chosen.iter().filter(|&&taken| taken == server).count() as f64 / chosen.len() as f64
    }
}

/// Short, so that a recovered server is used again within virtual seconds.
const TIME_CONSTANT: Duration = Duration::from_millis(500);
