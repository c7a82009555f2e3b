//! Claims about the figures of transfers that have ended.

use super::*;

fn mark(number: u64, node: usize, rate: u64, asked: u64) -> TransferMark {
    let started = float(number);
    let (ended, wait) = (started + 4.0, Some(0.25));
    TransferMark { number, node, started, ended, rate: Some(rate), asked, wait }
}

fn figure() -> TransfersFigure {
    TransfersFigure {
        title: "transfers".to_owned(),
        nodes: vec!["array".to_owned(), "cloud".to_owned()],
        since: "noon".to_owned(),
        transfers: vec![mark(3, 0, 20_000_000, 10_000_000), mark(9, 1, 2_000_000, 5_000_000)],
    }
}

#[test]
fn the_same_transfers_give_the_same_figures_with_nodes_axes_and_units() {
    let figure = figure();
    let svg = transfers(&figure).unwrap();
    assert_eq!(svg, transfers(&figure).unwrap());
    for wanted in ["rate (MB/s)", "since noon (s)", "first byte (s)", "array", "cloud", "asked for"] {
        assert!(svg.contains(wanted), "{wanted}");
    }
    let by_node = transfers_by_node(&figure).unwrap();
    assert_eq!(by_node, transfers_by_node(&figure).unwrap());
    for wanted in ["array: 1 done", "cloud: 1 done", "rate (MB/s)"] {
        assert!(by_node.contains(wanted), "{wanted}");
    }
}

#[test]
fn each_transfer_has_a_mark_at_its_number_in_the_colour_of_its_node() {
    let figure = figure();
    let lines = rates(&figure, &figure.transfers.iter().collect::<Vec<_>>());
    assert_eq!(lines[0].pieces, [vec![(3.0, 20.0)]]);
    assert_eq!(lines[1].pieces, [vec![(9.0, 2.0)]]);
    assert_eq!([lines[0].stroke, lines[1].stroke], [Stroke::whole(0), Stroke::whole(1)]);
}

#[test]
fn the_dashed_line_steps_between_transfers_that_asked_for_different_rates() {
    let places = [(1.0, 10_000_000), (2.0, 10_000_000), (4.0, 5_000_000)];
    let line = asked(0.0, 5.0, places.into_iter());
    assert_eq!(line.pieces, [vec![(0.0, 10.0), (3.0, 10.0)], vec![(3.0, 5.0), (5.0, 5.0)]]);
    assert_eq!(asked(0.0, 5.0, std::iter::empty()).pieces, Vec::<Vec<_>>::new());
}

#[test]
fn the_time_axis_has_the_unit_that_fits() {
    let mut figure = figure();
    for (ended, unit) in [(13.0, "(s)"), (400.0, "(min)"), (20_000.0, "(h)"), (1e6, "(days)")] {
        figure.transfers[1].ended = ended;
        assert!(by_time(&figure).x.label.ends_with(unit), "{unit}");
    }
}

#[test]
fn spans_that_overlap_are_drawn_as_one() {
    assert_eq!(joined(vec![(5.0, 6.0), (0.0, 2.0), (1.0, 3.0)]), [(0.0, 3.0), (5.0, 6.0)]);
}

#[test]
fn a_transfer_without_a_rate_or_a_wait_is_left_out_and_the_figure_is_drawn() {
    let mut figure = figure();
    for one in &mut figure.transfers {
        (one.rate, one.wait, one.ended) = (None, None, one.started);
    }
    transfers(&figure).unwrap();
    figure.transfers.clear();
    transfers(&figure).unwrap();
}

#[test]
fn a_legend_with_more_nodes_than_fit_in_a_row_has_more_rows() {
    let height = |nodes: usize| -> u32 {
        let nodes = (0..nodes).map(|node| format!("node-{node}")).collect();
        let svg = transfers(&TransfersFigure { nodes, ..figure() }).unwrap();
        svg.split_once("height=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap()
    };
    assert_eq!(height(2), height(5));
    assert!(height(60) >= height(2) + 4 * 22, "{} and {}", height(60), height(2));
}
