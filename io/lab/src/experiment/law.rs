//! Whether Façade's and Maestro's laws are complete in an experiment, or to the letter of their papers.

use serde::Deserialize;
use weir_engine::{Completion, Completions, Constant};

use super::EngineSpec;
use crate::quantities::{FromText, Text};

/// Whether a law is as its paper prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LawSpec {
    /// With all that this project has added, as in a pool.
    Complete,
    /// To the letter.
    Literal,
}

/// A constant of a law that is another one.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaledSpec {
    /// The constant.
    pub constant: Text<Constant>,
    /// What it is, in per cent of what it is in a pool.
    pub percent: u32,
}

impl FromText for Constant {
    const ACCEPTED: &str = "one of content, tried, tried-of-few, helps, rest, new, moved, good";

    fn from_text(text: &str) -> Option<Self> {
        Self::named(text)
    }
}

impl FromText for Completion {
    const ACCEPTED: &str = "\
        one of age-for-latency, first-of-burst, waits-elsewhere, alone, own-depth, at-rest, \
        late-growth, room, device-share, slo-window, counting-noise, past-due-felt, lane, \
        usage-per-port, evidence, no-information, age-for-performance, use-in-overload, hindered, \
        excess-to-users, excess-on-need, step-on-excess, unused-at-once, within-total";

    fn from_text(text: &str) -> Option<Self> {
        Self::named(text)
    }
}

impl EngineSpec {
    /// The completions of the law; `Err`: the key that is wrong, and the problem.
    pub(crate) fn completions(&self) -> Result<Completions, (&'static str, String)> {
        let these = self.named_completions()?;
        Ok(self.scaled.map_or(these, |scaled| these.with_scaled(scaled.constant.0, scaled.percent)))
    }

    fn named_completions(&self) -> Result<Completions, (&'static str, String)> {
        let (with, but_for) = (&self.completions, &self.but_for);
        let refused = |key: &'static str, these: &[Text<Completion>], law: &str| {
            let names: Vec<_> = these.iter().map(|one| one.0.name()).collect();
            Err((key, format!("found {}; accepted: beside law = \"{law}\"", names.join(", "))))
        };
        match self.law {
            Some(LawSpec::Literal) if !but_for.is_empty() => refused("engine.but_for", but_for, "complete"),
            Some(LawSpec::Literal) => Ok(with.iter().fold(Completions::NONE, |these, one| these.with(one.0))),
            _ if !with.is_empty() => refused("engine.completions", with, "literal"),
            _ => Ok(but_for.iter().fold(Completions::ALL, |these, one| these.without(one.0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    fn read(engine: &str) -> Result<Experiment, String> {
        let text = include_str!("../../../../experiments/maestro/maestro-priority.toml");
        let machine = include_str!("../../../../experiments/maestro/xp.toml");
        let text = text.replace("include = [\"xp.toml\"]", "");
        let text = format!("{}\n{machine}", text.replace("[engine]\n", &format!("[engine]\n{engine}\n")));
        Experiment::parse("maestro-priority.toml", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_law_is_complete_unless_the_file_says_otherwise() {
        let of = |engine: &str| read(engine).unwrap().engine.completions().unwrap();
        assert_eq!(of(""), Completions::ALL);
        assert_eq!(of("law = \"complete\""), Completions::ALL);
        assert_eq!(of("law = \"literal\""), Completions::NONE);
        let hindered = Completion::Hindered;
        let only = of("law = \"literal\"\ncompletions = [\"hindered\"]");
        assert_eq!(only, Completions::NONE.with(hindered));
        assert_eq!(of("but_for = [\"hindered\"]"), Completions::ALL.without(hindered));
        let scaled = of("scaled = { constant = \"rest\", percent = 75 }");
        assert_eq!(scaled, Completions::ALL.with_scaled(Constant::Rest, 75));
    }

    #[test]
    fn a_name_that_is_no_completion_is_refused_with_those_that_are() {
        let error = read("law = \"literal\"\ncompletions = [\"hinderd\"]").unwrap_err();
        assert!(error.contains("engine.completions: found \"hinderd\"; accepted: one of "), "{error}");
        assert!(Completion::ALL.into_iter().all(|one| error.contains(one.name())), "{error}");
        let named = Completion::ACCEPTED.trim_start_matches("one of ").split(", ");
        assert!(named.eq(Completion::ALL.map(Completion::name)));
        let error = read("scaled = { constant = \"reste\", percent = 75 }").unwrap_err();
        assert!(error.contains("found \"reste\"; accepted: one of content, "), "{error}");
        let named = Constant::ACCEPTED.trim_start_matches("one of ").split(", ");
        assert!(named.eq(Constant::ALL.map(Constant::name)));
    }

    #[test]
    fn completions_are_added_to_a_literal_law_and_taken_from_a_complete_one() {
        let error = read("completions = [\"hindered\"]").unwrap_err();
        assert!(error.ends_with("engine.completions: found hindered; accepted: beside law = \"literal\""));
        let error = read("law = \"literal\"\nbut_for = [\"hindered\"]").unwrap_err();
        assert!(error.ends_with("engine.but_for: found hindered; accepted: beside law = \"complete\""));
    }
}
