//! Claims about the files of experiments, and about the messages for wrong ones.

use std::collections::BTreeMap;

use super::*;
use crate::library::Library;
use crate::quantities::FromText;

const FILE: &str = "tiny/facade-isolation-1.toml";

fn text() -> String {
    include_str!("../../tests/tiny/facade-isolation-1.toml").to_owned()
}

/// The error message for the file after `from` was replaced by another text.
fn message(from: &str, to: &str) -> String {
    assert!(text().contains(from), "{from}");
    Experiment::parse(FILE, &text().replacen(from, to, 1)).expect_err("it is wrong").to_string()
}

#[test]
fn every_experiment_of_the_program_can_be_read_and_its_runs_resolved() {
    let library = Library::embedded().unwrap();
    assert_eq!(library.all().len(), 37);
    for experiment in library.all() {
        let curve = crate::curve::Curve {
            seed: 1,
            commit: String::new(),
            program: String::new(),
            hash: String::new(),
            points: vec![crate::curve::CurvePoint {
                offered_iops: 50.0,
                arrived_iops: 50.0,
                answered_iops: 50.0,
                read_us: 5_000.0,
                write_us: 1_000.0,
                mean_us: 4_000.0,
            }],
        };
        let curves: BTreeMap<_, _> =
            experiment.curve.keys().map(|name| (name.clone(), curve.clone())).collect();
        for run in experiment.runs().unwrap() {
            let resolved = resolve_run(&run.experiment, &run.run, 1, &curves).unwrap();
            assert!(resolved.warm_up < resolved.scenario.duration, "{} {}", experiment.id, run.name);
        }
    }
}

#[test]
fn an_error_names_the_file_the_line_the_key_what_was_found_and_what_is_accepted() {
    assert_eq!(
        message("read = \"50ms\"", "read = \"50\""),
        format!("{FILE}:31: volume.vsd1.slo[0].read: found \"50\"; accepted: a duration such as \"50ms\"")
    );
    let load = message("load = \"idle\"", "load = \"lazy\"");
    assert!(load.contains("phases[1].load: found \"lazy\"; accepted: \"idle\", \"200iops\""), "{load}");
    let slo = message("slo = \"curve:own\"", "slo = \"dedicated\"");
    assert!(
        slo.contains("volume.vsd2.slo: found \"dedicated\"; accepted: \"curve:NAME\" or points"),
        "{slo}"
    );
}

#[test]
fn a_key_that_is_not_known_is_refused_with_those_that_are() {
    let unknown = message("repeat =", "repaet =");
    assert!(unknown.contains("volume.vsd1") && unknown.contains("`repaet`"), "{unknown}");
    assert!(unknown.contains("; accepted: one of `slo`"), "{unknown}");
}

#[test]
fn a_name_that_leads_nowhere_is_refused() {
    let array = message("array = \"small\"\nduration", "array = \"smal\"\nduration");
    assert_eq!(array, format!("{FILE}: run.none.array: found \"smal\"; accepted: one of small"));
    let id = message("id = \"facade-isolation-1\"", "id = \"facade-isolation-2\"");
    assert!(id.contains("id: found \"facade-isolation-2\"; accepted: the name of the file"), "{id}");
    let curve = message("curve:own", "curve:won");
    assert!(curve.contains("volume.vsd2.slo: found \"curve:won\"; accepted: one of own"), "{curve}");
}

#[test]
fn bounds_and_times_that_make_no_sense_are_refused() {
    let warm_up = message("warm_up = \"0s\"", "warm_up = \"10h\"");
    assert!(warm_up.contains("warm_up: found \"36000s\"; accepted: less than the duration of "), "{warm_up}");
    let least = text().lines().find(|line| line.starts_with("at_least")).unwrap().to_owned();
    for bounds in ["at_least = inf", "between = [2.0, 1.0]", "at_most = nan"] {
        let wrong = message(&least, bounds);
        assert!(wrong.contains("accepted: numbers, the first not above the second"), "{wrong}");
    }
}

#[test]
fn a_variant_with_a_name_that_leads_nowhere_is_refused_and_ends_no_process() {
    let without =
        "[without]\nbecause = \"x\"\nset = [{ key = \"run.none.array\", value = \"nope\" }]\n[plot]";
    let wrong = message("[plot]", without);
    assert!(wrong.contains("run.none.array: found \"nope\"; accepted: one of small"), "{wrong}");
}

#[test]
fn a_load_is_said_in_words() {
    use weir_sim::Arrivals::{Closed, Constant, Poisson};
    let rate = Iops::new(200.0).unwrap();
    let said = |text: &str| Load::from_text(text);
    assert_eq!(said("idle"), Some(Load::Idle));
    assert_eq!(said("200iops"), Some(Load::Arrivals(Poisson(rate))));
    assert_eq!(said("200iops constant"), Some(Load::Arrivals(Constant(rate))));
    assert_eq!(said("16 threads"), Some(Load::Arrivals(Closed { threads: 16, think: Span::ZERO })));
    let think = Span::from_millis(5);
    assert_eq!(said("16 threads think 5ms"), Some(Load::Arrivals(Closed { threads: 16, think })));
    for wrong in ["", "200", "0 threads", "threads", "16 threads think", "0iops"] {
        assert_eq!(said(wrong), None, "{wrong}");
    }
}

#[test]
fn a_sweep_repeats_a_run_with_one_value_of_the_file_changed() {
    let library = Library::embedded().unwrap();
    let provisioning = library.matching("*provisioning")[0];
    let runs = provisioning.runs().unwrap();
    let four = runs.iter().find(|run| run.name == "facade@4").unwrap();
    assert_eq!((four.value, four.run.as_str()), (Some(4.0), "facade"));
    assert_ne!(four.experiment.array, provisioning.array);
}

#[test]
fn an_id_is_found_by_a_pattern() {
    let library = Library::embedded().unwrap();
    let ids = |pattern: &str| library.matching(pattern).iter().map(|e| e.id.as_str()).collect::<Vec<_>>();
    assert_eq!(ids("facade-*").len(), 9);
    assert_eq!(ids("*isolation*"), ["facade-isolation-1", "facade-isolation-2"]);
    assert_eq!(ids("facade-slo"), ["facade-slo"]);
    assert!(ids("facade").is_empty());
}
