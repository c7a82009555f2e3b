//! Claims about variants of experiments.

use super::*;
use crate::library::Library;

fn experiment(id: &str) -> Experiment {
    Library::embedded().unwrap().matching(id)[0].clone()
}

fn runnable(experiment: &Experiment, variant: Variant) -> Experiment {
    match experiment.variant(variant).unwrap() {
        Some(Variation::Runnable(experiment)) => *experiment,
        other => panic!("{}: {other:?}", experiment.id),
    }
}

#[test]
fn a_variant_replaces_the_papers_law_and_leaves_all_else_as_it_is() {
    for (variant, law) in [(Variant::Without, ControlSpec::None), (Variant::Promise, ControlSpec::Promise)] {
        for id in ["facade-failure", "maestro-scale"] {
            let written = experiment(id);
            let mut varied = runnable(&written, variant);
            for (name, run) in &mut varied.run {
                let before = written.run[name].control;
                let expected = if before == ControlSpec::None { ControlSpec::None } else { law };
                assert_eq!(run.control, expected, "{id} {name}");
                run.control = before;
            }
            for (varied, written) in varied.expect.iter_mut().zip(&written.expect) {
                if written.granted {
                    assert_eq!(varied.bounds(), (None, None), "{id} {}", written.figure);
                    varied.clone_from(written);
                }
                // The reason is one for the paper's law.
                assert_eq!(varied.not_reproduced, None, "{id} {}", written.figure);
                varied.not_reproduced.clone_from(&written.not_reproduced);
            }
            varied.text.clone_from(&written.text);
            assert_eq!(varied, written);
        }
    }
}

#[test]
fn each_run_of_a_sweep_has_the_variants_law_and_its_own_value() {
    let written = experiment("facade-provisioning");
    let varied = runnable(&written, Variant::Promise);
    let runs = |experiment: &Experiment| experiment.runs().unwrap().into_iter();
    for (varied, written) in runs(&varied).zip(runs(&written)) {
        assert_eq!((&varied.name, varied.value), (&written.name, written.value));
        assert_eq!(varied.experiment.array, written.experiment.array);
        let expected = if varied.run == "none" { ControlSpec::None } else { ControlSpec::Promise };
        assert_eq!(varied.experiment.run[&varied.run].control, expected);
    }
}

#[test]
fn every_experiment_with_a_law_has_both_variants_or_says_why_not() {
    for experiment in Library::embedded().unwrap().all() {
        let has_law = experiment.run.values().any(|run| run.control != ControlSpec::None);
        for variant in Variant::ALL {
            match experiment.variant(variant).unwrap() {
                None => assert!(!has_law, "{}", experiment.id),
                Some(Variation::Impossible(reason)) => assert!(!reason.is_empty(), "{}", experiment.id),
                Some(Variation::Runnable(varied)) => assert_ne!(*varied, *experiment, "{}", experiment.id),
            }
        }
    }
}

#[test]
fn a_row_that_says_nothing_without_a_law_is_broken_by_the_values_that_its_file_names() {
    let ports = runnable(&experiment("maestro-ports"), Variant::Without);
    assert!(ports.volume.values().all(|volume| volume.fixed_split));
    assert_eq!(ports.run["maestro"].control, ControlSpec::Maestro);
    assert!(ports.expect.iter().all(|expectation| expectation.bounds() != (None, None)));
}

#[test]
fn a_row_may_say_that_it_has_no_negative_control() {
    let mut ports = experiment("maestro-ports");
    ports.without = Some(WithoutSpec { because: "it has none".to_owned(), set: Vec::new() });
    assert_eq!(
        ports.variant(Variant::Without).unwrap(),
        Some(Variation::Impossible("it has none".to_owned()))
    );
}

#[test]
fn a_volume_with_several_ports_cannot_be_told_to_the_law_of_promises() {
    let Some(Variation::Impossible(reason)) = experiment("maestro-ports").variant(Variant::Promise).unwrap()
    else {
        panic!("it has ports")
    };
    assert!(reason.contains("light1 comes through several ports"), "{reason}");
}

#[test]
fn a_negative_control_with_a_key_that_is_not_known_is_refused() {
    let mut overhead = experiment("facade-overhead");
    let value = ValueSpec { key: "engine.grwoth".to_owned(), value: 0.0.into() };
    overhead.without = Some(WithoutSpec { because: String::new(), set: vec![value] });
    let error = overhead.variant(Variant::Without).unwrap_err().to_string();
    assert!(error.contains("without.set: unknown field `grwoth`"), "{error}");
}
