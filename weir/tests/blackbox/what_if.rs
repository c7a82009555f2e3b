//! `weir whatif`: the effect of a proposed volume on the promises of the existing ones.

use serde_json::Value;

use crate::harness::{Outcome, Program, Scene};
use crate::replay::{pool, trace};

/// Another volume on the same array.
fn neighbour(scene: &Scene) -> String {
    let image = scene.text("w.img");
    format!("[volume.w]\npool = \"p\"\nbackend = \"array:a:{image}\"\nsize = \"64MiB\"\n")
}

/// The configuration of today, and one with a neighbour.
fn configurations(scene: &Scene) -> [String; 2] {
    let today = scene.configure(&pool(scene));
    std::fs::copy(today, scene.file("today.toml")).unwrap();
    scene.configure(&format!("{}{}", pool(scene), neighbour(scene)));
    ["today.toml", "weir.toml"].map(|name| scene.text(name))
}

fn what_if(proposed: &str, base: Option<&str>, traces: &[String], more: &str) -> Outcome {
    let mut program = Program::weir().arg("whatif").arg(proposed);
    if let Some(base) = base {
        program = program.arg("--base").arg(base);
    }
    for trace in traces {
        program = program.arg("--trace").arg(trace);
    }
    program.args(more).outcome()
}

fn rows(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.out).unwrap_or_else(|_| panic!("{}{}", outcome.out, outcome.log))
}

#[test]
fn a_neighbour_that_fits_leaves_every_promise_as_it_was() {
    let scene = Scene::new();
    let trace = trace(&scene, 1_500);
    let [today, proposed] = configurations(&scene);
    let traces = [format!("v={trace}"), format!("w={trace}@2x")];
    let outcome = what_if(&proposed, Some(&today), &traces, "--json");
    assert_eq!(outcome.code, Some(0), "{}", outcome.log);
    let rows = rows(&outcome);
    assert_eq!((rows[0]["volume"].as_str(), rows[1]["volume"].as_str()), (Some("v"), Some("w")));
    for side in ["without", "with"] {
        assert_eq!(rows[0][side]["answer"].as_str(), Some("holds"), "{rows}");
        assert!((rows[0][side]["mean_us"].as_f64().unwrap() - 1_000.0).abs() < 10.0, "{rows}");
    }
    assert!(rows[1]["without"].is_null(), "it is not there today");
    assert_eq!(rows[1]["with"]["answer"].as_str(), Some("no_promise"));
}

#[test]
fn a_promise_above_what_the_array_can_do_does_not_hold_and_the_exit_code_says_so() {
    let scene = Scene::new();
    let trace = trace(&scene, 30_000);
    let [today, proposed] = configurations(&scene);
    // The load is 500 requests a second. The promise is half of the time that a request takes.
    let text = std::fs::read_to_string(&proposed).unwrap().replace("20ms", "500us");
    std::fs::write(&proposed, text).unwrap();
    let traces = [format!("v={trace}"), format!("w={trace}")];
    let outcome = what_if(&proposed, Some(&today), &traces, "--duration 5s");
    assert_eq!(outcome.code, Some(1), "{}", outcome.log);
    assert!(outcome.log.contains("1 of 2 promises would not hold"), "{}", outcome.log);
    for part in [
        "today",
        "proposed",
        "holds",
        "does not hold: disks of array a: busiest",
        "nothing to hold",
        "1.00 ms",
        "%",
    ] {
        assert!(outcome.out.contains(part), "{part:?} in\n{}", outcome.out);
    }
}

#[test]
fn what_is_proposed_can_be_asked_about_without_today() {
    let scene = Scene::new();
    let trace = trace(&scene, 500);
    let [today, _] = configurations(&scene);
    let outcome = what_if(&today, None, &[format!("v={trace}")], "--json");
    assert_eq!(outcome.code, Some(0), "{}", outcome.log);
    assert!(rows(&outcome)[0]["without"].is_null());
}

#[test]
fn a_trace_for_nobody_or_twice_for_one_is_refused() {
    let scene = Scene::new();
    let trace = trace(&scene, 10);
    let [today, proposed] = configurations(&scene);
    for (traces, part) in [
        (vec![format!("x={trace}")], "--trace: found no volume \"x\"; accepted: one of v, w"),
        (vec![format!("v={trace}"), format!("v={trace}")], "--trace: found volume \"v\" twice"),
        (vec!["v".to_owned()], "accepted: VOLUME=PATH or VOLUME=PATH@SPEEDx"),
        (vec![], "--trace"),
    ] {
        let outcome = what_if(&proposed, Some(&today), &traces, "");
        assert_eq!(outcome.code, Some(64), "{}", outcome.log);
        assert!(outcome.log.contains(part), "{part:?} in {}", outcome.log);
    }
}
