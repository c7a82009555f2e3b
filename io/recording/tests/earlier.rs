//! A recording that an earlier version of weir wrote is read, and decided again to its last entry.
//!
//! weir wrote `earlier.decisions` when SLO windows were first judged by the requests that came in them. The
//! file has every kind of entry. If a law decides otherwise on purpose, these tests fail; the second one says
//! where the new file lies. Such a change needs no new format, but a change of the stored bytes does.
//!
//! `first.decisions` is older: its windows are judged by what was answered in them. So an engine decides
//! otherwise today, but the file must still be read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use weir_engine::{
    Completions, Control, DepthFeedbackConfig, Dispatch, Engine, EngineConfig, Entry, Grant, Grants,
    LeasedConfig, MaestroConfig, Replay, Request, TotalConcurrency, VolumeConfig,
};
use weir_model::{
    Bandwidth, Instant, IoId, IoKind, Iops, MilliIops, Objective, Percentile, Priority, QueueDepth, Slo,
    SloPoint, Span, Target, VolumeId,
};
use weir_recording::{Ending, Reader, create};

/// An engine whose device finishes each request after 3 ms.
struct Pool {
    engine: Engine,
    now: Instant,
    at_device: Vec<(Instant, IoId)>,
    submitted: u64,
}

fn config(control: Control) -> EngineConfig {
    EngineConfig { control, slo_window: Span::from_millis(40), ..EngineConfig::default() }
}

fn facade() -> Control {
    let initial_depth = QueueDepth::new(2);
    let period = Span::from_millis(10);
    Control::Facade(DepthFeedbackConfig { initial_depth, period, ..DepthFeedbackConfig::default() })
}

fn promised() -> VolumeConfig {
    let point = |up_to, millis| SloPoint {
        up_to: Iops::new(up_to).unwrap(),
        read: Span::from_millis(millis),
        write: Span::from_millis(2 * millis),
    };
    let objective = Objective {
        target: Percentile::from_tenths(950)
            .map(|percentile| Target::Percentile(percentile, Span::from_millis(9))),
        priority: Priority::new(4.0).unwrap(),
    };
    let slo = Slo::new(vec![point(500.0, 5), point(900.0, 15)]).ok();
    VolumeConfig { slo, objective, ..VolumeConfig::default() }
}

fn limited() -> VolumeConfig {
    VolumeConfig {
        concurrency: 3.try_into().ok(),
        max_iops: Iops::new(250.0),
        max_bandwidth: Bandwidth::new(1 << 22),
        ..VolumeConfig::default()
    }
}

fn grants(volumes: &[VolumeId], concurrency: u32) -> Vec<(VolumeId, Grant)> {
    let max_iops = Iops::new(800.5).map(MilliIops::at_most);
    let grant = Grant { concurrency: concurrency.try_into().unwrap(), max_iops, max_bandwidth: None };
    volumes.iter().map(|volume| (*volume, grant)).collect()
}

impl Pool {
    /// Lives for so many milliseconds, with a request for one of `volumes` in each.
    fn live(&mut self, millis: u64, volumes: &[VolumeId]) {
        for _ in 0..millis {
            self.now = self.now + Span::from_millis(1);
            while let Some((_, id)) = self.at_device.pop_if(|(at, _)| *at <= self.now) {
                self.engine.handle_complete(self.now, id, !self.submitted.is_multiple_of(13));
                self.engine.handle_reply(self.now, id);
            }
            let volume = volumes[usize::try_from(self.submitted).unwrap() % volumes.len()];
            let id = self.submit(volume);
            if self.submitted.is_multiple_of(9) {
                self.engine.handle_abort(self.now, id);
                self.engine.handle_abort(self.now, id);
            }
            self.engine.handle_timeout(self.now);
            self.drain();
        }
    }

    fn submit(&mut self, volume: VolumeId) -> IoId {
        let kind = IoKind::ALL[usize::try_from(self.submitted).unwrap() % IoKind::ALL.len()];
        let length = if kind == IoKind::Flush { 0 } else { 8192 };
        let request = Request { volume, kind, offset: self.submitted * 8192, length };
        self.submitted += 1;
        self.engine.handle_submit(self.now, request)
    }

    fn drain(&mut self) {
        while let Dispatch::Issue(io) = self.engine.poll_dispatch(self.now) {
            self.at_device.insert(0, (self.now + Span::from_millis(3), io.id));
        }
        while self.engine.poll_event().is_some() {}
    }
}

/// Records an engine that is told of everything there is, under each law.
fn record(path: &Path) {
    let (recorder, writing) = create(path, "p").unwrap();
    let now = Instant::from_nanos(1_000_000_007);
    let engine = Engine::with_recorder(now, config(facade()), Box::new(recorder));
    let mut pool = Pool { engine, now, at_device: Vec::new(), submitted: 0 };
    let volumes = [promised(), limited()].map(|config| pool.engine.add_volume(now, config));
    pool.live(60, &volumes);
    let interval = Span::from_millis(20);
    let total = TotalConcurrency::Fixed(6.try_into().unwrap());
    pool.engine.set_config(pool.now, config(Control::Maestro(MaestroConfig { interval, total })));
    pool.live(50, &volumes);
    let port = VolumeConfig { port_of: Some(volumes[0]), ..VolumeConfig::default() };
    let port = pool.engine.add_volume(pool.now, port);
    pool.live(50, &[volumes[0], volumes[1], port]);
    pool.engine.set_config(pool.now, config(Control::Leased(LeasedConfig { interval })));
    pool.engine.set_fallback(pool.now, grants(&volumes, 2));
    pool.live(20, &volumes);
    let until = pool.now + Span::from_millis(30);
    pool.engine.handle_grants(pool.now, Grants { until, volumes: grants(&volumes, 5) });
    pool.live(50, &volumes);
    pool.engine.set_volume(pool.now, volumes[1], promised());
    pool.engine.set_config(pool.now, config(Control::None));
    pool.live(20, &volumes);
    pool.engine.remove_volume(pool.now, port);
    pool.live(10, &volumes);
    drop(pool);
    writing.finish().unwrap();
}

fn earlier() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/earlier.decisions")
}

fn first() -> PathBuf {
    earlier().with_file_name("first.decisions")
}

fn entries(path: &Path) -> Vec<(Instant, Entry)> {
    let mut reader = Reader::open(path).unwrap();
    let entries = std::iter::from_fn(|| reader.next_entry().unwrap()).collect();
    assert_eq!(reader.ending(), Some(Ending::Complete));
    entries
}

#[test]
fn a_recording_of_an_earlier_version_is_decided_again_to_the_last_entry() {
    let entries = entries(&earlier());
    let mut replay = Replay::new();
    let mut kinds = BTreeSet::new();
    for (now, entry) in &entries {
        kinds.insert(postcard::to_allocvec(entry).unwrap()[0]);
        if let Err(deviation) = replay.step(*now, entry) {
            panic!("{deviation}");
        }
    }
    assert_eq!(replay.finish(), Ok(entries.len() as u64));
    assert_eq!(kinds, (0..14).collect(), "the file has every kind of entry");
}

#[test]
fn what_is_recorded_today_is_what_an_earlier_version_recorded() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("today.decisions");
    let _ = fs::remove_file(&path); // of an earlier run of this test
    record(&path);
    let (today, earlier) = (entries(&path), entries(&earlier()));
    let first = today.iter().zip(&earlier).find(|(today, earlier)| today != earlier);
    let (path, found) = (path.display(), (today.len(), earlier.len()));
    assert!(first.is_none(), "{path}: recorded today, and by the earlier version: {first:?}");
    assert_eq!(found.0, found.1, "{path}: so many entries today, and so many by the earlier version");
}

#[test]
fn a_recording_whose_windows_were_judged_by_another_rule_is_read_and_has_the_same_inputs() {
    let told = |path: &Path| {
        let inputs = entries(path).into_iter().filter_map(|(now, entry)| match entry {
            Entry::Applied { input, .. } => Some((now, input)),
            Entry::Made { .. } | Entry::Reported(_) => None,
        });
        inputs.collect::<Vec<_>>()
    };
    assert!(told(&first()) == told(&earlier()), "the two recordings tell their engines different things");
}

#[test]
fn the_completions_of_a_law_are_in_no_recording_and_what_is_read_has_all() {
    let complete = config(facade());
    let literal = EngineConfig { completions: Completions::NONE, ..complete };
    let stored = postcard::to_allocvec(&literal).unwrap();
    assert_eq!(stored, postcard::to_allocvec(&complete).unwrap());
    assert_eq!(postcard::from_bytes::<EngineConfig>(&stored).unwrap(), complete);
}
