//! The law to the letter: each test has an equation of §3.

use super::*;

fn literal_at(depth: u32) -> DepthFeedback {
    let initial_depth = QueueDepth::new(depth);
    let config = DepthFeedbackConfig { initial_depth, ..DepthFeedbackConfig::default() };
    DepthFeedback::with(config, Completions::NONE)
}

/// A volume that was promised 10 ms, and whose answers took so long.
fn took(millis: u64) -> VolumeObservation {
    VolumeObservation {
        slo: Some(slo(200.0, Span::from_millis(10))),
        ..promised(Some(Span::from_millis(millis)))
    }
}

fn seen(peak: u32, volumes: Vec<VolumeObservation>) -> PoolObservation {
    PoolObservation { peak, beside_finished: 1.0, volumes }
}

#[test]
fn all_completions_are_the_law_of_every_pool() {
    let config = DepthFeedbackConfig::default();
    assert_eq!(DepthFeedback::with(config, Completions::ALL), DepthFeedback::new(config));
}

#[test]
fn q_new_is_e_times_q_old_if_e_is_below_one() {
    let mut law = literal_at(200);
    // Whatever was at the device, for one volume as for two, and in each period anew.
    for (number, expected) in (0..).zip([100, 50, 25]) {
        assert_eq!(law.step(tick(number), &seen(1, vec![took(20)])).depth.get(), expected);
    }
    assert_eq!(law.step(tick(3), &seen(1, vec![took(50), took(5)])).depth.get(), 5, "E is the least");
}

#[test]
fn q_new_counts_each_latency_though_the_volume_waited_elsewhere() {
    let latency = Latency { total: Span::from_millis(20), at_device: Span::ZERO };
    let waited = VolumeObservation { answered: Some(latency), ..took(20) };
    assert_eq!(literal_at(200).step(tick(0), &seen(9, vec![waited])).depth.get(), 100);
}

#[test]
fn q_new_is_a_tenth_more_if_e_is_not_below_one_and_q_max_is_q_old() {
    let depth_after = |peak| literal_at(100).step(tick(0), &seen(peak, vec![took(10)])).depth.get();
    assert_eq!([99, 100, 101].map(depth_after), [100, 110, 100]);
    let mut law = literal_at(100);
    let in_a_row = [100, 110, 121].map(|peak| law.step(tick(0), &seen(peak, vec![took(10)])).depth.get());
    assert_eq!(in_a_row, [110, 121, 133]);
}

#[test]
fn a_volume_without_an_answer_has_no_latency() {
    let oldest = Some(at_device(Span::from_secs(9)));
    let hangs = VolumeObservation { oldest, answered: None, ..took(1) };
    assert_eq!(literal_at(100).step(tick(0), &seen(7, vec![hangs])).depth.get(), 100);
}

#[test]
fn the_latency_target_is_that_of_the_rate_and_the_mix_in_the_last_period() {
    let point = |up_to, read, write| SloPoint {
        up_to: Iops::new(up_to).unwrap(),
        read: Span::from_millis(read),
        write: Span::from_millis(write),
    };
    let slo = Arc::new(Slo::new(vec![point(100.0, 10, 20), point(200.0, 40, 80)]).unwrap());
    // In 50 ms, one request is a rate of 20. The window before says nothing.
    let target = |reads, writes| {
        let arrived = Offered { reads, writes, over: Span::from_millis(50) };
        let volume = VolumeObservation { slo: Some(slo.clone()), arrived, ..took(1) };
        let setting = literal_at(100).step(tick(0), &seen(1, vec![volume]));
        assert_eq!(setting.due_at_device, setting.latency_targets, "the deadline is arrival and target");
        setting.latency_targets[0]
    };
    let millis = |millis| Some(Span::from_millis(millis));
    assert_eq!(
        [target(4, 0), target(0, 4), target(1, 3)],
        [millis(10), millis(20), Some(Span::from_micros(17_500))]
    );
    assert_eq!([target(5, 0), target(9, 0)], [millis(40); 2], "from r_1 on, and below r_2");
    assert_eq!([target(10, 0), target(99, 0)], [None; 2], "infinite from r_n on");
}
