//! Figures against expectations.

use super::*;
use crate::library::Library;

fn experiment() -> Experiment {
    let mut experiment = Library::embedded().unwrap().matching("facade-multiplexing")[0].clone();
    let expect = |figure: &str, at_least| Expectation {
        figure: figure.to_owned(),
        says: String::new(),
        paper: String::new(),
        unit: "x".to_owned(),
        at_least,
        at_most: None,
        between: None,
        noise: None,
        granted: false,
        not_reproduced: None,
    };
    experiment.expect = vec![expect("gain", Some(1.25)), expect("reported", None)];
    experiment
}

fn figures(gains: &[Option<f64>]) -> Vec<Figures> {
    let of_seed = |(gain, seed): (&Option<f64>, u64)| Figures {
        seed,
        figures: vec![Figure::new("gain", *gain), Figure::new("reported", None)],
    };
    gains.iter().zip(1..).map(of_seed).collect()
}

fn checked(gains: &[Option<f64>]) -> Checked {
    let folder = tempfile::tempdir().unwrap();
    check(&experiment(), &figures(gains), Vec::new(), Vec::new(), &Store::new(folder.path().to_owned()))
        .unwrap()
}

#[test]
fn a_claim_holds_only_if_it_does_with_every_seed() {
    assert_eq!(checked(&[Some(1.25), Some(2.0)]).conclusion(), Conclusion::Holds);
    let one_fails = checked(&[Some(1.3), Some(1.2), Some(1.4)]);
    assert_eq!(one_fails.conclusion(), Conclusion::Fails);
    assert_eq!(one_fails.figures[0].fails, [2]);
    assert_eq!((one_fails.figures[0].median(), one_fails.figures[0].range()), (Some(1.3), Some((1.2, 1.4))));
}

#[test]
fn a_figure_without_a_value_does_not_hold_and_nothing_holds_without_seeds() {
    assert_eq!(checked(&[Some(1.3), None]).conclusion(), Conclusion::Fails);
    assert_eq!(checked(&[]).conclusion(), Conclusion::Fails);
}

#[test]
fn a_bound_that_is_known_not_to_hold_is_neither_a_failure_nor_does_the_claim_hold() {
    let folder = tempfile::tempdir().unwrap();
    let mut experiment = experiment();
    experiment.expect[0].not_reproduced = Some("the disk is another one".to_owned());
    let conclusion = |experiment: &Experiment, gains: &[Option<f64>]| {
        check(experiment, &figures(gains), Vec::new(), Vec::new(), &Store::new(folder.path().to_owned()))
            .unwrap()
            .conclusion()
    };
    assert_eq!(conclusion(&experiment, &[Some(1.0)]), Conclusion::NotReproduced);
    assert_eq!(conclusion(&experiment, &[Some(2.0)]), Conclusion::NotReproduced);
    experiment.expect[1].at_most = Some(1.0);
    assert_eq!(conclusion(&experiment, &[Some(1.0)]), Conclusion::Fails);
}

#[test]
fn a_bound_within_the_noise_is_not_shown_to_hold_and_one_beyond_it_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut experiment = experiment();
    experiment.expect[0].noise = Some("reported".to_owned());
    let conclusion = |gain: f64, noise: Option<f64>| {
        let figures = vec![Figure::new("gain", Some(gain)), Figure::new("reported", noise)];
        let all = [Figures { seed: 1, figures }];
        check(&experiment, &all, Vec::new(), Vec::new(), &Store::new(folder.path().to_owned()))
            .unwrap()
            .conclusion()
    };
    assert_eq!(conclusion(1.5, Some(0.25)), Conclusion::Holds);
    assert_eq!(conclusion(1.5, Some(0.26)), Conclusion::NotShown);
    assert_eq!(conclusion(1.0, Some(0.26)), Conclusion::NotShown);
    assert_eq!(conclusion(1.0, Some(0.24)), Conclusion::Fails);
    assert_eq!(conclusion(1.5, None), Conclusion::Fails, "a noise that is not known can be any");
}

#[test]
fn the_margin_is_that_of_the_worst_seed_to_the_nearer_bound() {
    let margin = |gains: &[Option<f64>]| checked(gains).figures[0].margin();
    assert_eq!(margin(&[Some(2.0), Some(1.5)]), Some(0.25));
    assert_eq!(margin(&[Some(2.0), Some(1.0)]), Some(-0.25));
    assert_eq!(margin(&[Some(2.0), None]), None);
    assert_eq!(checked(&[Some(2.0)]).figures[1].margin(), None);
}

#[test]
fn a_figure_without_an_expectation_and_an_expectation_without_a_figure_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().to_owned());
    let mut experiment = experiment();
    experiment.expect[1].figure = "misspelt".to_owned();
    let error = check(&experiment, &figures(&[Some(1.3)]), Vec::new(), Vec::new(), &store).unwrap_err();
    assert!(error.to_string().contains("found none for the figure reported"), "{error}");
    experiment = self::experiment();
    experiment.expect.push(Expectation { figure: "forgotten".to_owned(), ..experiment.expect[0].clone() });
    let error = check(&experiment, &figures(&[Some(1.3)]), Vec::new(), Vec::new(), &store).unwrap_err();
    assert!(error.to_string().contains("figure: found \"forgotten\"; accepted: one of gain, "), "{error}");
    experiment = self::experiment();
    experiment.expect[0].noise = Some("forgotten".to_owned());
    let error = check(&experiment, &figures(&[Some(1.3)]), Vec::new(), Vec::new(), &store).unwrap_err();
    assert!(error.to_string().contains("noise: found \"forgotten\"; accepted: one of gain, "), "{error}");
}

/// A claim of two figures, each of at least 1.25, with its law and without it; a value for each seed.
fn with_and_without(with: [&[f64]; 2], without: [&[f64]; 2]) -> Checked {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().to_owned());
    let mut experiment = experiment();
    experiment.expect[1].at_least = Some(1.25);
    let figures = |[gain, reported]: [&[f64]; 2]| -> Vec<Figures> {
        let of_seed = |((gain, reported), seed): ((&f64, &f64), u64)| Figures {
            seed,
            figures: vec![Figure::new("gain", Some(*gain)), Figure::new("reported", Some(*reported))],
        };
        gain.iter().zip(reported).zip(1..).map(of_seed).collect()
    };
    let Checked { seeds, figures: found, .. } =
        check(&experiment, &figures(without), Vec::new(), Vec::new(), &store).unwrap();
    let found = Found::Figures { seeds, figures: found };
    let variants = vec![CheckedVariant { variant: Variant::Without, found }];
    check(&experiment, &figures(with), variants, Vec::new(), &store).unwrap()
}

#[test]
fn a_claim_that_holds_without_its_law_is_not_called_one_that_holds() {
    let same = with_and_without([&[1.5], &[1.5]], [&[1.4], &[1.3]]);
    assert_eq!((same.conclusion(), same.indifferent()), (Conclusion::HoldsWithout, vec![1]));
    let breaks = with_and_without([&[1.5], &[1.5]], [&[1.4], &[1.2]]);
    assert_eq!((breaks.conclusion(), breaks.indifferent()), (Conclusion::Holds, vec![]));
}

#[test]
fn one_seed_that_breaks_nothing_without_the_law_is_enough() {
    let checked = with_and_without([&[1.5, 1.5], &[1.5, 1.5]], [&[1.0, 1.5], &[1.5, 1.5]]);
    assert_eq!((checked.conclusion(), checked.indifferent()), (Conclusion::HoldsWithout, vec![2]));
    assert_eq!(checked.found(Variant::Without).unwrap().shown(), "does not hold, but with seed 2");
}

#[test]
fn a_claim_that_does_not_hold_with_its_law_is_not_excused_by_holding_without_it() {
    let checked = with_and_without([&[1.0], &[1.5]], [&[1.5], &[1.5]]);
    assert_eq!(checked.conclusion(), Conclusion::Fails);
}

#[test]
fn a_claim_that_was_not_run_without_its_law_is_judged_as_before() {
    assert_eq!(checked(&[Some(1.25)]).conclusion(), Conclusion::Holds);
    let folder = tempfile::tempdir().unwrap();
    let found = Found::Impossible("it is about a cost".to_owned());
    let variants = vec![CheckedVariant { variant: Variant::Without, found }];
    let store = Store::new(folder.path().to_owned());
    let checked = check(&experiment(), &figures(&[Some(1.3)]), variants, Vec::new(), &store).unwrap();
    assert_eq!(checked.conclusion(), Conclusion::Holds);
    assert_eq!(checked.found(Variant::Without).unwrap().shown(), "it is about a cost");
}
