//! Gains from a recorded step: the delay is raised once, and the wait is watched.
//!
//! **Problem.** The default gains suit writers that answer a delay at once. A device with a large write cache
//! answers later, and then they may be too high: the loop hunts. Somebody has to find gains that suit.
//!
//! **Model.** First order plus dead time. After a step of the delay by `D` at the instant 0, the wait is
//!
//! ```text
//! wait(t) = before                                              if t < dead_time
//!           before - gain D (1 - exp(-(t - dead_time) / lag))   otherwise
//! ```
//!
//! The fit has the least squares over the means of all periods. For a given dead time and lag, `before` and
//! `gain D` follow from a straight line; the other two are searched on a grid that shrinks around the best.
//!
//! **Rule.** SIMC (Skogestad, *Simple analytic rules for model reduction and PID controller tuning*, Journal
//! of Process Control 13, 2003), with a closed loop of `c = 5 d`:
//!
//! ```text
//! t1 = larger lag + smaller lag / 2        the lags: the plant's, and that of the EWMA ("half rule")
//! d  = dead time + smaller lag / 2 + T     T: half of it to measure a mean, half of it to hold a delay
//! Kp = t1 / (gain (c + d)) = t1 / (gain 6 d)
//! Ti = min(t1, 4 (c + d))  = min(t1, 24 d)
//! Td = 0
//! ```
//!
//! **Why this rule.** It has one number to choose, `c`. The paper of the rule calls `c = d` the fastest that
//! is wise, and a longer `c` calmer. Here, the wait is the mean of a few reads. With `c = d` the loop would
//! follow each slow read, and would overshoot so far at the first burst that the delay ends and begins anew.
//! Rules that push a plant to the edge of stability first (Ziegler and Nichols) would let the writers of a
//! machine in use swing.

use thiserror::Error;
use weir_model::{Instant, Span};

use crate::law::Law;
use crate::pid::{OneSidedPid, OneSidedPidConfig, PidProblem, ReadWait, ThrottleDelay, WaitObservation};

/// What was recorded: the mean wait in each period, around one step of the delay.
#[derive(Clone, PartialEq, Debug)]
pub struct StepResponse {
    /// How long a period is.
    pub period: Span,
    /// By how much the delay was raised.
    pub step: Span,
    /// The mean wait of the reads in each period before the step; `None` if there were none.
    pub before: Vec<Option<Span>>,
    /// The same after the step, from the period on that begins with it.
    pub after: Vec<Option<Span>>,
}

/// How a wait answers a delay: first order plus dead time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plant {
    /// The wait without a further delay.
    pub before: Span,
    /// How much wait a delay takes away, as a ratio. Above zero.
    pub gain: f64,
    /// How long nothing happens after a step.
    pub dead_time: Span,
    /// How long it then takes until 63 % of the wait that goes has gone.
    pub lag: Span,
    /// The share of the recorded variance that the model explains, up to 1.
    pub explained: f64,
}

/// Why no plant can be fitted.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
pub enum NoPlant {
    /// There are too few periods with reads.
    #[error("{before} periods with reads before the step and {after} after it; needed: 10 and 20")]
    TooFew {
        /// Before the step.
        before: usize,
        /// After the step.
        after: usize,
    },
    /// The delay was not raised.
    #[error("the delay was not raised")]
    NoStep,
    /// The waits do not fall with the step, or vary more by themselves.
    #[error(
        "the step of the delay explains {:.0} % of how the wait varied; needed: a fall, and 50 %",
        explained * 100.0
    )]
    NoAnswer {
        /// The share of the variance that the best model explains; zero if the wait rose.
        explained: f64,
    },
}

/// A period of a predicted loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predicted {
    /// The mean wait.
    pub wait: Span,
    /// The EWMA of the wait.
    pub smoothed: Span,
    /// The delay that the law sets at the end of the period.
    pub delay: ThrottleDelay,
}

/// A mean wait in seconds, and when its period ends, in seconds after the step.
type Sample = (f64, f64);

/// One try of the search: a line `wait = before - fall x answer` for a dead time and a lag.
#[derive(Clone, Copy)]
struct Line {
    dead_time: f64,
    lag: f64,
    before: f64,
    fall: f64,
    /// The sum of the squares of what the line leaves.
    left: f64,
}

impl StepResponse {
    fn samples(&self) -> impl Iterator<Item = Sample> {
        let period = self.period.as_secs_f64();
        let before = self.before.iter().map(|wait| (*wait, 0.0));
        let after = (1_u32..).zip(&self.after).map(move |(end, wait)| (*wait, f64::from(end) * period));
        before.chain(after).filter_map(|(wait, end)| Some((wait?.as_secs_f64(), end)))
    }
}

impl Plant {
    /// The plant that fits a recording best.
    ///
    /// # Errors
    /// If the recording is too short, or the waits do not follow the step.
    pub fn fit(recorded: &StepResponse) -> Result<Self, NoPlant> {
        let with_reads = |waits: &[Option<Span>]| waits.iter().flatten().count();
        let (before, after) = (with_reads(&recorded.before), with_reads(&recorded.after));
        if before < 10 || after < 20 {
            return Err(NoPlant::TooFew { before, after });
        }
        if recorded.step.is_zero() {
            return Err(NoPlant::NoStep);
        }
        let samples: Vec<Sample> = recorded.samples().collect();
        let period = recorded.period.as_secs_f64();
        let longest = samples.last().map_or(0.0, |(_, end)| end / 2.0);
        let best = search(&samples, period, longest);
        let explained = 1.0 - best.left / variation(&samples);
        // Without any variation there is no answer either.
        if !(best.fall > 0.0 && explained >= 0.5) {
            let explained = if best.fall > 0.0 { explained.max(0.0) } else { 0.0 };
            return Err(NoPlant::NoAnswer { explained });
        }
        Ok(Self {
            before: Span::from_secs_f64(best.before),
            gain: best.fall / recorded.step.as_secs_f64(),
            dead_time: Span::from_secs_f64(best.dead_time),
            lag: Span::from_secs_f64(best.lag),
            explained,
        })
    }

    /// The mean wait in the period that ends so long after a step of the delay, by the model.
    pub fn mean_wait(&self, step: Span, period: Span, end: Span) -> Span {
        let [dead_time, lag, period, end] = [self.dead_time, self.lag, period, end].map(Span::as_secs_f64);
        let fall = self.gain * step.as_secs_f64() * mean_answer(dead_time, lag, period, end);
        Span::from_secs_f64(self.before.as_secs_f64() - fall)
    }

    /// `config` with the gains that SIMC proposes for this plant.
    ///
    /// # Errors
    /// If the law cannot work with these gains: the plant hardly answers a delay.
    pub fn gains(&self, config: &OneSidedPidConfig) -> Result<OneSidedPidConfig, PidProblem> {
        let (lag, smoothing) = (self.lag.as_secs_f64(), config.smoothing.as_secs_f64());
        let (larger, smaller) = (lag.max(smoothing), lag.min(smoothing));
        let period = config.period.as_secs_f64();
        let dead_time = self.dead_time.as_secs_f64() + smaller / 2.0 + period;
        // Without any lag, the rule proposes the second term alone, and `Kp / Ti` stays the same for any
        // short `Ti`.
        let lag = (larger + smaller / 2.0).max(period / 10.0);
        let proposed = OneSidedPidConfig {
            proportional_gain: lag / (self.gain * 6.0 * dead_time),
            integral_time: Span::from_secs_f64(lag.min(24.0 * dead_time)),
            derivative_time: Span::ZERO,
            ..*config
        };
        proposed.check().map(|()| proposed)
    }

    /// The loop of the law and this plant, from the period on in which the writers begin.
    ///
    /// # Errors
    /// If the law cannot work with that configuration.
    pub fn predict(
        &self,
        config: OneSidedPidConfig,
        threshold: Span,
        periods: u32,
    ) -> Result<Vec<Predicted>, PidProblem> {
        /// Into so many parts is a period divided.
        const PARTS: u32 = 20;
        let mut law = OneSidedPid::new(config)?;
        let [period, dead_time, lag] = [config.period, self.dead_time, self.lag].map(Span::as_secs_f64);
        let part = period / f64::from(PARTS);
        let follow = if lag > 0.0 { -(-part / lag).exp_m1() } else { 1.0 };
        let (mut fall, mut now) = (0.0, Instant::ORIGIN);
        let mut predicted: Vec<Predicted> = Vec::new();
        for number in 0..periods {
            let begin = f64::from(number) * period;
            let mut sum = 0.0;
            for at in 0..PARTS {
                // The delay that acts now was set at the end of a period.
                let set = ((begin + f64::from(at) * part - dead_time) / period).floor();
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates at none
                let acting = (set >= 1.0).then(|| predicted.get(set as usize - 1)).flatten();
                let delay = acting.map_or(0.0, |earlier| earlier.delay.span().as_secs_f64());
                fall += follow * (self.gain * delay - fall);
                sum += self.before.as_secs_f64() - fall;
            }
            now = now + config.period;
            let wait = Span::from_secs_f64(sum / f64::from(PARTS));
            let seen = WaitObservation { wait: ReadWait::Finished(wait), threshold, reaches: true };
            let delay = law.step(now, &seen);
            predicted.push(Predicted { wait, smoothed: law.smoothed_wait(), delay });
        }
        Ok(predicted)
    }
}

/// The best line over all dead times and lags up to `longest`.
fn search(samples: &[Sample], period: f64, longest: f64) -> Line {
    const CELLS: u32 = 20;
    const ROUNDS: u32 = 8;
    let (mut dead_times, mut lags) = ((0.0, longest), (0.0, longest));
    let mut best = line(samples, period, 0.0, 0.0);
    for _ in 0..ROUNDS {
        let points = |(from, to): (f64, f64)| {
            (0..=CELLS).map(move |cell| from + (to - from) * f64::from(cell) / f64::from(CELLS))
        };
        for dead_time in points(dead_times) {
            for lag in points(lags) {
                let tried = line(samples, period, dead_time, lag);
                if tried.left < best.left {
                    best = tried;
                }
            }
        }
        let around = |at: f64, (from, to): (f64, f64)| {
            let cells = 2.0 * (to - from) / f64::from(CELLS);
            ((at - cells).max(0.0), (at + cells).min(longest))
        };
        (dead_times, lags) = (around(best.dead_time, dead_times), around(best.lag, lags));
    }
    best
}

/// The line of least squares for a dead time and a lag.
fn line(samples: &[Sample], period: f64, dead_time: f64, lag: f64) -> Line {
    let answer = |end: f64| mean_answer(dead_time, lag, period, end);
    let (mut count, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (wait, end) in samples {
        let answer = answer(*end);
        count += 1.0;
        x += answer;
        y += wait;
        xx += answer * answer;
        xy += answer * wait;
    }
    let spread = xx - x * x / count;
    let fall = if spread > 0.0 { -(xy - x * y / count) / spread } else { 0.0 };
    let before = (y + fall * x) / count;
    let left = samples.iter().map(|(wait, end)| (wait - before + fall * answer(*end)).powi(2)).sum();
    Line { dead_time, lag, before, fall, left }
}

/// The mean, over the period that ends at `end`, of an answer that rises from 0 to 1 after a step at 0.
fn mean_answer(dead_time: f64, lag: f64, period: f64, end: f64) -> f64 {
    let sum_until = |at: f64| {
        let since = (at - dead_time).max(0.0);
        if lag > 0.0 { since + lag * (-since / lag).exp_m1() } else { since }
    };
    (sum_until(end) - sum_until(end - period)) / period
}

/// The sum of the squares of what the mean leaves.
#[allow(clippy::cast_precision_loss)] // a recording of a few hundred periods
fn variation(samples: &[Sample]) -> f64 {
    let mean = samples.iter().map(|(wait, _)| wait).sum::<f64>() / samples.len() as f64;
    samples.iter().map(|(wait, _)| (wait - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests;
