//! Recordings that nobody wrote: whatever stands in a file, it is read or refused, and what is read can be
//! lived through.
//!
//! A damaged file would be found out by its checksum, at its end. So these are whole files with a right
//! checksum, of whose entries some bytes were changed, as somebody would do it who means harm.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use weir_engine::{
    Control, DepthFeedbackConfig, Dispatch, Engine, EngineConfig, Grant, Grants, LeasedConfig, MaestroConfig,
    Replay, Request, TotalConcurrency, VolumeConfig,
};
use weir_model::{Instant, IoKind, Iops, Slo, SloPoint, Span};
use weir_recording::{Reader, create};

/// Enough for each kind of entry to be changed in each of its bytes.
const MUTANTS: u64 = 1_000;

fn controls() -> [Control; 4] {
    let interval = Span::from_millis(10);
    [
        Control::None,
        Control::Facade(DepthFeedbackConfig::default()),
        Control::Maestro(MaestroConfig { interval, total: TotalConcurrency::Auto }),
        Control::Leased(LeasedConfig { interval }),
    ]
}

/// An engine that serves a little of everything, recorded.
fn record(path: &Path, control: Control) {
    let (recorder, writing) = create(path, "p").unwrap();
    let config = EngineConfig { control, ..EngineConfig::default() };
    let mut engine = Engine::with_recorder(Instant::ORIGIN, config, Box::new(recorder));
    let point = SloPoint {
        up_to: Iops::new(300.0).unwrap(),
        read: Span::from_millis(5),
        write: Span::from_millis(9),
    };
    let promised = VolumeConfig { slo: Slo::new(vec![point]).ok(), ..VolumeConfig::default() };
    let limited = VolumeConfig { max_iops: Iops::new(900.0), ..VolumeConfig::default() };
    let volumes = [promised, limited].map(|config| engine.add_volume(Instant::ORIGIN, config));
    let is_leased = matches!(control, Control::Leased(_));
    for (i, number) in (1..60_usize).zip(1_u64..) {
        let now = Instant::from_nanos(number * 3_000_000);
        if is_leased && number % 20 == 1 {
            let grant = Grant { concurrency: 9.try_into().unwrap(), max_iops: None, max_bandwidth: None };
            let granted = volumes.map(|volume| (volume, grant)).to_vec();
            engine.set_fallback(now, granted.clone());
            engine.handle_grants(now, Grants { until: now + Span::from_millis(50), volumes: granted });
        }
        let kind = [IoKind::Read, IoKind::Write, IoKind::Flush][i % 3];
        let length = if kind == IoKind::Flush { 0 } else { 4096 };
        let request = Request { volume: volumes[i % 2], kind, offset: number * 4096, length };
        let first = engine.handle_submit(now, request);
        engine.handle_submit(now, request);
        if number % 7 == 0 {
            engine.handle_abort(now, first);
        }
        while let Dispatch::Issue(io) = engine.poll_dispatch(now) {
            engine.handle_complete(now, io.id, number % 11 > 0);
            engine.handle_reply(now, io.id);
        }
        engine.handle_timeout(now);
        while engine.poll_event().is_some() {}
    }
    drop(engine);
    writing.finish().unwrap();
}

fn first_line() -> String {
    format!("weir decisions {}\n", weir_recording::VERSION)
}

/// What stands behind the first line, as it is before it is compressed.
fn content(path: &Path) -> Vec<u8> {
    let file = fs::read(path).unwrap();
    let mut content = Vec::new();
    let compressed = file.strip_prefix(first_line().as_bytes()).unwrap();
    zstd::stream::read::Decoder::new(compressed).unwrap().read_to_end(&mut content).unwrap();
    content
}

fn write(path: &Path, content: &[u8]) {
    let mut file = first_line().into_bytes();
    let mut encoder = zstd::stream::write::Encoder::new(&mut file, 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap();
    fs::write(path, file).unwrap();
}

/// Reads a file to its end, and lives it through as far as that goes.
fn live_through(path: &Path) {
    let Ok(mut reader) = Reader::open(path) else { return };
    let mut replay = Replay::new();
    let mut lives = true;
    while let Ok(Some((now, entry))) = reader.next_entry() {
        lives = lives && replay.step(now, &entry).is_ok();
    }
}

/// The next of a row of numbers below `below` that look like chance, and are the same each time.
fn next(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).expect("31 bits") % below
}

fn mutate(content: &mut [u8], state: &mut u64) {
    // Behind the header and the length of the first block of records, which would only be refused.
    let from = 4 + usize::from(content[0]) + 4;
    for _ in 0..=next(state, 3) {
        let at = from + next(state, content.len() - from - 5);
        match next(state, 4) {
            0 => content[at] ^= 1 << next(state, 8),
            1 => content[at] = [0, 1, 0x7f, 0x80, 0xff][next(state, 5)],
            2 => content[at..at + 5].fill(0xff),
            _ => content[at] = content[from + next(state, content.len() - from)],
        }
    }
}

fn survives_mutation(name: &str, control: Control) {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join(name);
    record(&path, control);
    let whole = content(&path);
    let mut state = 1;
    for _ in 0..MUTANTS / 4 {
        let mut mutant = whole.clone();
        mutate(&mut mutant, &mut state);
        write(&path, &mutant);
        live_through(&path);
    }
}

#[test]
fn the_name_of_a_pool_that_would_be_no_name_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.decisions");
    for name in ["\u{1b}[2J".to_owned(), "p".repeat(300)] {
        let (recorder, writing) = create(&path, &name).unwrap();
        drop(recorder); // or it is waited for
        writing.finish().unwrap();
        let error = Reader::open(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("no name that can be printed") && !error.contains(&name), "{error:?}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn whatever_a_recording_says_it_is_read_or_refused() {
    for (i, control) in controls().into_iter().enumerate() {
        survives_mutation(&format!("{i}.decisions"), control);
    }
}
