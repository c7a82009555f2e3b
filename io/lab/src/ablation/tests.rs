//! Claims about the forms of a law, and about what counts as a change.

use super::*;
use crate::library::Library;
use crate::run::Simulated;

fn experiment(id: &str) -> Experiment {
    Library::embedded().unwrap().matching(id)[0].clone()
}

/// A figure that must be at least 95.
fn figure(values: &[f64]) -> CheckedFigure {
    CheckedFigure {
        name: "met".to_owned(),
        values: values.iter().copied().map(Some).collect(),
        at_least: Some(95.0),
        at_most: None,
        fails: (1..).zip(values).filter(|(_, value)| **value < 95.0).map(|(seed, _)| seed).collect(),
        unshown: Vec::new(),
        not_reproduced: None,
    }
}

fn ablation(forms: &[(Form, &[f64])]) -> Ablation {
    Ablation {
        experiment: "maestro-priority".to_owned(),
        program: String::new(),
        seeds: vec![1, 2],
        forms: forms.iter().map(|(form, values)| (form.name(), vec![figure(values)])).collect(),
    }
}

#[test]
fn an_experiment_is_ablated_by_the_completions_of_the_law_in_its_runs() {
    let library = Library::embedded().unwrap();
    let of = |id: &str| completions(library.matching(id)[0]);
    let laws = |id: &str| {
        let mut laws: Vec<_> = of(id).into_iter().map(Completion::law).collect();
        laws.dedup();
        laws
    };
    assert_eq!(laws("facade-slo"), [Completed::Facade]);
    assert_eq!(laws("multiport-priority"), [Completed::Maestro]);
    assert_eq!(laws("facade-calibration"), [], "it has no law");
    assert_eq!([of("facade-slo"), of("maestro-erp")].concat(), Completion::ALL);
}

#[test]
fn each_form_is_the_file_with_other_completions_and_nothing_else() {
    let experiment = experiment("maestro-priority");
    for form in [
        Form::Complete,
        Form::Literal,
        Form::But(Completion::Hindered),
        Form::With(Completion::Evidence),
        Form::Scaled(Constant::Rest, 75),
    ] {
        let changed = experiment.with_values("engine.law", &form.values()).unwrap();
        let set = changed.engine.completions().unwrap();
        for one in Completion::ALL {
            let expected = match form {
                Form::Complete => true,
                Form::Literal => false,
                Form::But(but) => one != but,
                Form::With(only) => one == only,
                Form::Scaled(..) => true,
            };
            assert_eq!(set.has(one), expected, "{form:?}: {one:?}");
        }
        let engine = experiment.engine.clone();
        assert_eq!(Experiment { engine, text: experiment.text.clone(), ..changed }, experiment);
    }
}

#[test]
fn a_figure_changes_if_its_mean_moves_by_more_than_its_range_over_the_seeds() {
    let but = Form::But(Completion::Evidence);
    let changes =
        |of: &[f64]| ablation(&[(Form::Complete, &[97.0, 99.0]), (but, of)]).changes(Form::Complete, but);
    assert_eq!(changes(&[96.0, 96.0]), [], "by 2, which is the range");
    let [change] = &changes(&[95.5, 96.0])[..] else { panic!("it moved by more") };
    assert_eq!((change.from, change.to, change.noise), (Some(98.0), Some(95.75), 2.0));
    assert!(!change.turns());
    assert!(changes(&[95.5, 94.0])[0].turns(), "its bound breaks");
}

#[test]
fn a_figure_without_a_bound_is_no_figure_of_the_claim_and_one_that_is_gone_is_a_change() {
    let literal = Form::Literal;
    let mut found = ablation(&[(Form::Complete, &[97.0, 99.0]), (literal, &[1.0, 1.0])]);
    found.forms.get_mut("literal").unwrap()[0].values = vec![Some(98.0), None];
    assert_eq!(found.changes(Form::Complete, literal)[0].to, None);
    found.forms.get_mut("complete").unwrap()[0].at_least = None;
    assert_eq!(found.changes(Form::Complete, literal), []);
}

#[test]
fn the_table_says_which_rows_a_completion_changes_and_which_bounds_break() {
    let mut experiment = experiment("maestro-priority");
    experiment.expect.truncate(1);
    let one = Completion::Hindered;
    let scaled = |percent| Form::Scaled(Constant::Rest, percent);
    let mut found = ablation(&[
        (scaled(75), &[96.0, 99.0]),
        (scaled(125), &[97.0, 97.0]),
        (Form::Complete, &[97.0, 97.0]),
        (Form::But(one), &[90.0, 91.0]),
        (Form::Literal, &[50.0, 60.0]),
        (Form::With(one), &[51.0, 59.0]),
    ]);
    for figures in found.forms.values_mut() {
        figures[0].name.clone_from(&experiment.expect[0].figure);
    }
    let text = table(&[(&experiment, found)]);
    let expected = "| `hindered` | maestro-priority (1 figure, **1 breaks**) | nothing |";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("| `hindered` | light-before | 97 -> 90.5, **breaks** | - |"), "{text}");
    assert!(text.contains("| `rest` | maestro-priority (1 figure) | nothing |"), "{text}");
    assert!(text.contains("| `rest` | light-before | 97 -> 97.5 | - |"), "{text}");
    assert!(!text.contains("`evidence`"), "it was not left out: {text}");
}

/// The whole of it on a short run: all forms run, and what cannot differ is copied.
#[test]
fn a_short_ablation_runs_every_form_and_copies_the_runs_without_a_law() {
    let long = experiment("facade-isolation-1");
    let length = |run: &str| (format!("run.{run}.duration"), Value::from("22s"));
    let short = long.with_values("test", &[length("none"), length("facade")]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().to_owned());
    let plan = Plan {
        experiments: Vec::new(),
        seeds: vec![1],
        variant_seeds: Vec::new(),
        jobs: 2,
        bench: &Simulated,
        nodes: &Simulated,
    };
    let ablation = ablate(&short, Which::Completions, &plan, &store, &|_| ()).unwrap().unwrap();
    assert_eq!(ablation.forms.len(), 2 + 2 * completions(&short).len());
    let read = found(&short, &store).unwrap().expect("it was written");
    assert!(read.forms.keys().eq(ablation.forms.keys()));
    let record = |form: Form, run: &str| {
        let text = std::fs::read_to_string(store.ablated(&form.name()).record(&short.id, 1, run)).unwrap();
        text.split_once('\n').unwrap().1.to_owned()
    };
    assert_eq!(record(Form::Complete, "none"), record(Form::Literal, "none"));
    assert_ne!(record(Form::Complete, "facade"), record(Form::Literal, "facade"));
    assert!(!ablation.changes(Form::Complete, Form::Literal).is_empty());
}
