//! The only module that reads the time: monotonic for durations, wall clock for dates, virtual for simulated cores.

use std::cell::Cell;
use std::io;
use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::rc::Rc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A point on a core's monotonic clock, in nanoseconds since an unspecified origin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(
    /// Nanoseconds plus one, so that an `Option` of it has the same size: every idle connection has several.
    NonZeroU64,
);

impl Instant {
    /// The instant `nanoseconds` after the clock's origin.
    pub const fn from_nanoseconds(nanoseconds: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanoseconds))
    }

    /// Nanoseconds since the clock's origin.
    pub const fn nanoseconds(self) -> u64 {
        self.0.get() - 1
    }

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.nanoseconds_since(earlier))
    }

    /// The instant `duration` before this one; not before the clock's origin.
    pub const fn before(self, duration: Duration) -> Self {
        Self::from_nanoseconds(
            self.nanoseconds()
                .saturating_sub(duration.as_nanos() as u64),
        )
    }

    /// Nanoseconds from `earlier` to `self`; zero when `earlier` is later.
    pub const fn nanoseconds_since(self, earlier: Instant) -> u64 {
        self.0.get().saturating_sub(earlier.0.get())
    }
}

impl Default for Instant {
    /// The clock's origin.
    fn default() -> Self {
        Self::from_nanoseconds(0)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// Saturates at the end of the clock, 584 years away.
    fn add(self, duration: Duration) -> Instant {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_add(nanoseconds))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.since(earlier)
    }
}

/// Reads the monotonic clock (CLOCK_MONOTONIC, by vDSO: tens of nanoseconds).
pub fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_nanoseconds(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Seconds since 1970-01-01T00:00:00Z by the system's wall clock.
pub fn unix_seconds() -> u64 {
    clock_gettime(ClockId::RealtimeCoarse).tv_sec as u64
}

/// Time since 1970-01-01T00:00:00Z by the system's wall clock, exactly.
pub fn unix_time() -> Duration {
    let time = clock_gettime(ClockId::Realtime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec as u32)
}

/// CPU time and scheduling of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadTime {
    /// Time for which it has run.
    pub ran: Duration,
    /// Time for which it was ready to run and waited for a CPU (/proc/thread-self/schedstat); `None` if unknown.
    pub waited: Option<Duration>,
    /// How often it was scheduled, from the same file.
    pub runs: Option<u64>,
}

/// CPU time and scheduling of the calling thread so far.
pub fn thread_time() -> ThreadTime {
    let ran = clock_gettime(ClockId::ThreadCPUTime);
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat");
    let schedstat = schedstat.unwrap_or_default();
    let number = |place| schedstat.split_ascii_whitespace().nth(place)?.parse().ok();
    ThreadTime {
        ran: Duration::new(ran.tv_sec as u64, ran.tv_nsec as u32),
        waited: number(1).map(Duration::from_nanos),
        runs: number(2),
    }
}

/// The accuracy of the wall clock, as reported to the kernel by the program that synchronizes it (NTP, PTP).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockAccuracy {
    /// Whether a synchronizing program runs and reports the clock as synchronized.
    pub is_synchronized: bool,
    /// Measured offset that the kernel has not corrected yet, in nanoseconds.
    pub offset_ns: i64,
    /// Estimated error of the clock.
    pub error_estimated: Duration,
    /// Maximum error of the clock, as long as its sources are correct.
    pub error_max: Duration,
}

/// Reads the accuracy of the wall clock (adjtimex(2)); `None` where a sandbox forbids the call.
pub fn clock_accuracy() -> Option<ClockAccuracy> {
    // SAFETY: all fields are integers, for which zero is valid; no mode is set, so nothing is changed.
    let mut told: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most one `timex` to the pointer; the `timex` outlives the call.
    let state = unsafe { libc::adjtimex(&raw mut told) };
    if state < 0 {
        return None;
    }
    let unit = if told.status & libc::STA_NANO != 0 {
        1
    } else {
        1000
    };
    // The kernel bounds both by 16 s; they are never negative.
    let microseconds = |value: libc::c_long| Duration::from_micros(value.max(0) as u64);
    Some(ClockAccuracy {
        is_synchronized: state != libc::TIME_ERROR && told.status & libc::STA_UNSYNC == 0,
        offset_ns: told.offset * unit,
        error_estimated: microseconds(told.esterror),
        error_max: microseconds(told.maxerror),
    })
}

/// CPU time of the calling thread, user and system.
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU time of a process since it started: user and system time of all its threads, including ended ones. The clock of
/// an ended process can be read until its parent waits for it. Afterwards, and for an unknown ID, this is an error.
pub fn process_cpu_time(pid: u32) -> io::Result<Duration> {
    /// PID_MAX_LIMIT of the kernel. A clock ID has 29 bits for it; larger numbers would be other clocks.
    const PID_MAX: u32 = 1 << 22;
    let pid = match pid {
        // The C library takes 0 as the calling process.
        1..=PID_MAX => pid as libc::pid_t,
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the C library writes one clock id to `clock`, which outlives the call.
    let outcome = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
    if outcome != 0 {
        return Err(io::Error::from_raw_os_error(outcome));
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one `timespec` to `time`, which outlives the call.
    let outcome = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).map_err(|_| io::ErrorKind::InvalidData)?;
    let nanoseconds = u32::try_from(time.tv_nsec).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(Duration::new(seconds, nanoseconds))
}

/// Makes the calling thread's waits end on time. By default the kernel may end them up to 50 us late to combine
/// wake-ups, which would delay every request that starts at a set time.
pub(crate) fn disable_timer_slack() {
    // Fails only in a sandbox that forbids it (PR_SET_TIMERSLACK(2const)); then timers are a little late.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

#[derive(Clone, Debug)]
pub(crate) enum Clock {
    Real,
    /// Nanoseconds, advanced only by the simulation, and the wall-clock time at its start in seconds.
    Virtual(Rc<Cell<u64>>, u64),
}

impl Clock {
    pub(crate) fn now(&self) -> Instant {
        match self {
            Clock::Real => now(),
            Clock::Virtual(nanoseconds, _) => Instant::from_nanoseconds(nanoseconds.get()),
        }
    }

    pub(crate) fn unix_seconds(&self) -> u64 {
        match self {
            Clock::Real => unix_seconds(),
            Clock::Virtual(nanoseconds, began) => began + nanoseconds.get() / 1_000_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_errors_are_bounded() {
        let Some(discipline) = clock_accuracy() else {
            return eprintln!("skipped: adjtimex(2) is forbidden here");
        };
        // The kernel's bound (NTP_PHASE_LIMIT), which an unsynchronized clock reaches.
        let bound = Duration::from_secs(16);
        assert!(discipline.error_max <= bound, "{discipline:?}");
        assert!(discipline.error_estimated <= bound, "{discipline:?}");
    }

    #[test]
    fn clock_of_process_counts_ended_threads() {
        let ours = std::process::id();
        let before = process_cpu_time(ours).expect("our clock");
        let worker = std::thread::spawn(|| {
            let own = || clock_gettime(ClockId::ThreadCPUTime);
            while own().tv_sec == 0 && own().tv_nsec < 50_000_000 {}
        });
        worker.join().expect("it ends");
        let used = process_cpu_time(ours).expect("our clock") - before;
        assert!(used >= Duration::from_millis(50), "{used:?}");
    }

    #[test]
    fn process_without_id_has_no_clock() {
        for pid in [0, u32::MAX, i32::MAX as u32] {
            assert!(process_cpu_time(pid).is_err(), "{pid}");
        }
    }
}
