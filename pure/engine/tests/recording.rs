//! What was recorded is decided again, to the last entry; and where it is not, the first difference is found.

use std::sync::mpsc::{Receiver, Sender, channel};

use proptest::prelude::*;
use weir_engine::{
    Control, DepthFeedbackConfig, Deviation, Engine, EngineConfig, Entry, Event, How, Input, Outcome,
    Recorder, Replay, Request, Standing, Strain, VolumeConfig,
};
use weir_model::{
    Bandwidth, Instant, IoId, IoKind, Iops, Objective, Percentile, QueueDepth, Slo, SloPoint, Span, Target,
    VolumeId,
};
use weir_testkit::{Arrivals, Load, Rig, Station};

type Recording = Vec<(Instant, Entry)>;

/// Keeps what it is told.
#[derive(Debug)]
struct Tape(Sender<(Instant, Entry)>);

impl Recorder for Tape {
    fn record(&mut self, now: Instant, entry: &Entry) {
        self.0.send((now, entry.clone())).expect("the test still listens");
    }
}

fn recorded(now: Instant, config: EngineConfig) -> (Engine, Receiver<(Instant, Entry)>) {
    let (tape, recording) = channel();
    (Engine::with_recorder(now, config, Box::new(Tape(tape))), recording)
}

fn replay(recording: &Recording) -> Result<u64, Deviation> {
    let mut replay = Replay::new();
    for (now, entry) in recording {
        replay.step(*now, entry)?;
    }
    replay.finish()
}

/// An input about which nothing was decided.
fn done(input: Input) -> Entry {
    Entry::Applied { input, outcome: Outcome::Done }
}

/// The request that an entry is the reply to.
fn replied(entry: &Entry) -> Option<IoId> {
    if let Entry::Applied { input: Input::Reply { id }, .. } = entry { Some(*id) } else { None }
}

/// What happens to a pool beside its load.
#[derive(Clone, Debug)]
enum Change {
    Slo(u64),
    Cap(u32),
    Law(EngineConfig),
    Target(Target),
    AbortAll,
    Guest,
}

/// No law, Façade's with a depth to begin with, or the law of promises.
fn laws() -> impl Strategy<Value = EngineConfig> {
    prop_oneof![
        1 => Just(config(Control::None)),
        2 => (1u32..200).prop_map(facade),
        2 => Just(config(Control::Promise)),
        1 => Just(config(Control::SharedPromise)),
    ]
}

fn changes() -> impl Strategy<Value = Vec<(u64, Change)>> {
    let change = prop_oneof![
        (1u64..30).prop_map(Change::Slo),
        (50u32..2_000).prop_map(Change::Cap),
        laws().prop_map(Change::Law),
        prop::sample::select(targets().to_vec()).prop_map(Change::Target),
        Just(Change::AbortAll),
        Just(Change::Guest),
    ];
    prop::collection::vec((1u64..300, change), 0..8)
}

fn promised(millis: u64, max_iops: Option<f64>) -> VolumeConfig {
    let (up_to, latency) = (Iops::new(800.0).unwrap(), Span::from_millis(millis));
    let slo = Slo::new(vec![SloPoint { up_to, read: latency, write: latency }]).unwrap();
    VolumeConfig { slo: Some(slo), max_iops: max_iops.and_then(Iops::new), ..VolumeConfig::default() }
}

fn config(control: Control) -> EngineConfig {
    EngineConfig { control, slo_window: Span::from_millis(200), ..EngineConfig::default() }
}

fn facade(depth: u32) -> EngineConfig {
    let initial_depth = QueueDepth::new(depth);
    config(Control::Facade(DepthFeedbackConfig { initial_depth, ..DepthFeedbackConfig::default() }))
}

/// A target of each kind.
fn targets() -> [Target; 4] {
    [
        Target::Latency(Span::from_millis(8)),
        Target::Percentile(Percentile::from_tenths(900).unwrap(), Span::from_millis(10)),
        Target::Rate(Iops::new(300.0).unwrap()),
        Target::Throughput(Bandwidth::new(1 << 20).unwrap()),
    ]
}

fn apply(rig: &mut Rig, volume: VolumeId, change: &Change) {
    let now = rig.now();
    match *change {
        Change::Slo(millis) => rig.engine.set_volume(now, volume, promised(millis, None)),
        Change::Cap(rate) => rig.engine.set_volume(now, volume, promised(10, Some(rate.into()))),
        Change::Law(law) => rig.engine.set_config(now, law),
        Change::Target(target) => {
            let objective = Objective { target: Some(target), ..Objective::default() };
            rig.engine.set_volume(now, volume, VolumeConfig { objective, ..promised(10, None) });
        }
        Change::AbortAll => {
            for slot in 0..64 {
                rig.engine.handle_abort(now, IoId { slot, generation: 0 });
            }
        }
        Change::Guest => {
            let guest = rig.engine.add_volume(now, VolumeConfig::default());
            rig.submit(guest, IoKind::Flush, 0);
            while rig.engine.outstanding(guest) > 0 {
                rig.step();
            }
            rig.engine.remove_volume(rig.now(), guest);
        }
    }
    rig.settle();
}

/// A pool of two volumes under load, with these changes each so many milliseconds after the one before.
fn run(seed: u64, law: EngineConfig, changes: &[(u64, Change)]) -> Recording {
    let mut rig = Rig::new(law, Station::constant(4, Span::from_millis(3)));
    let recording;
    (rig.engine, recording) = recorded(Instant::ORIGIN, law);
    let promised = rig.add_volume(promised(10, None));
    let greedy = rig.add_volume(VolumeConfig::default());
    let rate = Iops::new(400.0).unwrap();
    let load = |volume, kind, arrivals| Load { volume, kind, length: 4096, arrivals };
    rig.start(load(promised, IoKind::Read, Arrivals::Poisson(rate, seed)));
    rig.start(load(greedy, IoKind::Write, Arrivals::Closed(16)));
    for (millis, change) in changes {
        rig.drive_until(rig.now() + Span::from_millis(*millis));
        apply(&mut rig, promised, change);
    }
    rig.drive_until(rig.now() + Span::from_millis(300));
    drop(rig);
    recording.iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_recorded_run_is_decided_again_to_the_last_entry(
        seed: u64, law in laws(), changes in changes(),
    ) {
        let recording = run(seed, law, &changes);
        prop_assert_eq!(replay(&recording), Ok(recording.len() as u64));
    }

    #[test]
    fn one_input_that_differs_is_found_where_it_first_makes_a_difference(
        seed: u64, changes in changes(), nth: prop::sample::Index,
    ) {
        let mut recording = run(seed, facade(200), &changes);
        let answered: Vec<usize> = (0..recording.len())
            .filter(|i| replied(&recording[*i].1).is_some())
            .collect();
        let reply = answered[nth.index(answered.len())];
        let of = replied(&recording[reply].1).expect("it is a reply");
        let (_, completed) = recording[..reply]
            .iter_mut()
            .rfind(|(_, entry)| *entry == done(Input::Complete { id: of, ok: true }))
            .expect("what is answered was completed");
        *completed = done(Input::Complete { id: of, ok: false });
        // The device's answer changes nothing but what is reported of it, right after the reply.
        let found = replay(&recording).unwrap_err();
        prop_assert_eq!(found.entry, reply as u64 + 2);
        prop_assert_eq!(found.at, recording[reply].0);
        let is_report = matches!(
            *found.what,
            How::Decided { recorded: Some(Entry::Reported(Event::Finished { ok: true, .. })),
                replayed: Some(Entry::Reported(Event::Finished { ok: false, .. })) }
        );
        prop_assert!(is_report, "{}", found);
    }

    #[test]
    fn a_recording_that_lost_an_entry_deviates_and_stops_nobody(seed: u64, nth: prop::sample::Index) {
        let mut recording = run(seed, facade(8), &[(20, Change::Guest), (20, Change::Law(config(Control::None)))]);
        // A poll that had nothing to say may be missing: nothing depends on it.
        let told = |entry: &Entry| matches!(
            entry,
            Entry::Made { .. }
                | Entry::Applied { input: Input::Submit(_) | Input::Complete { .. }, .. }
                | Entry::Reported(_)
        );
        let candidates: Vec<usize> =
            (0..recording.len() * 9 / 10).filter(|i| told(&recording[*i].1)).collect();
        let gone = candidates[nth.index(candidates.len())];
        recording.remove(gone);
        let found = replay(&recording).unwrap_err();
        prop_assert!(found.entry > gone as u64, "{found}");
    }
}

#[test]
fn a_recording_under_the_law_of_promises_tells_what_the_background_was_allowed_and_is_decided_again() {
    let change = |target| (300, Change::Target(target));
    let recording = run(7, config(Control::Promise), &targets().map(change));
    let reported = |is: fn(&Event) -> bool| {
        recording.iter().filter(|(_, entry)| matches!(entry, Entry::Reported(event) if is(event))).count()
    };
    assert!(reported(|event| matches!(event, Event::Allowed(knobs) if knobs.most < u32::MAX)) > 0);
    assert!(reported(|event| matches!(event, Event::Weighed { .. })) >= 20);
    assert_eq!(replay(&recording), Ok(recording.len() as u64));
}

#[test]
fn what_an_engine_hears_of_other_gateways_is_recorded_stored_and_decided_again() {
    let (mut engine, recording) = recorded(Instant::ORIGIN, config(Control::SharedPromise));
    let at = |millis| Instant::ORIGIN + Span::from_millis(millis);
    let volume = engine.add_volume(at(1), VolumeConfig::default());
    engine.handle_submit(at(2), Request { volume, kind: IoKind::Read, offset: 0, length: 512 });
    engine.poll_dispatch(at(2));
    let strain = Strain { window: 2.0, lately: f64::NAN, likely: 2.0, latency: 0.1, service: 0.01 };
    let standing = Standing { is_promised: true, strain: Some(strain), ..Standing::default() };
    engine.handle_standing(at(3), standing);
    engine.handle_timeout(at(50));
    drop(engine);
    let recording: Recording = recording.iter().collect();
    assert_eq!(replay(&recording), Ok(recording.len() as u64));
    let heard = |(_, entry): &(Instant, Entry)| matches!(entry, Entry::Applied { input: Input::Standing(standing), .. } if standing.strain.is_some());
    assert!(recording.iter().any(heard));
}

#[test]
fn a_deviation_says_which_entry_when_and_what() {
    let (mut engine, recording) = recorded(Instant::from_nanos(5), config(Control::None));
    let volume = engine.add_volume(Instant::from_nanos(7), VolumeConfig::default());
    let request = Request { volume, kind: IoKind::Read, offset: 0, length: 512 };
    engine.handle_submit(Instant::from_nanos(9), request);
    drop(engine);
    let mut recording: Recording = recording.iter().collect();
    let id = IoId { slot: 3, generation: 0 };
    recording[2].1 = Entry::Applied { input: Input::Submit(request), outcome: Outcome::Submitted(id) };
    let said = replay(&recording).unwrap_err().to_string();
    assert!(said.starts_with("entry 3, 9 ns after the origin of the clock: recorded Applied"), "{said}");
    assert!(said.contains("slot: 3") && said.contains("decided now Applied") && said.contains("slot: 0"));
}

#[test]
fn what_no_engine_could_have_been_told_is_a_deviation_and_no_panic() {
    let config = facade(1);
    let (volume, id) = (VolumeId(0), IoId { slot: 0, generation: 0 });
    let request = Request { volume, kind: IoKind::Read, offset: 0, length: 512 };
    let made = Entry::Made { config, timeout: Some(Instant::from_nanos(50_000_000)) };
    let no_window = EngineConfig { slo_window: Span::ZERO, ..config };
    let no_growth = Control::Facade(DepthFeedbackConfig { growth: f64::NAN, ..Default::default() });
    for (entry, why) in [
        (made.clone(), "made before"),
        (done(Input::SetConfig(no_window)), "no length"),
        (done(Input::SetConfig(EngineConfig { control: no_growth, ..config })), "growth"),
        (done(Input::SetVolume { id: volume, config: VolumeConfig::default() }), "no such volume"),
        (done(Input::RemoveVolume { id: volume }), "no such volume"),
        (done(Input::Submit(request)), "no such volume"),
        (done(Input::Complete { id, ok: true }), "not at the device"),
        (done(Input::Reply { id }), "not finished"),
    ] {
        let found = replay(&vec![(Instant::ORIGIN, made.clone()), (Instant::ORIGIN, entry)]).unwrap_err();
        assert_eq!(found.entry, 2);
        assert!(found.to_string().contains(why), "{found}");
    }
    let first = replay(&vec![(Instant::ORIGIN, done(Input::Reply { id }))]).unwrap_err();
    assert!(first.to_string().contains("not the making of an engine"), "{first}");
    let later = Entry::Made { config, timeout: Some(Instant::from_nanos(50_000_009)) };
    let back = vec![(Instant::from_nanos(9), later), (Instant::ORIGIN, done(Input::Timeout))];
    assert!(replay(&back).unwrap_err().to_string().contains("time goes back"));
}
