//! An experiment from its file to the page, on a small scale.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use weir_lab::check::Conclusion;
use weir_lab::experiment::{Experiment, Variant};
use weir_lab::library::Library;
use weir_lab::report::{Outcome, evaluate, report};
use weir_lab::run::{Plan, Simulated, Store, run};

const SEEDS: [u64; 2] = [1, 2];

fn experiment() -> Experiment {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiny");
    Library::open(&folder).unwrap().all()[0].clone()
}

fn run_in(folder: &Path, experiment: &Experiment, jobs: usize) -> Store {
    let store = Store::new(folder.to_owned());
    let plan = Plan {
        experiments: vec![experiment],
        seeds: SEEDS.to_vec(),
        variant_seeds: SEEDS[..1].to_vec(),
        jobs,
        bench: &Simulated,
        nodes: &Simulated,
    };
    run(&plan, &store, &|_| ()).unwrap();
    store
}

/// Every file below a folder with its content.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            files.extend(
                self::files(&path).into_iter().map(|(below, text)| (format!("{name}/{below}"), text)),
            );
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

#[test]
fn an_experiment_goes_from_its_file_to_a_figure_a_verdict_and_a_page() {
    let (folder, experiment) = (tempfile::tempdir().unwrap(), experiment());
    let store = run_in(folder.path(), &experiment, 2);
    let Outcome::Done { checked, svg, .. } = evaluate(&experiment, &SEEDS, &[], &store).unwrap() else {
        panic!("it was not skipped")
    };
    assert_eq!(checked.conclusion(), Conclusion::Holds, "{checked:?}");
    assert!(svg.contains("facade-isolation-1"));
    let made = files(folder.path());
    let of = |file: &str| String::from_utf8_lossy(&made[&format!("facade-isolation-1/{file}")]).into_owned();
    assert!(of("figures.csv").starts_with("seed,figure,value,unit\n1,vsd1-missed-without,"));
    assert!(of("verdict.json").contains("\"vsd1-met\""));
    assert!(of("seed-1/facade.jsonl").starts_with("{\"header\":{\"experiment\":\"facade-isolation-1\""));

    let page = fs::read_to_string(&report(std::slice::from_ref(&experiment), &store).unwrap()[0]).unwrap();
    for wanted in [
        "0 of 1 hold",
        "1 hold without their law",
        "<svg",
        "VSD1 meets its target",
        "[run.facade]",
        "Seeds: 1, 2",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    for fetched in ["src=", "href=\"http", "url(", "@import"] {
        assert!(!page.contains(fetched), "{fetched}");
    }
}

#[test]
fn the_records_are_the_same_bytes_with_one_job_and_with_two() {
    let (one, two, experiment) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), experiment());
    run_in(one.path(), &experiment, 1);
    run_in(two.path(), &experiment, 2);
    let made = files(one.path());
    // Two records and a curve for each seed, and the same for each of two variants with the first.
    assert_eq!(made.len(), 2 * 3 + 2 * 3, "{:?}", made.keys());
    assert!(made == files(two.path()));
}

#[test]
fn a_run_without_its_law_is_the_run_without_control_that_is_there_already() {
    let (folder, experiment) = (tempfile::tempdir().unwrap(), experiment());
    let store = run_in(folder.path(), &experiment, 2);
    let after_the_header = |store: &Store, run: &str| {
        let text = fs::read_to_string(store.record(&experiment.id, 1, run)).unwrap();
        let (header, rest) = text.split_once('\n').unwrap();
        assert!(header.contains(&format!("\"run\":\"{run}\"")), "{header}");
        rest.to_owned()
    };
    let [without, promise] = Variant::ALL.map(|variant| store.variant(variant));
    assert_eq!(after_the_header(&without, "facade"), after_the_header(&store, "none"));
    assert_eq!(after_the_header(&promise, "none"), after_the_header(&store, "none"));
    assert_ne!(after_the_header(&promise, "facade"), after_the_header(&store, "facade"));
}

#[test]
fn a_row_that_holds_without_its_law_is_told_so_on_the_page_and_in_the_verdict() {
    let (folder, experiment) = (tempfile::tempdir().unwrap(), experiment());
    let store = run_in(folder.path(), &experiment, 2);
    let Outcome::Done { checked, .. } = evaluate(&experiment, &SEEDS, &SEEDS[..1], &store).unwrap() else {
        panic!("it was not skipped")
    };
    // Its bounds are so low that nothing breaks them.
    assert_eq!(checked.conclusion(), Conclusion::HoldsWithout);
    let [page, rows] = report(std::slice::from_ref(&experiment), &store).unwrap();
    let (page, rows) = (fs::read_to_string(page).unwrap(), fs::read_to_string(rows).unwrap());
    for text in [&page, &rows] {
        assert!(text.contains("holds without its law"), "{text}");
        assert!(text.contains("nder the law of promises"), "{text}");
    }
    let verdict = fs::read_to_string(store.of(&experiment.id, "verdict.json")).unwrap();
    assert!(verdict.contains("\"variant\": \"without\""), "{verdict}");
}

#[test]
fn a_record_that_is_there_is_not_made_again_and_one_of_another_configuration_is() {
    let (folder, mut experiment) = (tempfile::tempdir().unwrap(), experiment());
    let store = run_in(folder.path(), &experiment, 2);
    // If the text behind the header is still there, the file was not written again.
    let path = store.record(&experiment.id, 1, "facade");
    let header = fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned();
    fs::write(&path, format!("{header}\nkept")).unwrap();
    run_in(folder.path(), &experiment, 2);
    assert!(fs::read_to_string(&path).unwrap().ends_with("kept"));

    experiment =
        Experiment::parse("facade-isolation-1.toml", &experiment.text.replace("60iops", "61iops")).unwrap();
    run_in(folder.path(), &experiment, 2);
    assert!(!fs::read_to_string(&path).unwrap().ends_with("kept"));
}

#[test]
fn an_experiment_whose_trace_is_not_there_is_skipped() {
    let text = experiment().text.replace(
        "phases = [{ at = \"0s\", load = \"8 threads\" }]",
        "trace = { file = \"no such trace.csv\", speed = 1.0 }",
    );
    let experiment = Experiment::parse("facade-isolation-1.toml", &text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = run_in(folder.path(), &experiment, 2);
    let outcome = evaluate(&experiment, &SEEDS, &SEEDS, &store).unwrap();
    assert!(
        matches!(&outcome, Outcome::Skipped { reason } if reason.contains("no such trace.csv")),
        "{outcome:?}"
    );
}
