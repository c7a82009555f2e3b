//! A delay by feedback: the one-sided PID of the packet-delay paper (Bjørgeengen and Haugerud, *Using TCP/IP
//! traffic shaping to achieve iSCSI service predictability*, LISA 2010, appendix).
//!
//! **Problem.** Reads wait because others write too much. If the replies to the writers are delayed, the
//! writers send less, and the reads wait less. The delay should be as short as the readers' threshold allows,
//! and zero while nothing is wrong. How much a delay achieves depends on the device and on the load, and both
//! change. The law assumes only that more delay means less wait, and finds the delay by watching.
//!
//! **Equation** (2, in incremental form; every period `T`; `u` is the delay in steps of 0.5 ms):
//!
//! ```text
//! e_k = EWMA_k - setpoint
//! u_k = clamp( u_(k-1) + Kp (e_k - e_(k-1))                    follows each change of the wait
//!                      + (Kp T / Ti) e_k                       moves for as long as an error lasts
//!                      + (Kp Td / T) (e_k - 2 e_(k-1) + e_(k-2)),  brakes where the wait turns
//!              0, u_max)
//! delay = ceil(u_k) steps
//! ```
//!
//! **Why this form.** The loop is in balance at whatever delay the load needs, so the law needs no model of
//! the device. The output is clamped, and not the error, so nothing winds up: an hour at the ceiling ends
//! as soon as a minute does. And an error below zero counts like one above zero, so it takes the delay back
//! to zero. *One-sided* means that there is no delay below zero.
//!
//! Delay and wait are both times, so `Kp` has no unit: 0.25 adds 0.25 ms of delay for a wait that grew by
//! 1 ms. Writers with a fixed number of requests outstanding lose about as much wait as they gain delay,
//! whatever the device: each request spends the same time in its cycle, at the device or delayed. So one set
//! of gains serves disks and flash.
//!
//! # On real devices
//!
//! - **A period without a finished read** says little, so the EWMA stays as it is. If the period counted as
//!   one without a wait, a reader that reads seldom would be guarded less: with 5 reads a second, half of the
//!   periods are empty. Reads that are outstanding count by their age as soon as that is above the EWMA: a
//!   device that hangs finishes none just when they wait longest.
//! - **No reads for 300 ms** count as a wait of zero from then on, so the EWMA decays. Nobody is left to be
//!   guarded.
//! - **An error that lasts.** The equation alone goes from the ceiling to zero within half a second if an
//!   error of `-E` lasts and `E >= u_max Ti / (Kp 0.5 s)`. With a long ceiling and a short threshold, no wait
//!   is so far below the setpoint. Example: with a ceiling of 20 ms and the default gains, `E` is 32 ms; with
//!   a threshold of 15 ms there is no such error. Higher gains would help, but would make the loop hunt. So
//!   the law adds a rule. Once each wait has been at most half the setpoint for 300 ms, the delay falls in a
//!   straight line. It is zero 300 ms later, and stays so while the EWMA is at most three quarters of the
//!   setpoint. A loop in balance does not get there, because its waits are near the setpoint. With this rule,
//!   an error of half the setpoint or more takes the delay to zero within 1 s, whatever the gains. An
//!   exception follows.
//! - **The wait may be low because of the delay.** Then it rises while the delay falls, and the fall ends
//!   where the wait is above three quarters of the setpoint. If the delay were cut to zero at once, the law
//!   would begin anew, and find the same delay again: every 5 s with 64 writes outstanding on a 10 ms disk. A
//!   delay above 100 ms takes three times its length to fall, because what it achieves is seen only after
//!   the delay itself.
//! - **A long delay** is therefore a longer dead time. The loop hunts if it turns the delay as far as ever
//!   before it sees what that achieves. So above 200 ms, the gain falls in proportion: at 400 ms it is half.
//!   That is SIMC's rule with the law's own delay as the dead time; below 200 ms the equation is the paper's.
//! - **The threshold changes.** The differences in the equation compare errors against the same setpoint, the
//!   new one. So a new threshold moves the delay by the second term alone. If the old errors had the old
//!   setpoint, the first and third term would see a jump of the wait that never happened.
//! - **Room for what cannot be foreseen.** The paper's setpoint is the threshold itself; then the wait is
//!   above it half of the time. So the setpoint is a share of the threshold (0.9 by default).
//! - **Nobody to delay.** Heavy writers are found once a second, and reads may wait for too long before that.
//!   The second term would add up an error that no delay has met yet: the law would begin at its ceiling, the
//!   wait would fall to nothing, and the rule for an error that lasts would end the delay. So while a delay
//!   reaches nobody, it is that of the first term alone, as if the wait had just left the setpoint.
//! - **The first step.** Before it, nothing was read: the EWMA is zero, and so is the delay.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use weir_model::{Instant, Span};

use crate::law::Law;

/// How the law is tuned.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct OneSidedPidConfig {
    /// The control period `T`. 100 ms, as in the paper: shorter costs more and has fewer reads to measure.
    pub period: Span,
    /// `Kp`: how much delay a change of the wait adds, as a ratio. 0.25: see [`OneSidedPidConfig::default`].
    pub proportional_gain: f64,
    /// `Ti`: after this time, an error that lasts has added as much delay as its onset did. 200 ms, as long
    /// as the smoothing: so the second term makes good the lag of the EWMA (SIMC: the largest lag of the
    /// loop).
    pub integral_time: Span,
    /// `Td`: how far ahead the trend of the wait is followed. Zero: SIMC proposes none for a loop with one
    /// lag, and the difference of two differences of a few reads is mostly noise.
    pub derivative_time: Span,
    /// The time constant of the EWMA of the wait. 200 ms: a single slow read moves the delay little, and a
    /// pause is seen within half a second. Zero: no smoothing.
    pub smoothing: Span,
    /// The setpoint as a share of the threshold. 0.9: the wait may sway by a tenth. 1.0: the paper's letter.
    pub setpoint_share: f64,
    /// `u_max`: the longest delay, a multiple of 0.5 ms. 20 ms: hides what some 7 requests of 3 ms wait for
    /// one another, and is far from every time-out.
    pub ceiling: Span,
}

/// The gains are SIMC's ([`Plant::gains`](crate::Plant::gains)) for writers with a fixed number of requests
/// outstanding: a plant of gain 1 that answers after 33 ms.
impl Default for OneSidedPidConfig {
    fn default() -> Self {
        Self {
            period: Span::from_millis(100),
            proportional_gain: 0.25,
            integral_time: Span::from_millis(200),
            derivative_time: Span::ZERO,
            smoothing: Span::from_millis(200),
            setpoint_share: 0.9,
            ceiling: Span::from_millis(20),
        }
    }
}

/// What is wrong with a configuration of the law.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
pub enum PidProblem {
    /// The period is zero, or so long that a lasting error could not end the delay within 1 s.
    #[error("a control period of {0}; accepted: above zero, at most 250ms")]
    Period(Span),
    /// The gain is no number, is not above zero, or no loop could be stable with it.
    #[error("a proportional gain of {0}; accepted: above zero, at most 100")]
    ProportionalGain(f64),
    /// The integral time is zero.
    #[error("an integral time of zero; accepted: above zero")]
    IntegralTime,
    /// The share of the threshold is no share.
    #[error("a setpoint of {0} x the threshold; accepted: above zero, at most 1")]
    SetpointShare(f64),
    /// The ceiling is no delay that the law can set.
    #[error("a ceiling of {0}; accepted: a multiple of 0.5ms, above zero")]
    Ceiling(Span),
}

/// How long the reads of a period waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadWait {
    /// Reads finished, after this time on average.
    Finished(Span),
    /// None finished. Those that are outstanding have waited for this time so far, on average.
    Outstanding(Span),
    /// There were none.
    NoReads,
}

impl ReadWait {
    /// The mean wait of the reads that finished; `None` if none did.
    pub const fn finished(self) -> Option<Span> {
        match self {
            Self::Finished(wait) => Some(wait),
            Self::Outstanding(_) | Self::NoReads => None,
        }
    }
}

/// The observation of the readers in the last period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitObservation {
    /// How long their reads waited.
    pub wait: ReadWait,
    /// The wait that must not be exceeded. It may change from one step to the next.
    pub threshold: Span,
    /// Whether a delay would reach anybody.
    pub reaches: bool,
}

/// The law's decision for the next period: a delay, as a number of steps of 0.5 ms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct ThrottleDelay {
    steps: u32,
}

impl ThrottleDelay {
    /// No delay.
    pub const ZERO: Self = Self { steps: 0 };
    /// The paper's granularity.
    pub const STEP: Span = Span::from_micros(500);

    /// The delay as a time.
    pub const fn span(self) -> Span {
        Self::STEP.saturating_mul(self.steps as u64)
    }

    /// How many steps of [`ThrottleDelay::STEP`] the delay has.
    pub const fn steps(self) -> u32 {
        self.steps
    }

    /// True for no delay.
    pub const fn is_zero(self) -> bool {
        self.steps == 0
    }

    /// The delay of exactly that time; `None` if it is no multiple of a step, or none that can be counted.
    fn exactly(span: Span) -> Option<Self> {
        let (nanos, step) = (span.as_nanos(), Self::STEP.as_nanos());
        let steps = u32::try_from(nanos / step).ok()?;
        nanos.is_multiple_of(step).then_some(Self { steps })
    }
}

impl OneSidedPidConfig {
    /// Whether the law can work with this configuration.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), PidProblem> {
        let gain = self.proportional_gain;
        let share = self.setpoint_share;
        if self.period.is_zero() || self.period > LONGEST_PERIOD {
            Err(PidProblem::Period(self.period))
        } else if !(gain > 0.0 && gain <= HIGHEST_GAIN) {
            Err(PidProblem::ProportionalGain(gain))
        } else if self.integral_time.is_zero() {
            Err(PidProblem::IntegralTime)
        } else if !(share > 0.0 && share <= 1.0) {
            Err(PidProblem::SetpointShare(share))
        } else if ThrottleDelay::exactly(self.ceiling).is_none_or(ThrottleDelay::is_zero) {
            Err(PidProblem::Ceiling(self.ceiling))
        } else {
            Ok(())
        }
    }

    /// The weight of the newest wait in the EWMA: a lag of the time constant by Euler's backward method, as
    /// in the equation.
    fn weight(&self) -> f64 {
        let (period, smoothing) = (self.period.as_secs_f64(), self.smoothing.as_secs_f64());
        period / (period + smoothing)
    }
}

/// The rule for an error that lasts needs 600 ms, and up to a period more. That is within 1 s.
const LONGEST_PERIOD: Span = Span::from_millis(250);
/// A wait of at most this share of the setpoint is far below it.
const FAR_BELOW: f64 = 0.5;
/// While the delay falls, up to this share is still far below. An idle disk may need 0.4 of the setpoint for
/// a read on average, so with two reads in a period the wait is above a half now and then.
const STAYS_FAR_BELOW: f64 = 0.75;
/// The delay falls once each wait has been far below the setpoint for so long. No reads count as a wait of
/// zero once there have been none for so long.
const LASTING: Span = Span::from_millis(300);
/// How long a delay takes to fall to zero then, if it is not a long one.
const FALL: Span = Span::from_millis(300);
/// How long a long delay takes to fall, as a multiple of itself.
const FALL_OF_LONG: f64 = 3.0;
/// From this delay on, the gain falls in proportion. Above it, the delay is the largest part of the loop's
/// dead time. With 100 ms, a delay of 760 ms takes longer to be found; with no bound, the loop hunts.
const LONG: Span = Span::from_millis(200);
/// A gain that no plant allows: a delay of 100 ms for each millisecond of wait.
const HIGHEST_GAIN: f64 = 100.0;

/// The law. Its state is the delay, and the EWMA of the last two steps.
#[derive(Clone, PartialEq, Debug)]
pub struct OneSidedPid {
    config: OneSidedPidConfig,
    /// `u`, in steps.
    delay: f64,
    /// The EWMA at the last step, in steps.
    ewma: f64,
    /// The EWMA at the step before.
    ewma_before: f64,
    /// Since when each wait has been far below the setpoint.
    far_below: Option<Instant>,
    /// The delay that falls to zero because of that, if one does.
    fall: Option<Fall>,
    /// The last step with reads.
    last_reads: Instant,
}

/// A delay that falls to zero in a straight line.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Fall {
    begun: Instant,
    /// In steps.
    from: f64,
}

impl Fall {
    /// How much of the delay is left, in steps, if it is set for a period.
    fn left(self, now: Instant, period: Span) -> f64 {
        let from = ThrottleDelay::STEP.as_secs_f64() * self.from;
        let takes = FALL.as_secs_f64().max(FALL_OF_LONG * from);
        let passed = (now.saturating_since(self.begun) + period).as_secs_f64();
        self.from * (1.0 - passed / takes).max(0.0)
    }
}

impl OneSidedPid {
    /// The law without a delay.
    ///
    /// # Errors
    /// If the law cannot work with that configuration.
    pub fn new(config: OneSidedPidConfig) -> Result<Self, PidProblem> {
        config.check()?;
        let (delay, ewma, ewma_before) = (0.0, 0.0, 0.0);
        let (far_below, fall, last_reads) = (None, None, Instant::ORIGIN);
        Ok(Self { config, delay, ewma, ewma_before, far_below, fall, last_reads })
    }

    /// Another tuning, from the delay and the EWMA as they are.
    ///
    /// # Errors
    /// If the law cannot work with that configuration. Then nothing has changed.
    pub fn set_config(&mut self, config: OneSidedPidConfig) -> Result<(), PidProblem> {
        config.check()?;
        self.config = config;
        self.delay = self.delay.min(in_steps(config.ceiling));
        Ok(())
    }

    /// The delay in force.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 0 to a u32
    pub fn delay(&self) -> ThrottleDelay {
        ThrottleDelay { steps: self.delay.ceil() as u32 }
    }

    /// The delay in force is no longer than this one, so the law goes on from there. An error that no longer
    /// delay has met must not add up.
    pub fn limit(&mut self, delay: Span) {
        self.delay = self.delay.min(in_steps(delay));
    }

    /// The EWMA of the wait.
    pub fn smoothed_wait(&self) -> Span {
        Span::from_secs_f64(self.ewma * ThrottleDelay::STEP.as_secs_f64())
    }

    /// Whether the law would like a longer delay than it may set.
    pub fn is_at_ceiling(&self) -> bool {
        self.delay >= in_steps(self.config.ceiling)
    }

    /// The wait that a period tells, in steps; `None` if it tells nothing.
    fn told(&mut self, now: Instant, seen: ReadWait) -> Option<f64> {
        if seen != ReadWait::NoReads {
            self.last_reads = now;
        }
        match seen {
            ReadWait::Finished(wait) => Some(in_steps(wait)),
            // They will wait for at least so long.
            ReadWait::Outstanding(age) => Some(in_steps(age)).filter(|age| *age > self.ewma),
            ReadWait::NoReads => (now.saturating_since(self.last_reads) >= LASTING).then_some(0.0),
        }
    }

    /// The delay that falls at this step, if the last waits were far below the setpoint.
    fn fall(&mut self, now: Instant, wait: Option<f64>, setpoint: f64) -> Option<Fall> {
        if let Some(wait) = wait {
            // After the fall, a single slow read of a device that is idle is no reason to begin anew.
            let has_ended = self.fall.is_some_and(|fall| fall.left(now, self.config.period) <= 0.0);
            let wait = if has_ended { wait.min(self.ewma) } else { wait };
            let share = if self.fall.is_some() { STAYS_FAR_BELOW } else { FAR_BELOW };
            self.far_below = (wait <= setpoint * share).then(|| self.far_below.unwrap_or(now));
        }
        let falls = self.far_below.is_some_and(|since| now.saturating_since(since) >= LASTING);
        self.fall = falls.then(|| self.fall.unwrap_or(Fall { begun: now, from: self.delay }));
        self.fall
    }
}

impl Law for OneSidedPid {
    type Observation = WaitObservation;
    type Setting = ThrottleDelay;

    fn step(&mut self, now: Instant, seen: &WaitObservation) -> ThrottleDelay {
        let OneSidedPidConfig { period, integral_time, derivative_time, .. } = self.config;
        let period = period.as_secs_f64();
        let gain = self.config.proportional_gain * in_steps(LONG) / self.delay.max(in_steps(LONG));
        let setpoint = in_steps(seen.threshold) * self.config.setpoint_share;
        let (before, earlier) = (self.ewma, self.ewma_before);
        let wait = self.told(now, seen.wait);
        let ewma = wait.map_or(before, |wait| before + self.config.weight() * (wait - before));
        (self.ewma, self.ewma_before) = (ewma, before);

        let proportional = ewma - before;
        let integral = period / integral_time.as_secs_f64() * (ewma - setpoint);
        let derivative = derivative_time.as_secs_f64() / period * (ewma - 2.0 * before + earlier);
        let delay = if seen.reaches {
            self.delay + gain * (proportional + integral + derivative)
        } else {
            gain * (ewma - setpoint)
        };
        self.delay = delay.clamp(0.0, in_steps(self.config.ceiling));
        if let Some(fall) = self.fall(now, wait, setpoint) {
            self.delay = self.delay.min(fall.left(now, self.config.period));
        }
        self.delay()
    }
}

fn in_steps(span: Span) -> f64 {
    span.as_secs_f64() / ThrottleDelay::STEP.as_secs_f64()
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
