//! `weir transfers report`: figures of the transfers that are done, from a coordinator that has moved some.

use std::fs;

use crate::harness::{Outcome, Program, Running, Scene};

/// A coordinator with two nodes in the folder of the test.
struct Coordinator {
    scene: Scene,
    _running: Running,
}

impl Coordinator {
    fn start() -> Self {
        let scene = Scene::new();
        let mut config = format!(
            "[transfers]\nstate = \"{}\"\nmetrics = \"127.0.0.1:0\"\npolicy = \"rr\"\n",
            scene.text("state")
        );
        for node in ["array", "cloud"] {
            fs::create_dir(scene.file(node)).unwrap();
            config += &format!("[node.{node}]\nurl = \"file://{}\"\n", scene.text(node));
        }
        scene.write("transfers.toml", config);
        let running = Program::weir().args("transfers serve").arg(scene.text("transfers.toml")).start();
        running.wait_for("weir: coordinating transfers");
        Self { scene, _running: running }
    }

    /// A program that asks it, in the folder of the test.
    fn asked(&self, verb: &str) -> Program {
        let file = self.scene.text("transfers.toml");
        Program::weir().args(verb).arg("--server").arg(file).directory(self.scene.path())
    }

    fn put(&self, name: &str, rate: &str) {
        self.scene.write(name, vec![7; 2_000_000]);
        self.asked(&format!("put {name} --rate {rate}")).run();
    }

    fn figures(&self, folder: &str) -> [String; 2] {
        let read = |name: &str| fs::read_to_string(self.scene.file(folder).join(name)).unwrap();
        ["transfers.svg", "transfers-by-node.svg"].map(read)
    }
}

#[test]
fn a_report_draws_what_was_moved_and_the_same_data_gives_the_same_figures() {
    let coordinator = Coordinator::start();
    coordinator.put("one", "1kB/s");
    coordinator.put("two", "900GB/s");
    let out = coordinator.asked("transfers report --output a/b --last 24h").run();
    for wanted in [
        "a/b/transfers.svg: the rate of 2 transfer(s) by number and by time, and the wait of each until",
        "a/b/transfers-by-node.svg: the rate of 2 transfer(s) by number, a panel for each of 2 node(s)",
        "done  2; 0 more failed or were cancelled",
        "below  1 of 2 had less than the rate that they asked for",
        "4.00 MB in the",
        "until the first byte, transfer",
    ] {
        assert!(out.contains(wanted), "{wanted}\n{out}");
    }
    let [by_number, by_node] = coordinator.figures("a/b");
    for wanted in ["rate (MB/s)", "until the first byte (s)", "array", "cloud", "asked for"] {
        assert!(by_number.contains(wanted), "{wanted}");
    }
    for wanted in ["array: 1 done", "cloud: 1 done"] {
        assert!(by_node.contains(wanted), "{wanted}");
    }
    coordinator.asked("transfers report --output again --last 24h").run();
    assert_eq!(coordinator.figures("a/b"), coordinator.figures("again"));
}

#[test]
fn a_report_replaces_no_file_and_leaves_no_half_of_itself() {
    let coordinator = Coordinator::start();
    coordinator.put("one", "1MB/s");
    coordinator.scene.write("transfers-by-node.svg", "mine");
    let Outcome { code, out, log } = coordinator.asked("transfers report").outcome();
    assert_eq!((code, out.as_str()), (Some(64), ""), "{log}");
    assert!(log.contains("found ./transfers-by-node.svg: File exists"), "{log}");
    assert!(!coordinator.scene.file("transfers.svg").exists());
    assert_eq!(fs::read_to_string(coordinator.scene.file("transfers-by-node.svg")).unwrap(), "mine");
}

#[test]
fn without_a_transfer_that_is_done_a_report_is_one_line_and_exit_code_64() {
    let coordinator = Coordinator::start();
    let Outcome { code, out, log } = coordinator.asked("transfers report --last 24h").outcome();
    assert_eq!((code, out.as_str()), (Some(64), ""), "{log}");
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(
        log.contains("found no transfer that was done in the last 1day; accepted: at least one"),
        "{log}"
    );
    assert!(!coordinator.scene.file("transfers.svg").exists());
    coordinator.put("one", "1MB/s");
    let Outcome { code, log, .. } = coordinator.asked("transfers report --last 0s").outcome();
    assert_eq!(code, Some(64), "{log}");
}
