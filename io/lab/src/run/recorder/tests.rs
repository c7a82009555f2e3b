//! Claims about the content of a record, given the events of a run.

use weir_model::{IoKind, Offered, Verdict, VolumeId};

use super::*;

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + Span::from_millis(millis)
}

fn finished(kind: IoKind, millis: u64) -> Event {
    let total = Span::from_millis(millis);
    Event::Finished {
        volume: VolumeId(0),
        kind,
        length: 4096,
        ok: true,
        queued: Span::ZERO,
        device: total,
        total,
    }
}

fn ended(reads: u64, mean_ms: u64) -> Event {
    let offered = Offered { reads, writes: 0, over: Span::from_secs(1) };
    let traffic = WindowTraffic { offered, answered: reads, mean_latency: Some(Span::from_millis(mean_ms)) };
    Event::WindowEnded { volume: VolumeId(0), traffic }
}

fn closed(reads: u64, verdict: Verdict) -> Event {
    let window = WindowReport {
        offered: Offered { reads, writes: 0, over: Span::from_secs(1) },
        completed: reads,
        mean_latency: Some(Span::from_millis(60)),
        target: Some(Span::from_millis(50)),
        verdict,
    };
    Event::WindowClosed { volume: VolumeId(0), window }
}

fn record(recorder: Recorder) -> Record {
    recorder.finish(crate::study::testing::header(&["db"]))
}

#[test]
fn a_window_has_the_quantiles_and_the_means_of_what_was_answered_in_it() {
    let mut recorder = Recorder::new(1, Span::ZERO);
    for millis in 1..=100 {
        recorder.on_event(at(millis), &finished(IoKind::Read, millis));
    }
    recorder.on_event(at(900), &finished(IoKind::Write, 200));
    recorder.on_event(at(1000), &ended(101, 52));
    recorder.on_event(at(2000), &ended(0, 0));
    let record = record(recorder);
    let window = &record.windows[0][0];
    assert_eq!((window.p50_us, window.p95_us, window.p99_us), (Some(51_000), Some(96_000), Some(100_000)));
    assert_eq!((window.read_us, window.write_us), (Some(50_500), Some(200_000)));
    assert_eq!((window.completed, window.reads, window.bytes), (101, 100, 101 * 4096));
    let next = &record.windows[0][1];
    assert_eq!((next.completed, next.p50_us, next.read_us), (0, None, None));
}

#[test]
fn a_verdict_is_of_the_oldest_window_without_one_however_late_it_comes() {
    let mut recorder = Recorder::new(1, Span::ZERO);
    for second in 1..=3 {
        recorder.on_event(at(1000 * second), &ended(second, 52));
    }
    recorder.on_event(at(3000), &closed(1, Verdict::Missed));
    recorder.on_event(at(3500), &closed(2, Verdict::Met));
    let windows = record(recorder).windows.remove(0);
    let verdicts: Vec<_> = windows.iter().map(|window| window.verdict).collect();
    assert_eq!(verdicts, [Some(Verdict::Missed), Some(Verdict::Met), None]);
    assert_eq!((windows[0].target_us, windows[2].target_us), (Some(50_000), None));
    assert_eq!(windows[0].mean_us, Some(52_000), "of what was answered in it");
}

#[test]
fn windows_that_are_judged_as_one_have_one_verdict() {
    let mut recorder = Recorder::new(1, Span::ZERO);
    (1..=3).for_each(|second| recorder.on_event(at(1000 * second), &ended(second, 52)));
    let Event::WindowClosed { volume, mut window } = closed(6, Verdict::Met) else { unreachable!() };
    window.offered.over = Span::from_secs(3);
    recorder.on_event(at(3000), &Event::WindowClosed { volume, window });
    let windows = record(recorder).windows.remove(0);
    let verdicts: Vec<_> = windows.iter().map(|window| window.verdict).collect();
    assert_eq!(verdicts, [None, None, Some(Verdict::Met)]);
}

#[test]
fn totals_are_of_what_was_answered_after_the_warm_up() {
    let mut recorder = Recorder::new(1, Span::from_secs(1));
    recorder.on_event(at(500), &finished(IoKind::Read, 500));
    for millis in [2, 4, 4, 4, 5, 5, 7, 9] {
        recorder.on_event(at(1500), &finished(IoKind::Read, millis));
    }
    recorder.on_event(at(1600), &finished(IoKind::Flush, 800));
    let total = record(recorder).totals[0];
    assert_eq!((total.completed, total.max_us), (8, 9_000));
    assert!((total.mean_us - 5_000.0).abs() < 1e-6 && (total.deviation_us - 2_000.0).abs() < 1e-6);
}

#[test]
fn depths_are_thinned_and_keep_their_peaks() {
    let mut recorder = Recorder::new(1, Span::ZERO);
    for (millis, peak) in [(50, 1), (100, 9), (150, 2), (200, 3), (250, 4), (300, 1), (350, 1), (400, 2)] {
        let depth = weir_model::QueueDepth::new(10);
        recorder.on_event(at(millis), &Event::Controlled { depth, peak });
    }
    let peaks: Vec<_> = record(recorder).depths.iter().map(|sample| (sample.end_us, sample.peak)).collect();
    assert_eq!(peaks, [(200_000, 9), (400_000, 4)]);
}

#[test]
fn a_record_is_read_back_as_it_was_written_and_half_of_one_is_refused() {
    let mut recorder = Recorder::new(1, Span::ZERO);
    recorder.on_event(at(900), &finished(IoKind::Read, 3));
    recorder.on_event(at(1000), &ended(1, 3));
    recorder.on_event(at(1000), &closed(1, Verdict::Met));
    let record = record(recorder);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    std::fs::write(&path, record.to_text()).unwrap();
    assert_eq!(Record::read(&path).unwrap(), record);
    assert_eq!(Header::read(&path), Some(record.header.clone()));
    let text = record.to_text();
    let half: Vec<_> = text.lines().take(2).collect();
    std::fs::write(&path, half.join("\n")).unwrap();
    assert!(format!("{:#}", Record::read(&path).unwrap_err()).contains("found no end"));
}
