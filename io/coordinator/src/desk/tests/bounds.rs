//! What bounds a desk: the number of transfers, and the wall clock, which somebody may set.

use super::*;
use crate::catalogue::Progress;
use crate::proto::Refusal;

/// A year, in milliseconds.
const YEAR: UnixMs = 365 * DAY;
const DAY: UnixMs = 24 * 60 * MINUTE;
const MINUTE: UnixMs = 60 * 1_000;

impl Bench {
    /// Opens the desk again, at this wall-clock time.
    fn restart_at(&mut self, unix: UnixMs) {
        self.desk = None;
        let catalogue = Catalogue::open(&self.directory.path().join("catalogue")).unwrap();
        self.desk = Some(Desk::open(self.now, unix, self.config.clone(), catalogue).unwrap());
    }

    fn states_at(&mut self, unix: UnixMs, ids: &[u64]) -> Vec<State> {
        self.desk().errands(unix).unwrap();
        let now = self.now;
        ids.iter().map(|id| self.desk().find_transfer(now, *id).unwrap().unwrap().state()).collect()
    }

    /// The refusal of an ask, if it is one.
    fn refusal(&mut self, ask: &Ask) -> Option<Refusal> {
        let (outbox, _inbox) = channel(64);
        self.streams += 1;
        let (now, stream) = (self.now, self.streams);
        match self.desk().ask(now, UNIX, stream, Peer::user(3), ask, outbox) {
            Ok(_) => None,
            Err(NotAdmitted::Refused(refusal, _)) => Some(refusal),
            Err(NotAdmitted::Catalogue(error)) => panic!("{error}"),
        }
    }

    /// Transfers that wait as this one does, without a line each in the catalogue: twenty thousand flushes
    /// would take minutes.
    fn fill(&mut self, like: &Asker, ids: std::ops::Range<u64>) {
        let desk = self.desk();
        for id in ids {
            let like = &desk.live[&like.id];
            let live = Live {
                kind: like.kind,
                new: like.new.clone(),
                outbox: like.outbox.clone(),
                stream: like.stream,
                // Neither of the two has more than one peer may.
                peer: Peer::user(if id % 2 == 0 { 1 } else { 2 }),
                allowed: like.allowed.clone(),
                failed: BTreeMap::new(),
                unreachable: 0,
                gone: 0,
                doubted: None,
                is_parked: false,
                awaits: None,
                object: None,
                node: None,
                partial: None,
                progress: Progress::default(),
                since: like.since,
                waited: 0,
                pace: None,
                waits: String::new(),
                wanted: 1,
                notes_left: MOST_NOTES,
            };
            desk.enter(id, live);
        }
    }
}

#[test]
fn beyond_20_000_transfers_a_new_one_is_refused_as_busy_and_an_interrupted_one_still_goes_on() {
    let mut bench = Bench::new(&[("a", "1")]);
    bench.set_up(0, false);
    let interrupted = bench.ask(&put("x", "r")).unwrap();
    bench.gone(&interrupted);
    let first = bench.ask(&put("first", "first")).unwrap();
    bench.fill(&first, 1_000_000..1_019_998);
    assert_eq!(bench.refusal(&put("last", "last")), None);
    assert_eq!(bench.desk().live.len(), 20_000);
    assert_eq!(bench.refusal(&put("y", "y")), Some(Refusal::Busy));
    assert_eq!(bench.refusal(&put("x", "again")), None, "it has had its place before");
    bench.desk().live.retain(|id, _| *id < 1_019_000);
    assert_eq!(bench.refusal(&put("y", "y")), None, "others have gone");
}

#[test]
fn a_clock_that_is_set_while_the_coordinator_is_stopped_gives_nothing_up_early_and_keeps_nothing_longer() {
    for unix in [UNIX + YEAR, UNIX - YEAR, 0] {
        let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
        let file = bench.ask(&put("x", "r1")).unwrap();
        let pipe = bench.ask(&Ask { source: String::new(), ..put("y", "r2") }).unwrap();
        let moving = bench.ask(&put("z", "r3")).unwrap();
        bench.gone(&file);
        bench.gone(&pipe);
        let ids = [file.id, pipe.id, moving.id];
        bench.restart_at(unix);
        let mut after = |passed| bench.states_at(unix + passed, &ids);
        assert_eq!(after(9 * MINUTE), [State::Interrupted; 3], "at {unix}");
        for passed in [11 * MINUTE, DAY - MINUTE] {
            let expected = [State::Interrupted, State::Failed, State::Interrupted];
            assert_eq!(after(passed), expected, "at {unix}");
        }
        assert_eq!(after(DAY + MINUTE), [State::Failed; 3], "at {unix}");
    }
}

#[test]
fn a_clock_that_is_set_changes_no_order_and_overflows_no_time() {
    let mut bench = Bench::new(&[("a", "1")]);
    bench.put("first");
    for (number, unix) in [UNIX + YEAR, UNIX - YEAR, 0].into_iter().enumerate() {
        bench.restart_at(unix);
        bench.put(&format!("later-{number}"));
        let due = Ask { deadline_ms: Some(UNIX), ..put(&format!("due-{number}"), "due") };
        let mut asker = bench.ask(&due).unwrap();
        asker.started();
        bench.finish(&asker, 100, 7);
        assert!(asker.is_done());
        bench.step();
    }
    let now = bench.now;
    let listed = bench.desk().list_transfers(now, true, 0).unwrap().transfers;
    let names: Vec<_> = listed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["due-2", "later-2", "due-1", "later-1", "due-0", "later-0", "first"]);
}
