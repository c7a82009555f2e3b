//! The desk, driven without a network.

mod bounds;

use tempfile::TempDir;
use tokio::sync::mpsc::{Receiver, channel};
use weir_model::{Bandwidth, Instant, Span};
use weir_transfer::{NodeIndex, PolicyName};

use super::*;
use crate::catalogue::What;
use crate::proto::from_client::Message as Said;
use crate::proto::{Ask, Failed, Fault, Finish, Finished, Moved, Notes, State};

const UNIX: UnixMs = 1_790_000_000_000;

/// A desk with its directory. A second passes with each step.
struct Bench {
    desk: Option<Desk>,
    directory: TempDir,
    config: DeskConfig,
    now: Instant,
    streams: u64,
}

/// A client's side.
struct Asker {
    id: u64,
    inbox: Receiver<Box<ToClient>>,
}

impl Bench {
    /// Nodes by name and failure domain.
    fn new(nodes: &[(&str, &str)]) -> Self {
        let node = |(name, domain): &(&str, &str)| NodeConfig {
            name: (*name).to_owned(),
            url: String::new(),
            peak_read: None,
            peak_write: None,
            class: 0,
            cost: 0,
            capacity: None,
            domain: (*domain).to_owned(),
        };
        let classes = ["bronze", "gold"].map(str::to_owned).to_vec();
        let rate = Bandwidth::new(10_000_000).unwrap();
        let nodes = nodes.iter().map(node).collect();
        let config = DeskConfig { policy: PolicyName::SmR3.policy(), classes, rate, nodes };
        let directory = tempfile::tempdir().unwrap();
        let mut bench = Self { desk: None, directory, config, now: Instant::ORIGIN, streams: 0 };
        bench.restart();
        bench
    }

    fn restart(&mut self) {
        self.desk = None;
        let catalogue = Catalogue::open(&self.directory.path().join("catalogue")).unwrap();
        self.desk = Some(Desk::open(self.now, UNIX, self.config.clone(), catalogue).unwrap());
    }

    fn desk(&mut self) -> &mut Desk {
        self.desk.as_mut().unwrap()
    }

    fn step(&mut self) {
        self.now = self.now + Span::from_secs(1);
        let now = self.now;
        self.desk().sample(now, UNIX).unwrap();
    }

    fn ask(&mut self, ask: &Ask) -> Result<Asker, String> {
        let (outbox, inbox) = channel(64);
        self.streams += 1;
        let (now, stream) = (self.now, self.streams);
        match self.desk().ask(now, UNIX, stream, Peer::user(0), ask, outbox) {
            Ok(id) => Ok(Asker { id, inbox }),
            Err(NotAdmitted::Refused(_, why)) => Err(why),
            Err(NotAdmitted::Catalogue(error)) => panic!("{error}"),
        }
    }

    fn say(&mut self, asker: &Asker, said: Said) {
        let now = self.now;
        self.desk().said(now, UNIX, asker.id, said).unwrap();
    }

    fn fail(&mut self, asker: &Asker, fault: Fault) {
        let why = format!("{fault:?}");
        self.say(asker, Said::Failed(Failed { fault: fault.into(), why }));
    }

    fn finish(&mut self, asker: &Asker, bytes: u64, data: u8) {
        self.say(asker, Said::Moved(Moved { bytes }));
        self.say(asker, Said::Finished(Finished { bytes, checksum: vec![data; 32] }));
    }

    fn gone(&mut self, asker: &Asker) {
        let now = self.now;
        self.desk().gone(now, UNIX, asker.id).unwrap();
    }

    fn set_up(&mut self, node: usize, is_up: bool) {
        let now = self.now;
        let answer = if is_up { Ok(()) } else { Err("it does not answer".to_owned()) };
        self.desk().probed(now, UNIX, NodeIndex(node), answer).unwrap();
    }

    fn state(&mut self, asker: &Asker) -> State {
        let now = self.now;
        self.desk().find_transfer(now, asker.id).unwrap().unwrap().state()
    }

    fn nodes_of(&mut self, name: &str) -> Vec<(String, bool)> {
        let desk = self.desk();
        let object = desk.object(name).unwrap().unwrap();
        let replicas = desk.told_object(object).unwrap().replicas;
        replicas.into_iter().map(|replica| (replica.node, replica.is_good)).collect()
    }

    /// Stores an object of 100 bytes.
    fn put(&mut self, name: &str) {
        let mut asker = self.ask(&put(name, "r")).unwrap();
        asker.started();
        self.finish(&asker, 100, 7);
        assert!(asker.is_done());
    }
}

impl Asker {
    fn next(&mut self) -> Option<Message> {
        self.inbox.try_recv().ok().and_then(|message| message.message)
    }

    /// The start, after what comes before it.
    fn start(&mut self) -> Option<Start> {
        loop {
            match self.next()? {
                Message::Start(start) => return Some(start),
                Message::Refused(refused) => panic!("refused: {}", refused.why),
                _ => {}
            }
        }
    }

    fn started(&mut self) -> String {
        self.start().expect("it has started").node
    }

    /// Why it waits, by the last that it has heard.
    fn waits(&mut self) -> Option<String> {
        let told = std::iter::from_fn(|| self.next()).filter_map(|message| match message {
            Message::Waiting(waiting) => Some(waiting.why),
            Message::Refused(refused) => panic!("refused: {}", refused.why),
            _ => None,
        });
        told.last()
    }

    fn is_done(&mut self) -> bool {
        std::iter::from_fn(|| self.next()).any(|message| matches!(message, Message::Done(_)))
    }

    fn refused(&mut self) -> Option<String> {
        std::iter::from_fn(|| self.next()).find_map(|message| match message {
            Message::Refused(refused) => Some(refused.why),
            _ => None,
        })
    }
}

fn ask(kind: Kind, name: &str, run: &str) -> Ask {
    Ask {
        version: VERSION,
        kind: kind.into(),
        name: name.to_owned(),
        nodes: ["a", "b", "c"].map(str::to_owned).to_vec(),
        replicas: 1,
        run: run.to_owned(),
        ..Ask::default()
    }
}

fn put(name: &str, run: &str) -> Ask {
    Ask { bytes: Some(100), source: "the same data".to_owned(), ..ask(Kind::Put, name, run) }
}

#[test]
fn a_put_is_an_object_once_it_has_finished_and_not_before() {
    let mut bench = Bench::new(&[("a", "1")]);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    assert_eq!(asker.started(), "a");
    bench.say(&asker, Said::Moved(Moved { bytes: 60 }));
    assert_eq!((bench.desk().object("x").unwrap(), bench.state(&asker)), (None, State::Active));
    bench.finish(&asker, 40, 7);
    assert!(asker.is_done());
    assert_eq!(bench.nodes_of("x"), [("a".to_owned(), true)]);
    assert_eq!(bench.state(&asker), State::Done);
}

#[test]
fn another_run_with_the_same_data_goes_on_where_the_client_was_ended() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let mut first = bench.ask(&put("x", "r1")).unwrap();
    let node = first.started();
    bench.say(&first, Said::Notes(Notes { lines: vec!["file 1".to_owned(), "part 2".to_owned()] }));
    let id = first.id;
    bench.gone(&first);
    let mut second = bench.ask(&put("x", "r2")).unwrap();
    let start = second.start().unwrap();
    assert_eq!((second.id, start.node, start.notes.len()), (id, node, 2));
}

#[test]
fn other_data_under_the_name_of_an_interrupted_put_begins_anew_and_leaves_the_partial_to_be_removed() {
    let mut bench = Bench::new(&[("a", "1")]);
    let mut first = bench.ask(&put("x", "r1")).unwrap();
    first.started();
    bench.say(&first, Said::Notes(Notes { lines: vec!["file 1".to_owned()] }));
    bench.gone(&first);
    let mut second = bench.ask(&Ask { source: "other".to_owned(), ..put("x", "r2") }).unwrap();
    assert_eq!(second.start().unwrap().notes, Vec::<String>::new());
    let errands = bench.desk().errands(UNIX).unwrap();
    assert_eq!(
        errands.iter().map(|errand| &errand.what).collect::<Vec<_>>(),
        [&What::Partial(vec!["file 1".to_owned()])]
    );
    assert_eq!(bench.desk().errands(UNIX).unwrap(), [], "each is run once at a time");
}

#[test]
fn after_a_restart_of_the_coordinator_the_same_run_goes_on_and_hears_of_what_it_had_finished() {
    let mut bench = Bench::new(&[("a", "1")]);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    asker.started();
    bench.say(&asker, Said::Notes(Notes { lines: vec!["file 1".to_owned()] }));
    bench.restart();
    assert_eq!(bench.state(&asker), State::Interrupted);
    let mut again = bench.ask(&put("x", "r")).unwrap();
    assert_eq!((again.id, again.start().unwrap().notes.len()), (asker.id, 1));
    bench.finish(&again, 100, 7);
    bench.restart();
    let mut again = bench.ask(&put("x", "r")).unwrap();
    assert!(again.is_done(), "the answer may have been lost");
}

#[test]
fn a_full_node_is_left_out_and_a_transfer_without_a_node_ends_with_all_reasons() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    let first = asker.started();
    bench.fail(&asker, Fault::Full);
    let second = asker.started();
    assert_ne!(first, second);
    bench.fail(&asker, Fault::Stalled);
    let why = asker.refused().unwrap();
    assert!(why.contains("a: ") && why.contains("b: ") && why.contains("Full"), "{why}");
    assert_eq!(bench.state(&asker), State::Failed);
}

#[test]
fn a_node_that_one_client_cannot_reach_stays_up_for_others_and_is_tried_again_after_its_next_answer() {
    let mut bench = Bench::new(&[("a", "1")]);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    asker.started();
    bench.say(&asker, Said::Notes(Notes { lines: vec!["file 1".to_owned()] }));
    bench.fail(&asker, Fault::Unreachable);
    assert_eq!((asker.start(), bench.state(&asker)), (None, State::Waiting));
    let mut other = bench.ask(&put("y", "other")).unwrap();
    assert_eq!(other.started(), "a");
    bench.finish(&other, 100, 7);
    bench.step();
    assert_eq!(asker.start(), None, "nobody has asked the node yet");
    bench.set_up(0, true);
    assert_eq!(asker.start().unwrap().notes.len(), 1, "it goes on where it was");
}

#[test]
fn a_name_that_is_taken_or_is_being_written_is_refused() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let writes = bench.ask(&put("x", "r1")).unwrap();
    let why = bench.ask(&Ask { source: "other".to_owned(), ..put("x", "r2") }).err().unwrap();
    assert!(why.contains("which writes x now"), "{why}");
    bench.finish(&writes, 100, 7);
    let why = bench.ask(&put("x", "r3")).err().unwrap();
    assert!(why.contains("found x already, of 100 bytes"), "{why}");
}

#[test]
fn replicas_lie_in_different_failure_domains_and_must_be_equal() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "1"), ("c", "2")]);
    let of = |replica| Ask { replicas: 2, replica, ..put("x", "r") };
    let mut first = bench.ask(&of(0)).unwrap();
    let mut second = bench.ask(&of(1)).unwrap();
    let nodes = [first.started(), second.started()];
    assert!(nodes.contains(&"c".to_owned()), "{nodes:?}");
    bench.finish(&first, 100, 7);
    bench.finish(&second, 100, 8);
    let why = second.refused().unwrap();
    assert!(why.contains("differs from the other replica's"), "{why}");
    assert_eq!(bench.nodes_of("x").len(), 1);
    let errands = bench.desk().errands(UNIX).unwrap();
    assert_eq!(errands[0].what, What::Object("x".to_owned()), "the wrong replica does not stay visible");
}

#[test]
fn a_corrupt_replica_is_known_as_bad_and_the_object_is_read_elsewhere() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let of = |replica| Ask { replicas: 2, replica, ..put("x", "r") };
    let (first, second) = (bench.ask(&of(0)).unwrap(), bench.ask(&of(1)).unwrap());
    bench.finish(&first, 100, 7);
    bench.finish(&second, 100, 7);
    let mut reader = bench.ask(&ask(Kind::Get, "x", "g")).unwrap();
    let bad = reader.start().unwrap();
    assert_eq!((bad.bytes, bad.checksum), (Some(100), vec![7; 32]));
    bench.fail(&reader, Fault::Corrupt);
    let good = reader.started();
    assert_ne!(bad.node, good);
    bench.finish(&reader, 100, 7);
    assert!(reader.is_done());
    let replicas = bench.nodes_of("x");
    assert!(
        replicas.contains(&(bad.node.clone(), false)) && replicas.contains(&(good, true)),
        "{replicas:?}"
    );
    assert!(bench.desk().drop_replica("x", &bad.node).unwrap());
    assert!(!bench.desk().drop_replica("x", "nowhere").unwrap());
}

#[test]
fn a_name_is_free_on_a_node_only_when_the_earlier_object_is_gone_from_there() {
    let mut bench = Bench::new(&[("a", "1")]);
    bench.put("x");
    let now = bench.now;
    assert!(bench.desk().remove(now, UNIX, "x").unwrap());
    assert!(!bench.desk().remove(now, UNIX, "x").unwrap());
    let mut early = bench.ask(&put("x", "r2")).unwrap();
    bench.step();
    assert!(early.waits().unwrap().contains("yet to be removed"));
    let errands = bench.desk().errands(UNIX).unwrap();
    bench.desk().errand_done(errands[0].id, true).unwrap();
    bench.step();
    assert_eq!(early.started(), "a");
}

#[test]
fn a_read_is_refused_if_no_replica_can_be_reached_and_one_that_had_read_a_part_waits() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    bench.put("x");
    let name = bench_node(&mut bench);
    let node = bench.desk().node(&name).unwrap().0;
    let unreachable = format!("no replica of x can be reached: {name} is down (it does not answer)");
    let mut without_a_byte = bench.ask(&ask(Kind::Get, "x", "f")).unwrap();
    assert!(without_a_byte.start().is_some());
    bench.fail(&without_a_byte, Fault::Unreachable);
    bench.set_up(node, false);
    assert_eq!(without_a_byte.refused().as_ref(), Some(&unreachable));
    bench.set_up(node, true);
    let mut reader = bench.ask(&ask(Kind::Get, "x", "g")).unwrap();
    assert!(reader.start().is_some());
    bench.say(&reader, Said::Moved(Moved { bytes: 60 }));
    bench.fail(&reader, Fault::Unreachable);
    bench.set_up(node, false);
    let mut late = bench.ask(&ask(Kind::Get, "x", "h")).unwrap();
    assert_eq!(late.refused(), Some(unreachable));
    bench.step();
    assert_eq!(reader.start(), None);
    let now = bench.now;
    let why = bench.desk().find_transfer(now, reader.id).unwrap().unwrap().why;
    assert!(why.contains("is down (it does not answer)") || why.contains("cannot reach"), "{why}");
    bench.set_up(node, true);
    assert!(reader.start().is_some());
}

fn bench_node(bench: &mut Bench) -> String {
    bench.nodes_of("x").remove(0).0
}

#[test]
fn class_cost_and_capacity_bound_where_data_is_written_and_not_where_it_is_read() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2"), ("c", "3")]);
    bench.config.nodes[0].class = 1;
    bench.config.nodes[1].cost = 5;
    bench.config.nodes[2].capacity = Some(150);
    bench.restart();
    let cheap = Ask { max_cost: Some(1), ..put("x", "r1") };
    let mut first = bench.ask(&cheap.clone()).unwrap();
    assert_eq!(first.started(), "c");
    let mut second = bench.ask(&Ask { name: "y".to_owned(), run: "r2".to_owned(), ..cheap.clone() }).unwrap();
    assert!(second.refused().unwrap().contains("its capacity is taken"));
    let gold = Ask { class: "gold".to_owned(), name: "z".to_owned(), run: "r3".to_owned(), ..cheap };
    assert_eq!(bench.ask(&gold).unwrap().started(), "a");
    assert!(bench.ask(&Ask { class: "none".to_owned(), ..put("w", "r4") }).is_err());
}

#[test]
fn what_nobody_continues_is_given_up_after_its_time() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let file = bench.ask(&put("x", "r1")).unwrap();
    let pipe = bench.ask(&Ask { source: String::new(), ..put("y", "r2") }).unwrap();
    let (file_id, pipe_id) = (file.id, pipe.id);
    bench.gone(&file);
    bench.gone(&pipe);
    let now = bench.now;
    let mut states = |after: u64| {
        bench.desk().errands(UNIX + after).unwrap();
        [file_id, pipe_id].map(|id| bench.desk().find_transfer(now, id).unwrap().unwrap().state())
    };
    assert_eq!(states(500_000), [State::Interrupted, State::Interrupted]);
    assert_eq!(states(700_000), [State::Interrupted, State::Failed]);
    assert_eq!(states(25 * 3_600_000), [State::Failed, State::Failed]);
}

#[test]
fn wrong_requests_are_refused_with_what_would_be_accepted_and_change_nothing() {
    let mut bench = Bench::new(&[("a", "1")]);
    let wrong = [
        Ask { version: 9, ..put("x", "r") },
        Ask { kind: 99, ..put("x", "r") },
        put("../x", "r"),
        Ask { run: String::new(), ..put("x", "r") },
        Ask { rate: u64::MAX, ..put("x", "r") },
        Ask { bytes: Some(u64::MAX), ..put("x", "r") },
        Ask { replicas: 0, ..put("x", "r") },
        Ask { replicas: 2, replica: 2, ..put("x", "r") },
        Ask { replicas: 2, ..put("x", "r") },
        Ask { nodes: vec!["elsewhere".to_owned()], ..put("x", "r") },
        Ask { node: "elsewhere".to_owned(), ..ask(Kind::Import, "x", "r") },
        ask(Kind::Get, "x", "r"),
    ];
    for ask in wrong {
        let why = bench.ask(&ask).err().unwrap_or_else(|| panic!("{ask:?}"));
        assert!(why.contains("accepted: "), "{why}");
    }
    let now = bench.now;
    assert_eq!(bench.desk().list_transfers(now, true, 0).unwrap().transfers.len(), 0);
}

#[test]
fn what_a_client_was_about_to_finish_is_removed_in_both_forms_and_its_name_is_not_free_before() {
    let mut bench = Bench::new(&[("a", "1")]);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    asker.started();
    bench.say(&asker, Said::Notes(Notes { lines: vec!["file 1".to_owned(), "finishing".to_owned()] }));
    let now = bench.now;
    assert_eq!(bench.desk().cancel(now, UNIX, asker.id).unwrap(), Some(true));
    let errands = bench.desk().errands(UNIX).unwrap();
    assert_eq!(errands[0].what, What::Either("x".to_owned(), vec!["file 1".to_owned()]));
    let mut again = bench.ask(&put("x", "r2")).unwrap();
    bench.step();
    assert!(again.waits().unwrap().contains("yet to be removed"));
    bench.desk().errand_done(errands[0].id, true).unwrap();
    bench.step();
    assert_eq!(again.started(), "a");
}

#[test]
fn a_client_that_leaves_notes_without_end_is_ended() {
    let mut bench = Bench::new(&[("a", "1")]);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    asker.started();
    for _ in 0..11 {
        bench.say(&asker, Said::Notes(Notes { lines: vec!["part 1 e".to_owned(); 1_000] }));
    }
    assert!(asker.refused().unwrap().contains("accepted: 10100 notes"));
}

#[test]
fn what_has_become_a_replica_meanwhile_is_not_removed() {
    let mut bench = Bench::new(&[("a", "1")]);
    bench.put("x");
    bench.desk().catalogue.leave_object("a", "x").unwrap();
    assert_eq!(bench.desk().errands(UNIX).unwrap(), []);
    assert_eq!(bench.desk().pending("x").unwrap(), [""; 0]);
}

/// A start that finds its client gone makes room for the next one. If each did so within the other, the
/// stack would not hold thousands of them; this thread's does not hold three hundred.
#[test]
fn many_clients_that_go_at_once_are_taken_out_one_after_the_other() {
    let all = || {
        let mut bench = Bench::new(&[("a", "1")]);
        bench.set_up(0, false);
        let name = |n: u32| put(&format!("x{n}"), &format!("r{n}"));
        let askers: Vec<_> = (0..300).map(|n| bench.ask(&name(n)).unwrap()).collect();
        let last = askers.last().unwrap().id;
        drop(askers);
        bench.set_up(0, true);
        let now = bench.now;
        let told = bench.desk().find_transfer(now, last).unwrap().unwrap();
        assert_eq!(told.state(), State::Interrupted);
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(all).unwrap().join().unwrap();
}

#[test]
fn a_name_is_not_kept_by_a_transfer_whose_end_the_catalogue_could_not_remember() {
    let mut bench = Bench::new(&[("a", "1")]);
    let mut lost = bench.ask(&put("x", "r1")).unwrap();
    lost.started();
    bench.desk().abandon(lost.id, "the disk is full");
    assert_eq!(bench.state(&lost), State::Interrupted, "nobody moves it");
    let other = Ask { source: "other".to_owned(), ..put("x", "r2") };
    assert_eq!(bench.ask(&other).unwrap().started(), "a");
}

#[test]
fn a_transfer_whose_end_the_catalogue_could_not_remember_is_given_up_after_its_time_as_others_are() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let [mut first, mut second] = ["x", "y"].map(|name| bench.ask(&put(name, name)).unwrap());
    first.started();
    bench.desk().abandon(first.id, "the disk is full");
    bench.desk().errands(UNIX).unwrap();
    bench.desk().errands(UNIX + 86_401_000).unwrap();
    assert_eq!(bench.state(&first), State::Failed);
    // One that is asked for again before the catalogue remembers is not interrupted.
    second.started();
    bench.desk().abandon(second.id, "the disk is full");
    let mut again = bench.ask(&put("y", "y")).unwrap();
    again.started();
    bench.desk().errands(UNIX).unwrap();
    assert_eq!((again.id, bench.state(&again)), (second.id, State::Active));
}

#[test]
fn a_read_of_an_object_that_was_replaced_meanwhile_says_nothing_of_the_new_one() {
    for kind in [Kind::Get, Kind::Check] {
        let mut bench = Bench::new(&[("a", "1")]);
        bench.put("x");
        let mut reader = bench.ask(&Ask { node: "a".to_owned(), ..ask(kind, "x", "g") }).unwrap();
        reader.started();
        let now = bench.now;
        bench.desk().remove(now, UNIX, "x").unwrap();
        let removal = bench.desk().errands(UNIX).unwrap().remove(0);
        bench.desk().errand_done(removal.id, true).unwrap();
        let mut writer = bench.ask(&Ask { source: "new".to_owned(), ..put("x", "new") }).unwrap();
        writer.started();
        bench.finish(&writer, 100, 8);
        assert!(writer.is_done());
        bench.finish(&reader, 100, 7);
        assert_eq!(reader.refused().unwrap(), "the object was replaced by another one meanwhile");
        assert_eq!(bench.nodes_of("x"), [("a".to_owned(), true)]);
    }
}

#[test]
fn a_few_removals_that_always_fail_hold_up_no_others() {
    let mut bench = Bench::new(&[("a", "1")]);
    for name in ["u", "v", "w", "x", "y"] {
        bench.put(name);
        let now = bench.now;
        bench.desk().remove(now, UNIX, name).unwrap();
    }
    let first = bench.desk().errands(UNIX).unwrap();
    assert_eq!(first.len(), 4, "so many at a time");
    for errand in &first {
        bench.desk().errand_done(errand.id, false).unwrap();
    }
    let next = bench.desk().errands(UNIX).unwrap();
    assert_eq!(next[0].what, What::Object("y".to_owned()));
}

#[test]
fn what_somebody_else_has_put_under_the_name_meanwhile_is_left_alone() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    asker.started();
    bench.say(&asker, Said::Notes(Notes { lines: vec!["file 1".to_owned(), "finishing".to_owned()] }));
    bench.fail(&asker, Fault::Exists);
    let errands = bench.desk().errands(UNIX).unwrap();
    assert_eq!(errands[0].what, What::Partial(vec!["file 1".to_owned()]));
}

#[test]
fn a_transfer_does_not_come_back_to_a_node_before_what_it_left_there_is_gone() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    let first = asker.start().unwrap();
    bench.say(&asker, Said::Notes(Notes { lines: vec!["file 1".to_owned(), "finishing".to_owned()] }));
    bench.gone(&asker);
    let node = bench.desk().node(&first.node).unwrap().0;
    bench.set_up(node, false);
    let mut again = bench.ask(&put("x", "r")).unwrap();
    let second = again.start().unwrap();
    assert_ne!(first.node, second.node);
    assert!(second.begun > first.begun, "its client must not go on with what it has there");
    bench.set_up(node, true);
    bench.fail(&again, Fault::Full);
    bench.step();
    assert!(again.waits().unwrap().contains("yet to be removed there"));
}

#[test]
fn where_another_transfer_of_the_name_may_have_finished_no_replica_is_written() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let of = |replica| Ask { replicas: 2, replica, ..put("x", "r") };
    let (first, second) = (bench.ask(&of(0)).unwrap(), bench.ask(&of(1)).unwrap());
    bench.finish(&first, 100, 7);
    bench.say(&second, Said::Notes(Notes { lines: vec!["finishing".to_owned()] }));
    bench.gone(&second);
    let mut repair = bench.ask(&ask(Kind::Replicate, "x", "repair")).unwrap();
    assert!(repair.refused().unwrap().contains("may have stored it there"));
}

#[test]
fn replicas_whose_clients_come_back_in_another_order_still_lie_apart() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let of = |replica| Ask { replicas: 2, replica, ..put("x", "r") };
    let (_first, _second) = (bench.ask(&of(0)).unwrap(), bench.ask(&of(1)).unwrap());
    bench.restart();
    let mut second = bench.ask(&of(1)).unwrap();
    let mut first = bench.ask(&of(0)).unwrap();
    assert_ne!(first.started(), second.started());
    bench.finish(&first, 100, 7);
    bench.finish(&second, 100, 7);
    assert_eq!(bench.nodes_of("x").len(), 2);
}

#[test]
fn a_name_that_would_have_to_be_a_folder_and_a_file_is_refused() {
    let mut bench = Bench::new(&[("a", "1")]);
    bench.put("dir/x");
    for name in ["dir", "dir/x/y"] {
        let why = bench.ask(&put(name, name)).err().unwrap();
        assert!(why.contains("found dir/x"), "{why}");
    }
    bench.put("dir/y");
    bench.put("dirs");
}

#[test]
fn a_node_that_refuses_removals_holds_up_no_other_nodes() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    for name in (0..10).map(|n| format!("x{n}")) {
        let only = Ask { nodes: vec!["a".to_owned()], ..put(&name, &name) };
        let asker = bench.ask(&only).unwrap();
        bench.finish(&asker, 100, 7);
    }
    let asker = bench.ask(&Ask { nodes: vec!["b".to_owned()], ..put("y", "y") }).unwrap();
    bench.finish(&asker, 100, 7);
    let now = bench.now;
    for name in (0..10).map(|n| format!("x{n}")).chain(["y".to_owned()]) {
        assert!(bench.desk().remove(now, UNIX, &name).unwrap());
    }
    let errands = bench.desk().errands(UNIX).unwrap();
    assert!(errands.iter().any(|errand| errand.node == NodeIndex(1)), "{errands:?}");
    assert!(errands.len() < 11);
}

#[test]
fn a_name_is_not_removed_from_a_node_where_a_transfer_may_have_stored_it() {
    let mut bench = Bench::new(&[("a", "1")]);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    asker.started();
    bench.say(&asker, Said::Notes(Notes { lines: vec!["file 1".to_owned(), "finishing".to_owned()] }));
    bench.desk().catalogue.leave_object("a", "x").unwrap();
    assert_eq!(bench.desk().errands(UNIX).unwrap(), []);
    let now = bench.now;
    assert_eq!(bench.desk().cancel(now, UNIX, asker.id).unwrap(), Some(true));
    assert_eq!(bench.desk().errands(UNIX).unwrap().len(), 2);
}

#[test]
fn what_is_finished_where_its_name_is_being_removed_is_not_stored() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    let node = asker.started();
    bench.desk().catalogue.leave_object(&node, "x").unwrap();
    assert_eq!(bench.desk().errands(UNIX).unwrap().len(), 1);
    bench.finish(&asker, 100, 7);
    assert_eq!(bench.desk().object("x").unwrap(), None);
    assert_ne!(asker.started(), node, "it begins anew elsewhere");
}

#[test]
fn a_client_may_finish_once_the_catalogue_has_its_note() {
    let mut bench = Bench::new(&[("a", "1")]);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    asker.started();
    bench.say(&asker, Said::Notes(Notes { lines: vec!["file 1".to_owned()] }));
    assert_eq!(asker.next(), None);
    let finishing = || Said::Notes(Notes { lines: vec!["finishing".to_owned()] });
    bench.say(&asker, finishing());
    assert_eq!(asker.next(), Some(Message::Finish(Finish {})));
    bench.restart();
    // The answer may have been lost: the start says the same.
    let mut again = bench.ask(&put("x", "r")).unwrap();
    assert_eq!(again.start().unwrap().notes, ["file 1", "finishing"]);
    while bench.state(&again) == State::Active {
        bench.say(&again, finishing());
    }
    assert_eq!(bench.state(&again), State::Interrupted, "it takes no messages, and would wait for ever");
}

#[test]
fn the_only_node_is_waited_for_until_what_an_earlier_client_left_there_is_removed() {
    let mut bench = Bench::new(&[("a", "1")]);
    let mut first = bench.ask(&put("x", "r1")).unwrap();
    first.started();
    bench.say(&first, Said::Notes(Notes { lines: vec!["file 1".to_owned(), "finishing".to_owned()] }));
    bench.gone(&first);
    // A WebDAV node cannot go on with it.
    let mut again = bench.ask(&put("x", "r2")).unwrap();
    let begun = again.start().unwrap().begun;
    bench.fail(&again, Fault::Gone);
    bench.step();
    assert!(again.waits().unwrap().contains("a: an earlier object of that name is yet to be removed there"));
    let errands = bench.desk().errands(UNIX).unwrap();
    bench.desk().errand_done(errands[0].id, true).unwrap();
    bench.step();
    let start = again.start().unwrap();
    assert_eq!((start.notes.len(), start.begun), (0, begun + 1));
}

#[test]
fn a_removal_is_waited_for_for_ten_minutes_and_no_longer() {
    let mut bench = Bench::new(&[("a", "1")]);
    bench.desk().catalogue.leave_object("a", "x").unwrap();
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    bench.now = bench.now + Span::from_secs(598);
    bench.step();
    assert!(asker.waits().is_some());
    bench.step();
    let why = asker.refused().unwrap();
    assert!(
        why.contains("waited for ten minutes in vain: ") && why.contains("a: an earlier object"),
        "{why}"
    );
}

#[test]
fn a_transfer_does_not_start_where_its_name_was_left_while_it_waited() {
    let mut bench = Bench::new(&[("a", "1")]);
    bench.set_up(0, false);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    bench.desk().catalogue.leave_object("a", "x").unwrap();
    bench.set_up(0, true);
    assert_eq!((asker.start(), bench.state(&asker)), (None, State::Waiting));
}

#[test]
fn a_pipe_waits_ten_minutes_for_the_one_node_on_which_it_can_go_on() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let pipe = Ask { source: String::new(), bytes: None, ..put("x", "r") };
    let mut asker = bench.ask(&pipe).unwrap();
    let node = asker.started();
    bench.say(&asker, Said::Notes(Notes { lines: vec!["file 1".to_owned()] }));
    bench.restart();
    let place = bench.desk().node(&node).unwrap().0;
    bench.set_up(place, false);
    let mut asker = bench.ask(&pipe).unwrap();
    bench.step();
    let why = asker.waits().unwrap();
    assert!(why.contains(&format!("{node} is down (it does not answer), and no other node")), "{why}");
    bench.set_up(place, true);
    assert_eq!(asker.start().map(|start| (start.node, start.notes.len())), Some((node, 1)));
    bench.gone(&asker);
    bench.set_up(place, false);
    let mut asker = bench.ask(&pipe).unwrap();
    bench.now = bench.now + Span::from_secs(599);
    bench.step();
    assert!(asker.refused().unwrap().contains("waited for ten minutes in vain: "));
}

#[test]
fn a_replica_whose_bad_data_was_passed_on_is_bad_and_its_transfer_ends() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let of = |replica| Ask { replicas: 2, replica, ..put("x", "r") };
    let (first, second) = (bench.ask(&of(0)).unwrap(), bench.ask(&of(1)).unwrap());
    bench.finish(&first, 100, 7);
    bench.finish(&second, 100, 7);
    let mut reader = bench.ask(&ask(Kind::Get, "x", "g1")).unwrap();
    let bad = reader.started();
    bench.fail(&reader, Fault::PassedOn);
    assert!(reader.refused().is_some());
    assert!(bench.nodes_of("x").contains(&(bad.clone(), false)));
    assert_ne!(bench.ask(&ask(Kind::Get, "x", "g2")).unwrap().started(), bad);
}

#[test]
fn what_is_coming_to_a_node_takes_room_until_it_ends() {
    let mut bench = Bench::new(&[("a", "1")]);
    bench.config.nodes[0].capacity = Some(250);
    bench.config.policy = PolicyName::Rr.policy();
    bench.restart();
    let named = |name: &str| Ask { name: name.to_owned(), ..put(name, name) };
    let (mut first, second) = (bench.ask(&named("x")).unwrap(), bench.ask(&named("y")).unwrap());
    let refused = |bench: &mut Bench, run| bench.ask(&put("z", run)).unwrap().refused();
    assert!(refused(&mut bench, "1").unwrap().contains("its capacity is taken"));
    bench.finish(&second, 100, 7);
    assert!(refused(&mut bench, "2").is_some(), "it is stored now");
    first.started();
    bench.fail(&first, Fault::Client);
    let mut third = bench.ask(&put("z", "3")).unwrap();
    assert_eq!(third.started(), "a");
    bench.gone(&third);
    assert_eq!(bench.desk().nodes[0].coming, 0);
}

#[test]
fn one_peer_has_half_of_the_transfers_at_most_also_if_it_goes_on_with_earlier_ones() {
    let mut bench = Bench::new(&[("a", "1")]);
    let interrupted = bench.ask(&put("w", "w")).unwrap();
    bench.gone(&interrupted);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    asker.started();
    // The catalogue would take a minute for as many.
    *bench.desk().peers.get_mut(&Peer::user(0)).unwrap() = room::MOST_OF_PEER;
    let why = bench.ask(&put("y", "r")).err().unwrap();
    assert_eq!(why, "found 10000 transfers of user 0 that wait or run; accepted: no more");
    assert_eq!(bench.ask(&put("w", "again")).err(), Some(why));
    let (outbox, _inbox) = channel(64);
    let now = bench.now;
    let other = Peer::certificate(b"another");
    bench.desk().ask(now, UNIX, 9, other, &put("y", "r"), outbox).unwrap();
    bench.gone(&asker);
    assert!(bench.ask(&put("z", "r")).is_ok());
}

#[test]
fn a_new_peak_is_heard_of_by_those_whom_it_lets_in_or_keeps_out() {
    let mut bench = Bench::new(&[("a", "1"), ("b", "2")]);
    bench.config.policy = PolicyName::Static.policy();
    bench.config.nodes[1].peak_write = Bandwidth::new(100_000_000);
    bench.restart();
    let peak = |bench: &mut Bench, megabytes: u64| {
        let (now, peak) = (bench.now, Bandwidth::new(megabytes * 1_000_000).unwrap());
        bench.desk().set_peak(now, UNIX, NodeIndex(0), (peak, peak)).unwrap();
    };
    bench.set_up(1, false);
    let mut asker = bench.ask(&put("x", "r1")).unwrap();
    assert_eq!(asker.start(), None, "the peak of the other node is not known");
    peak(&mut bench, 5);
    assert_eq!(asker.start(), None, "it asks for more");
    peak(&mut bench, 50);
    assert_eq!(asker.started(), "a");
    bench.set_up(0, false);
    let mut next = bench.ask(&put("y", "r2")).unwrap();
    peak(&mut bench, 5);
    bench.set_up(0, true);
    assert_eq!(next.start(), None, "the node does no longer what it asks for");
    bench.set_up(1, true);
    assert_eq!(next.started(), "b");
}

#[test]
fn a_transfer_whose_room_was_taken_while_it_waited_does_not_start() {
    let mut bench = Bench::new(&[("a", "1")]);
    bench.config.nodes[0].capacity = Some(250);
    bench.restart();
    bench.set_up(0, false);
    let mut askers = ["x", "y", "z"].map(|name| bench.ask(&put(name, name)).unwrap());
    bench.set_up(0, true);
    for asker in &mut askers[..2] {
        asker.started();
        bench.finish(asker, 100, 7);
    }
    assert!(askers[2].refused().unwrap().contains("its capacity is taken"));
}

#[test]
fn an_import_that_runs_while_its_object_is_removed_stores_nothing() {
    let mut bench = Bench::new(&[("a", "1")]);
    bench.config.policy = PolicyName::Rr.policy();
    bench.restart();
    let import = |run: &str| Ask { node: "a".to_owned(), ..ask(Kind::Import, "x", run) };
    let (mut first, mut second) = (bench.ask(&import("r1")).unwrap(), bench.ask(&import("r2")).unwrap());
    assert_eq!((first.started(), second.started()), ("a".to_owned(), "a".to_owned()));
    bench.finish(&first, 100, 7);
    assert!(first.is_done());
    let now = bench.now;
    assert!(bench.desk().remove(now, UNIX, "x").unwrap());
    assert_eq!(second.refused().as_deref(), Some("its object was removed"));
    bench.finish(&second, 100, 7);
    assert_eq!(bench.desk().object("x").unwrap(), None);
}

#[test]
fn a_client_that_says_it_has_moved_more_than_there_is_spoils_nothing_that_is_known_of_its_node() {
    let mut bench = Bench::new(&[("a", "1")]);
    let mut asker = bench.ask(&put("x", "r")).unwrap();
    asker.started();
    bench.say(&asker, Said::Moved(Moved { bytes: u64::MAX }));
    bench.say(&asker, Said::Moved(Moved { bytes: u64::MAX }));
    bench.step();
    let moved = bench.desk().nodes[0].moved.both();
    assert_eq!((moved.read, moved.written), (0, 100));
    let (_, rate) = bench.desk().scheduler.load(NodeIndex(0), Direction::Write);
    assert_eq!(rate, 100);
}
