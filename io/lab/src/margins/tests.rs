//! Claims about the numbers that are varied, and about what the variations show.

use super::*;
use crate::check::Conclusion;
use crate::library::Library;

fn experiment(id: &str) -> Experiment {
    Library::embedded().unwrap().matching(id)[0].clone()
}

fn names(experiment: &Experiment) -> Vec<String> {
    numbers(experiment).unwrap().into_iter().map(|number| number.name).collect()
}

#[test]
fn every_experiment_tells_the_papers_numbers_from_ours() {
    for experiment in Library::embedded().unwrap().all() {
        assert!(!numbers(experiment).unwrap().is_empty(), "{}", experiment.id);
    }
}

#[test]
fn all_numbers_that_are_ours_vary_or_say_why_not() {
    for id in ["facade-isolation-1", "maestro-ports", "delay-pid", "transfer-r3"] {
        let experiment = experiment(id);
        let ours = numbers(&experiment).unwrap();
        let (varied, refused) = variations(&experiment, Which::All).unwrap();
        let listed: usize = experiment.vary.iter().map(|listed| listed.values.len()).sum();
        assert_eq!(varied.len() + refused.len(), 2 * ours.len() + listed, "{id}");
        for Varied { number, from, to, .. } in &varied {
            assert_ne!(from, to, "{id}: {number}");
        }
    }
}

#[test]
fn a_number_of_the_paper_is_not_varied_and_one_of_the_machine_is() {
    let names = names(&experiment("facade-isolation-1"));
    assert!(names.contains(&"array.*.overhead".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("volume.") || name.ends_with(".disks")), "{names:?}");
}

#[test]
fn a_number_that_is_the_same_in_several_runs_is_varied_in_all_of_them() {
    let (varied, _) = variations(&experiment("facade-isolation-1"), Which::All).unwrap();
    let longer = varied.iter().find(|one| one.number == "run.*.duration" && one.to == "462s").unwrap();
    let durations = longer.experiment.run.values().map(|run| run.duration.0.as_secs_f64());
    assert_eq!(durations.collect::<Vec<_>>(), [462.0, 462.0]);
}

#[test]
fn what_counts_in_whole_numbers_is_varied_by_one_and_what_counts_in_powers_of_two_by_two() {
    let (varied, _) = variations(&experiment("facade-isolation-1"), Which::All).unwrap();
    let to = |name: &str| -> Vec<&str> {
        varied.iter().filter(|one| one.number == name).map(|one| one.to.as_str()).collect()
    };
    assert_eq!(to("array.*.disk.tags"), ["2", "4"]);
    assert_eq!(to("array.*.overhead"), ["90us", "110us"]);
    assert_eq!(to("array.*.stripe_unit"), ["8KiB", "32KiB"]);
}

#[test]
fn the_points_of_a_curve_are_varied_together() {
    let (varied, refused) = variations(&experiment("facade-slo"), Which::All).unwrap();
    let of = |number: &str| varied.iter().filter(|one| one.number == number).count();
    assert_eq!(
        [of("volume.vsd.slo.*.read"), of("volume.vsd.slo.*.up_to"), of("curve.dedicated.rates.*")],
        [2; 3]
    );
    assert_eq!(refused, []);
}

#[test]
fn a_claim_is_fragile_if_one_of_its_bounds_breaks_in_a_variation() {
    let experiment = experiment("facade-calibration");
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().to_owned());
    let figures = |value: f64| {
        let figures = vec![crate::study::Figure::new("greedy-rate", Some(value))];
        let all = [crate::study::Figures { seed: 1, figures }];
        check(&experiment, &all, Vec::new(), Vec::new(), &store).unwrap().figures
    };
    let variation = |number: &str, value: f64| Variation {
        number: number.to_owned(),
        from: "10".to_owned(),
        to: "11".to_owned(),
        figures: figures(value),
    };
    let margins = |variations| Margins {
        experiment: experiment.id.clone(),
        program: String::new(),
        seeds: vec![1],
        figures: figures(847.0),
        variations,
        refused: Vec::new(),
    };
    let safe = margins(vec![variation("a", 800.0), variation("b", 900.0)]);
    assert_eq!(safe.breaks(), []);
    let spread = &spreads(&safe)[0];
    assert_eq!((spread.range, spread.holds), (Some((800.0, 900.0)), true));
    assert_eq!(spread.most.as_ref().map(|most| most.variation.as_str()), Some("b = 11"));
    let thin = margins(vec![variation("a", 800.0), variation("b", 940.0)]);
    let breaks: Vec<_> = thin.breaks().iter().map(|broken| broken.shown(&experiment)).collect();
    assert_eq!(breaks, ["greedy-rate is 940 IO/s with b = 11"]);
    let all = [crate::study::Figures {
        seed: 1,
        figures: vec![crate::study::Figure::new("greedy-rate", Some(847.0))],
    }];
    let checked = check(&experiment, &all, Vec::new(), breaks, &store).unwrap();
    assert_eq!(checked.conclusion(), Conclusion::Fragile);
}
