//! Recordings: a file that may be damaged or made up is read and replayed.
//!
//! The decompression would refuse nearly every mutation of a file. So a script is the content of a file, a
//! piece for each block. But a script that begins with an empty piece is the bytes of a file.

use std::io::Cursor;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use weir_engine::{Engine, EngineConfig, Entry, How, Recorder, Replay, Request, VolumeConfig};
use weir_model::{Instant, IoKind, Span};
use weir_recording::{Ending, ReadError, Reader, VERSION};

use super::Target;
use crate::script::Script;
use crate::seen::Seen;

pub(super) const TARGET: Target = Target {
    name: "recording",
    run,
    seeds,
    words: &[&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], &[0], &[1], b"weir decisions "],
    must_reach: &[
        "damaged",
        "no recording",
        "complete",
        "cut off",
        "agrees",
        "decided otherwise",
        "impossible",
    ],
};

/// Keeps what it is told: each entry as a block.
#[derive(Default, Debug)]
struct Kept {
    last: Instant,
    blocks: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Recorder for Kept {
    fn record(&mut self, now: Instant, entry: &Entry) {
        let nanos = now.saturating_since(self.last).as_nanos();
        self.last = now;
        let block = postcard::to_allocvec(&(nanos, entry)).expect("an entry can be written");
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(block);
    }
}

fn seeds() -> Vec<Script> {
    let kinds = [IoKind::Read, IoKind::Write, IoKind::Flush, IoKind::Trim];
    let recorder = Kept::default();
    let blocks = Arc::clone(&recorder.blocks);
    let mut now = Instant::from_nanos(1_000);
    let mut engine = Engine::with_recorder(now, EngineConfig::default(), Box::new(recorder));
    let volume = engine.add_volume(now, VolumeConfig::default());
    for (offset, kind) in (0..12).zip(kinds.into_iter().cycle()) {
        let id = engine.handle_submit(now, Request { volume, kind, offset: offset * 4096, length: 4096 });
        engine.poll_dispatch(now);
        now = now + Span::from_millis(9);
        if offset % 5 == 4 {
            engine.handle_abort(now, id);
        } else if engine.poll_dispatch(now) == weir_engine::Dispatch::Idle {
            engine.handle_complete(now, id, offset != 2);
            engine.handle_reply(now, id);
        }
        engine.handle_timeout(now);
        while engine.poll_event().is_some() {}
    }
    drop(engine);
    let entries = std::mem::take(&mut *blocks.lock().unwrap_or_else(PoisonError::into_inner));
    let header = postcard::to_allocvec(&("0.1.0", "p")).expect("two texts can be written");
    let blocks: Vec<_> = [header].into_iter().chain(entries).collect();
    let with = |at: usize, block: &[u8]| {
        let mut blocks = blocks.clone();
        blocks.insert(at, block.to_vec());
        Script::new(blocks)
    };
    let cut_off = Script::new(blocks[..blocks.len() - usize::from(blocks.len() % 2 == 0)].to_vec());
    let complete = Script::new(blocks[..blocks.len() - blocks.len() % 2].to_vec());
    // A volume with another number than the engine has given it, an engine that is made twice, and a block
    // that is no entry.
    let (again, twice, nonsense) = (with(3, &blocks[2]), with(2, &blocks[1]), with(4, &[255; 9]));
    let whole = Script::new(vec![Vec::new(), file_of(&complete)]);
    let other = Script::new(vec![Vec::new(), b"a letter".to_vec()]);
    vec![cut_off, complete, again, twice, nonsense, whole, other]
}

/// The file that a script stands for.
fn file_of(script: &Script) -> Vec<u8> {
    if let [first, rest @ ..] = script.pieces.as_slice()
        && first.is_empty()
    {
        return rest.concat();
    }
    let mut stream = Vec::new();
    for block in script.pieces.iter().filter(|block| !block.is_empty()) {
        stream.extend_from_slice(&u32::try_from(block.len()).unwrap_or(u32::MAX).to_le_bytes());
        stream.extend_from_slice(block);
    }
    // An odd number of pieces is a recording that was not ended.
    if script.pieces.len().is_multiple_of(2) {
        stream.extend_from_slice(&[0, 0, 0, 0, 0]);
    }
    let packed = zstd::encode_all(&stream[..], 1).expect("memory can be compressed");
    [format!("weir decisions {VERSION}\n").into_bytes(), packed].concat()
}

fn run(script: &Script, seen: &mut Seen) {
    script.pieces.iter().for_each(|_| seen.message());
    let mut reader = match Reader::of(Path::new("r"), Cursor::new(file_of(script))) {
        Ok(reader) => reader,
        Err(error) => return say(&error, seen),
    };
    let (mut replay, mut last, mut deviates) = (Replay::new(), Instant::ORIGIN, false);
    loop {
        match reader.next_entry() {
            Ok(Some((now, entry))) => {
                assert!(now >= last, "time goes back");
                last = now;
                if deviates {
                    continue;
                }
                if let Err(deviation) = replay.step(now, &entry) {
                    deviates = true;
                    assert!(!deviation.to_string().is_empty());
                    seen.reach(match *deviation.what {
                        How::Decided { .. } => "decided otherwise",
                        How::Impossible { .. } => "impossible",
                    });
                }
            }
            Ok(None) => break,
            Err(error) => return say(&error, seen),
        }
    }
    match reader.ending() {
        Some(Ending::CutOff) => seen.reach("cut off"),
        Some(_) => seen.reach("complete"),
        None => panic!("the end has no ending"),
    }
    if !deviates {
        seen.reach("agrees");
    }
    if let Err(error) = reader.check_rest() {
        say(&error, seen);
    }
}

fn say(error: &ReadError, seen: &mut Seen) {
    assert!(error.to_string().starts_with("r: "), "{error}");
    seen.reach(match error {
        ReadError::Damaged { .. } => "damaged",
        _ => "no recording",
    });
}
