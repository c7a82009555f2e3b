//! What an engine told is read back as it was told, from whole files, from files that were cut off, and not
//! from damaged ones.

use std::fs;
use std::path::{Path, PathBuf};

use weir_engine::{
    Control, Dispatch, Engine, EngineConfig, Entry, Event, Input, OneSidedPidConfig, Outcome, PidConfig,
    Replay, Request, VolumeConfig,
};
use weir_model::{Bandwidth, Instant, IoKind, Iops, Slo, SloPoint, Span, VolumeId};
use weir_recording::{Ending, ReadError, Reader, create};

const REQUESTS: u64 = 20_000;

/// An engine that serves one request after the other, recorded; the file.
fn record(directory: &Path) -> PathBuf {
    let path = directory.join("p.decisions");
    let (recorder, writing) = create(&path, "p").unwrap();
    let mut engine = Engine::with_recorder(Instant::ORIGIN, EngineConfig::default(), Box::new(recorder));
    let volume = engine.add_volume(Instant::ORIGIN, VolumeConfig::default());
    engine.set_volume(Instant::ORIGIN, volume, long_promise());
    serve(&mut engine, volume);
    drop(engine);
    let written = writing.finish().unwrap();
    assert_eq!(written.ending, Ending::Complete);
    assert_eq!(written.bytes, fs::metadata(&path).unwrap().len());
    assert_eq!(written.entries, replayed(&path).unwrap().0);
    path
}

/// One that does not fit into a block.
fn long_promise() -> VolumeConfig {
    let point = |n: u32| SloPoint {
        up_to: Iops::new(n.into()).unwrap(),
        read: Span::from_secs(1),
        write: Span::from_secs(1),
    };
    VolumeConfig { slo: Some(Slo::new((1..6_000).map(point).collect()).unwrap()), ..VolumeConfig::default() }
}

fn serve(engine: &mut Engine, volume: VolumeId) {
    for number in 1..=REQUESTS {
        let now = Instant::from_nanos(number * 500_000);
        engine
            .handle_submit(now, Request { volume, kind: IoKind::Read, offset: number * 4096, length: 4096 });
        let Dispatch::Issue(io) = engine.poll_dispatch(now) else { panic!("nothing is in its way") };
        engine.poll_dispatch(now);
        engine.handle_complete(now, io.id, true);
        engine.handle_reply(now, io.id);
        engine.handle_timeout(now);
        while engine.poll_event().is_some() {}
    }
}

/// Lives it through again: how many entries, and how it ends.
fn replayed(path: &Path) -> Result<(u64, Ending), ReadError> {
    let mut reader = Reader::open(path)?;
    assert_eq!((reader.pool(), reader.weir()), ("p", env!("CARGO_PKG_VERSION")));
    let mut replay = Replay::new();
    while let Some((now, entry)) = reader.next_entry()? {
        replay.step(now, &entry).unwrap();
    }
    Ok((replay.entries(), reader.ending().expect("it has ended")))
}

#[test]
fn what_was_recorded_is_read_back_and_decided_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = record(directory.path());
    let (entries, ending) = replayed(&path).unwrap();
    assert!(entries > 5 * REQUESTS, "{entries}");
    assert_eq!(ending, Ending::Complete);
    assert!(create(&path, "p").is_err(), "a recording is never written over");
}

#[test]
fn a_file_that_was_cut_off_is_good_up_to_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = record(directory.path());
    let whole = fs::read(&path).unwrap();
    let mut before = 0;
    for tenths in [3, 6, 9] {
        fs::write(&path, &whole[..whole.len() * tenths / 10]).unwrap();
        let (entries, ending) = replayed(&path).unwrap();
        assert_eq!(ending, Ending::CutOff);
        assert!(entries >= before, "{entries} of {tenths} tenths, {before} of less");
        before = entries;
    }
    assert!(before > 2 * REQUESTS, "{before}");
}

#[test]
fn a_damaged_file_is_refused_and_never_read_as_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = record(directory.path());
    let whole = fs::read(&path).unwrap();
    let written = read(&path).unwrap();
    for at in [20, 40, whole.len() / 2, whole.len() - 2] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let is_right = match read(&path) {
            Err(ReadError::Damaged { .. }) => true,
            Err(_) => false,
            // A length that was damaged may lead beyond the end of the file, which is then cut off as far as
            // anybody can see.
            Ok((_, Some(Ending::CutOff))) => true,
            // Some bits of a compressed block mean nothing, and which ones depends on when the writer was
            // woken.
            Ok(found) => found == written,
        };
        assert!(is_right, "byte {at} of {}", whole.len());
    }
}

#[test]
fn until_when_replies_were_held_is_read_back_and_decided_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.decisions");
    let (recorder, writing) = create(&path, "p").unwrap();
    let (threshold, write_limit) = (Span::from_micros(100), Bandwidth::new(4096).unwrap());
    let control = Control::Pid(PidConfig { law: OneSidedPidConfig::default(), threshold, write_limit });
    let config = EngineConfig { control, ..EngineConfig::default() };
    let mut engine = Engine::with_recorder(Instant::ORIGIN, config, Box::new(recorder));
    let volume = engine.add_volume(Instant::ORIGIN, VolumeConfig::default());
    let mut held = 0;
    for millis in (0..4_000).step_by(10) {
        let now = Instant::from_nanos(millis * 1_000_000);
        engine.handle_timeout(now);
        while let Some(id) = engine.poll_release() {
            engine.handle_reply(now, id);
        }
        for kind in [IoKind::Read, IoKind::Write] {
            engine.handle_submit(now, Request { volume, kind, offset: 0, length: 4096 });
        }
        let mut issued = Vec::new();
        while let Dispatch::Issue(io) = engine.poll_dispatch(now) {
            issued.push(io.id);
        }
        let finished = now + Span::from_millis(5);
        for id in issued {
            match engine.handle_complete(finished, id, true) {
                Some(_) => held += 1,
                None => engine.handle_reply(finished, id),
            }
        }
        while engine.poll_event().is_some() {}
    }
    drop(engine);
    writing.finish().unwrap();
    assert!(held > 100, "{held}");
    assert_eq!(replayed(&path).unwrap().1, Ending::Complete);
    let (entries, _) = read(&path).unwrap();
    let is_held = |entry: &Entry| {
        matches!(entry, Entry::Applied { input: Input::Complete { ok: true, .. }, outcome: Outcome::Held(_) })
    };
    assert_eq!(entries.iter().filter(|(_, entry)| is_held(entry)).count(), held);
}

/// What a reader hands out, and how it ends.
type Content = (Vec<(Instant, Entry)>, Option<Ending>);

fn read(path: &Path) -> Result<Content, ReadError> {
    let mut reader = Reader::open(path)?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        entries.push(entry);
    }
    Ok((entries, reader.ending()))
}

#[test]
fn what_is_no_recording_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let said = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        Reader::open(&path).map(drop).unwrap_err().to_string()
    };
    assert!(said(b"").contains("found an empty file; accepted: a file that `weir record` wrote"));
    assert!(said(b"[listen]\n").contains("found \"[listen]"));
    assert!(said(b"weir decisions 99\n").contains("in format \"99\""));
    assert!(said(b"weir decisions 4\nxxxxxxxxxxxx").contains("damaged"));
    assert!(said(b"weir decisions 4\n").contains("damaged"));
    let missing = Reader::open(&directory.path().join("none")).map(drop).unwrap_err().to_string();
    assert!(missing.contains("none: cannot read it: No such file"), "{missing}");
}

#[test]
fn entries_carry_the_events_that_they_caused() {
    let directory = tempfile::tempdir().unwrap();
    let mut reader = Reader::open(&record(directory.path())).unwrap();
    let mut finished = 0;
    while let Some((_, entry)) = reader.next_entry().unwrap() {
        finished += u64::from(matches!(entry, Entry::Reported(Event::Finished { .. })));
    }
    assert_eq!(finished, REQUESTS);
}
