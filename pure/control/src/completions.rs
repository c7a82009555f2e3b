//! What Façade's and Maestro's laws here add to their papers: the **completions**, each with a name.
//!
//! A completion is a rule that the paper does not print, or prints otherwise. Without any of them, a law is
//! **literal**: it does exactly what its paper says. A pool always has all of them. Only an experiment can
//! leave some out, to show what each is worth (`docs/papers/ablation.md`).
//!
//! Not listed are rules that no pool can be without, and rules for what the papers do not speak of:
//!
//! - Façade: a depth is at least 1, and at most a ceiling. Until a volume has arrivals, its mix is the one
//!   with the tighter promise, because the paper's share of reads is then nothing divided by nothing.
//! - Maestro: what a new or restarted application begins with; an application without a performance, which
//!   has no equation; operators' limits; a total that falls; a share of no demand, which goes to all ports
//!   alike.

use std::fmt;

/// A completion of a law.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Completion {
    /// Façade: the age of the oldest request stands in for a latency that nothing was answered with.
    AgeForLatency,
    /// Façade: a request in a burst that has just begun is expected to take as long as those of others do.
    FirstOfBurst,
    /// Façade: a volume that waits mostly elsewhere than at the device takes no part.
    WaitsElsewhere,
    /// Façade: a volume that is alone asks for no cut.
    Alone,
    /// Façade: a latency is held against what was at the device with it, and not against the depth now.
    OwnDepth,
    /// Façade: once the device is at rest, a cut starts from the depth if that is lower.
    AtRest,
    /// Façade: a growth is followed by another only when it shows in latencies.
    LateGrowth,
    /// Façade: the law aims a step below the target, and grows only if it may stay there.
    Room,
    /// Façade: a request is due at the device before its deadline, by twice the time that it takes there.
    DeviceShare,
    /// Façade: rates and mixes are those of SLO windows, and not of the control period.
    SloWindow,
    /// Façade: a rate is above its point of the curve if it is so by more than counting noise.
    CountingNoise,
    /// Façade: a depth was also felt if requests that were past due have passed it.
    PastDueFelt,
    /// Façade: requests without a promise have a share of the device's time, however full it is.
    Lane,
    /// Maestro: the 80 % rule is applied to each port, and not to the sum.
    UsagePerPort,
    /// Maestro: an interval in which an application did not use what it had is no point of its model.
    Evidence,
    /// Maestro: a model of few changes, or of changes that are too small, is no model.
    NoInformation,
    /// Maestro: the age of the oldest request stands in for a latency that nothing was answered with.
    AgeForPerformance,
    /// Maestro: the 80 % rule holds in overload, too.
    UseInOverload,
    /// Maestro: the others are held back for an application that falls short though it cannot use more.
    Hindered,
    /// Maestro: an application without a target gets no more of the excess than it can use.
    ExcessToUsers,
    /// Maestro: the excess comes on top of the need, and not of what the step limit let it fall to.
    ExcessOnNeed,
    /// Maestro: the step limit also holds for what is left of an allocation when the excess was dealt.
    StepOnExcess,
    /// Maestro: what is not used at all goes at once to who needs it.
    UnusedAtOnce,
    /// Maestro: ports are not rounded up beyond the total.
    WithinTotal,
}

/// A number in a completion of Maestro's law, or one that the paper leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Constant {
    /// Up to which performance an application counts as hindered.
    Content,
    /// By how much of the total the others' use has to fall before a trial is judged.
    Tried,
    /// By how much of what they had, if that is less.
    TriedOfFew,
    /// The least slope that is a help.
    Helps,
    /// For how many intervals the others are left alone after a trial without success.
    Rest,
    /// The weight of a new interval in the mean of a trial.
    New,
    /// How far an allocation has to have moved to tell something.
    Moved,
    /// The fit below which a slope is not believed.
    Good,
}

/// A law with completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completed {
    /// Façade's.
    Facade,
    /// Maestro's.
    Maestro,
}

/// Some of the completions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Completions {
    set: u32,
    /// A constant that is another one, in per cent of what it is in a pool.
    scaled: Option<(Constant, u32)>,
}

impl Completion {
    /// All of them, those of a law together.
    pub const ALL: [Self; 24] = [
        Self::AgeForLatency,
        Self::FirstOfBurst,
        Self::WaitsElsewhere,
        Self::Alone,
        Self::OwnDepth,
        Self::AtRest,
        Self::LateGrowth,
        Self::Room,
        Self::DeviceShare,
        Self::SloWindow,
        Self::CountingNoise,
        Self::PastDueFelt,
        Self::Lane,
        Self::UsagePerPort,
        Self::Evidence,
        Self::NoInformation,
        Self::AgeForPerformance,
        Self::UseInOverload,
        Self::Hindered,
        Self::ExcessToUsers,
        Self::ExcessOnNeed,
        Self::StepOnExcess,
        Self::UnusedAtOnce,
        Self::WithinTotal,
    ];

    /// The name, as in an experiment's file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AgeForLatency => "age-for-latency",
            Self::FirstOfBurst => "first-of-burst",
            Self::WaitsElsewhere => "waits-elsewhere",
            Self::Alone => "alone",
            Self::OwnDepth => "own-depth",
            Self::AtRest => "at-rest",
            Self::LateGrowth => "late-growth",
            Self::Room => "room",
            Self::DeviceShare => "device-share",
            Self::SloWindow => "slo-window",
            Self::CountingNoise => "counting-noise",
            Self::PastDueFelt => "past-due-felt",
            Self::Lane => "lane",
            Self::UsagePerPort => "usage-per-port",
            Self::Evidence => "evidence",
            Self::NoInformation => "no-information",
            Self::AgeForPerformance => "age-for-performance",
            Self::UseInOverload => "use-in-overload",
            Self::Hindered => "hindered",
            Self::ExcessToUsers => "excess-to-users",
            Self::ExcessOnNeed => "excess-on-need",
            Self::StepOnExcess => "step-on-excess",
            Self::UnusedAtOnce => "unused-at-once",
            Self::WithinTotal => "within-total",
        }
    }

    /// The completion of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The law that it completes.
    pub fn law(self) -> Completed {
        if self < Self::UsagePerPort { Completed::Facade } else { Completed::Maestro }
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl Constant {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Content,
        Self::Tried,
        Self::TriedOfFew,
        Self::Helps,
        Self::Rest,
        Self::New,
        Self::Moved,
        Self::Good,
    ];

    /// The name, as in an experiment's file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Tried => "tried",
            Self::TriedOfFew => "tried-of-few",
            Self::Helps => "helps",
            Self::Rest => "rest",
            Self::New => "new",
            Self::Moved => "moved",
            Self::Good => "good",
        }
    }

    /// The constant of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

impl Completions {
    /// All of them: the laws as they are in every pool.
    pub const ALL: Self = Self { set: (1 << Completion::ALL.len()) - 1, scaled: None };
    /// None of them: the laws to the letter.
    pub const NONE: Self = Self { set: 0, scaled: None };

    /// These, and one more.
    #[must_use]
    pub const fn with(self, one: Completion) -> Self {
        Self { set: self.set | one.bit(), ..self }
    }

    /// These but one.
    #[must_use]
    pub const fn without(self, one: Completion) -> Self {
        Self { set: self.set & !one.bit(), ..self }
    }

    /// Whether `one` is among them.
    pub const fn has(self, one: Completion) -> bool {
        self.set & one.bit() != 0
    }

    /// These, with a constant that is so many per cent of what it is in a pool.
    #[must_use]
    pub const fn with_scaled(self, constant: Constant, percent: u32) -> Self {
        Self { scaled: Some((constant, percent)), ..self }
    }

    /// The value of a constant that is `value` in a pool.
    pub(crate) fn value(self, constant: Constant, value: f64) -> f64 {
        match self.scaled {
            Some((scaled, percent)) if scaled == constant => value * f64::from(percent) / 100.0,
            _ => value,
        }
    }
}

impl Default for Completions {
    fn default() -> Self {
        Self::ALL
    }
}

impl fmt::Debug for Completions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Completion::ALL.into_iter().filter(|one| self.has(*one))).finish()?;
        self.scaled.map_or(Ok(()), |(constant, percent)| write!(f, " {percent} % of {constant:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_completion_is_known_by_its_name_and_stands_at_its_place() {
        for (place, one) in Completion::ALL.into_iter().enumerate() {
            assert_eq!(Completion::named(one.name()), Some(one));
            assert_eq!(one as usize, place, "{one:?} would be taken for another");
        }
        assert_eq!(Completion::named("hinderd"), None);
    }

    #[test]
    fn a_set_has_what_was_put_in_and_not_what_was_taken_out() {
        for one in Completion::ALL {
            let (only, all_but) = (Completions::NONE.with(one), Completions::ALL.without(one));
            for other in Completion::ALL {
                assert_eq!((only.has(other), all_but.has(other)), (other == one, other != one));
            }
        }
        assert_eq!(Completions::default(), Completions::ALL);
    }

    #[test]
    fn a_constant_is_what_it_is_unless_it_is_scaled() {
        let scaled = Completions::ALL.with_scaled(Constant::Rest, 125);
        for constant in Constant::ALL {
            assert_eq!(Constant::named(constant.name()), Some(constant));
            assert!((Completions::ALL.value(constant, 60.0) - 60.0).abs() < f64::EPSILON);
            let expected = if constant == Constant::Rest { 75.0 } else { 60.0 };
            assert!((scaled.value(constant, 60.0) - expected).abs() < f64::EPSILON);
        }
    }
}
