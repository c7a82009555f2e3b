//! What streams get, without waiting for it.

use super::*;

fn shaper(clock: Clock, shape: Shape) -> Shaper {
    let now = clock.now();
    let random = || Seed(1).stream("");
    let swayed = vec![1.0; shape.nodes.len()];
    let state = State {
        shape: Some(shape),
        streams: BTreeMap::new(),
        next: 0,
        weights: random(),
        sways: random(),
        swayed,
        swayed_at: now,
        given_at: now,
    };
    Shaper { clock, state: Arc::new(Mutex::new(state)) }
}

/// Has all streams ask, and gives them what they get in 100 ms.
fn given(shaper: &Shaper) -> Vec<f64> {
    let mut state = shaper.state();
    let now = state.given_at;
    for stream in state.streams.values_mut() {
        (stream.asked, stream.may) = (Some(now), 0.0);
    }
    state.give(now + Span::from_millis(100));
    state.streams.values().map(|stream| stream.may.round()).collect()
}

fn shape(peak: f64, overhead: f64, stream: f64, crowd: f64) -> Shape {
    let nodes = vec![NodeShape { peak, overhead, others: 0.0 }];
    Shape { stream, spread: 0.0, sway: 0.0, crowd, nodes }
}

#[test]
fn streams_share_a_node_that_does_less_the_more_of_them_there_are() {
    let shaper = shaper(Clock::new(), shape(1e6, 0.5, 1e9, 100.0));
    let _one = shaper.open(0);
    assert_eq!(given(&shaper), [1e5]);
    let _two = shaper.open(0);
    let third = (1e5_f64 / 1.5 / 2.0).round();
    assert_eq!(given(&shaper), [third, third], "1 MB/s / (1 + 0.5) for two");
}

#[test]
fn a_stream_has_a_bound_and_a_crowded_host_slows_all_down() {
    let shaper = shaper(Clock::new(), shape(1e6, 0.0, 2e5, 2.0));
    let mut streams = vec![shaper.open(0)];
    assert_eq!(given(&shaper), [2e4]);
    streams.extend((0..3).map(|_| shaper.open(0)));
    assert_eq!(given(&shaper), [1e4; 4], "four where two are no crowd, at 1 / (1 + 1)");
}

#[test]
fn a_stream_that_does_not_ask_takes_nothing_from_others() {
    let shaper = shaper(Clock::new(), shape(1e6, 0.0, 1e9, 100.0));
    let (_silent, _asks) = (shaper.open(0), shaper.open(0));
    given(&shaper);
    let mut state = shaper.state();
    let now = state.given_at + LATELY + LATELY;
    state.given_at = now;
    for (number, stream) in &mut state.streams {
        stream.may = 0.0;
        if *number == 1 {
            stream.asked = Some(now);
        }
    }
    state.give(now + Span::from_millis(100));
    let may: Vec<_> = state.streams.values().map(|stream| stream.may.round()).collect();
    assert_eq!(may, [0.0, 1e5]);
}

#[test]
fn a_slow_stream_is_given_bytes_for_as_long_as_it_waits() {
    let shaper = shaper(Clock::new(), shape(1e3, 0.0, 1e9, 100.0));
    let _slow = shaper.open(0);
    let mut state = shaper.state();
    let begin = state.given_at;
    if let Some(stream) = state.streams.get_mut(&0) {
        (stream.asked, stream.wants) = (Some(begin), GRAIN);
    }
    (1..=50).for_each(|tick| state.give(begin + Span::from_millis(100 * tick)));
    assert!(state.streams[&0].may >= GRAIN, "1 kB/s for 5 s is more than it waits for");
}
