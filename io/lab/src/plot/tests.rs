//! Claims about the figures that are drawn.

use super::*;
use crate::library::Library;
use crate::study::testing::{record, records, window};

#[test]
fn a_line_has_a_gap_where_nothing_was_answered() {
    let windows = [window(1, 9, 9, 10), window(2, 0, 0, 0), window(3, 9, 9, 30), window(4, 9, 9, 40)];
    let pieces = pieces(windows.iter(), 0, |window| window.mean_us.map(millis));
    assert_eq!(pieces, [vec![(1.0, 10.0)], vec![(3.0, 30.0), (4.0, 40.0)]]);
}

#[test]
fn an_axis_holds_every_value_with_some_room() {
    let line =
        Line { stroke: Stroke::whole(0), marked: false, pieces: vec![vec![(0.0, 25.0), (1.0, 400.0)]] };
    let linear = Axis::around("latency (ms)", false, &[&line]);
    assert!(linear.from < 1e-9 && linear.to > 400.0);
    let log = Axis::around("latency (ms)", true, &[&line]);
    assert!((log.from - 10.0).abs() < 1e-9 && log.to > 400.0);
    let nothing = Axis::around("latency (ms)", false, &[]);
    assert!(nothing.to > nothing.from);
}

#[test]
fn the_figure_of_every_kind_names_its_axes_with_units_its_runs_and_its_id() {
    let library = Library::embedded().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().to_owned());
    for id in ["facade-isolation-1", "facade-slo", "facade-provisioning"] {
        let experiment = library.matching(id)[0];
        let volume =
            |name: &str| (name.to_owned(), (1..=20).map(|s| window(s, 50, 50, 30)).collect::<Vec<_>>());
        let volumes: Vec<_> = experiment.volume.keys().map(|name| volume(name)).collect();
        let volumes: Vec<_> =
            volumes.iter().map(|(name, windows)| (name.as_str(), windows.clone())).collect();
        let runs = experiment.runs().unwrap();
        let made = runs.iter().map(|run| {
            let mut record = record(&volumes);
            record.header.value = run.value;
            (run.name.as_str(), record)
        });
        let svg = plot(experiment, &records(made.collect()), &store).unwrap();
        for wanted in [id, "(ms)", "its SLO", "with Façade", "without control"] {
            assert!(svg.contains(wanted), "{id}: {wanted}");
        }
        let png = std::fs::read(store.of(id, &format!("{id}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG"));
    }
}

#[test]
fn the_figure_of_a_tuning_has_what_was_recorded_and_what_is_predicted_with_units() {
    let line = vec![(0.0, 20.0), (1.0, 12.0)];
    let figure = TuningFigure {
        title: "vg0".to_owned(),
        recorded: vec![(-1.0, Some(20.0)), (0.0, None), (1.0, Some(12.0))],
        fitted: line.clone(),
        threshold: 15.0,
        wait: line.clone(),
        delay: line,
    };
    let svg = tuning(&figure).unwrap();
    for wanted in ["vg0", "(ms)", "(s)", "recorded", "predicted", "threshold"] {
        assert!(svg.contains(wanted), "{wanted}");
    }
}
