//! Runs each target for some seconds: the scripts that were found before, then mutated scripts, the same for
//! the same seed.
//!
//! `WEIR_FUZZ_SEED` chooses other mutations. `WEIR_FUZZ_MESSAGES` says how many messages each target judges.

use weir_fuzz::targets::{ALL, by_name};
use weir_fuzz::{Effort, drive, replay};

/// The most memory that all targets side by side may take, however hostile the scripts: some MiB for each,
/// and the size of a debug build.
const MOST_KIB: u64 = 512 << 10;

/// Mutates until `usual` messages, or as many as the environment says, were judged.
fn holds(name: &str, usual: u64) {
    let target = by_name(name).expect("it is in the list");
    let known = replay(target);
    for state in target.must_reach {
        assert!(known.times(state) > 0, "{name}: no seed reaches {state:?}: {}", known.summary());
    }
    let effort = Effort::from_environment(usual);
    let seen = drive(target, effort);
    println!("{name}, seed {}: {}", effort.seed, seen.summary());
    let reached = target.must_reach.iter().filter(|state| seen.times(state) > 0).count();
    assert!(reached * 4 >= target.must_reach.len() * 3, "{name}: mutations end early: {}", seen.summary());
    let peak = peak_kib();
    assert!(peak <= MOST_KIB, "{name}: {peak} KiB were resident at the worst");
}

/// The highest resident memory of this process so far, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process can read its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a process has a VmHWM");
    line.trim().trim_end_matches(" kB").parse().expect("VmHWM is a number")
}

#[test]
fn no_client_breaks_the_server_side_of_nbd() {
    holds("nbd-server", 60_000);
}

#[test]
fn no_server_breaks_the_client_side_of_nbd() {
    holds("nbd-client", 60_000);
}

#[test]
fn no_sequence_of_legal_calls_breaks_an_engine() {
    holds("engine", 40_000);
}

#[test]
fn no_sequence_of_legal_calls_breaks_a_scheduler() {
    holds("scheduler", 40_000);
}

#[test]
fn no_file_and_no_value_breaks_the_configuration() {
    // Of 30 mutated files one is accepted. With 3,000 messages, one seed in some thousands had none.
    holds("configuration", 9_000);
}

#[test]
fn no_file_of_transfers_breaks_its_reader() {
    holds("transfers-file", 4_000);
}

#[test]
fn no_gateway_breaks_a_controller_and_no_controller_a_gateway() {
    holds("cluster", 30_000);
}

#[test]
fn no_recording_breaks_a_replay() {
    holds("recording", 40_000);
}

#[test]
fn no_trace_breaks_its_reader() {
    holds("trace", 60_000);
}

#[test]
fn no_target_and_no_initiator_breaks_what_reads_their_texts() {
    holds("sensors", 60_000);
}

#[test]
fn no_text_about_a_node_breaks_its_reader_and_no_note_leads_out_of_the_node() {
    holds("node-texts", 4_000);
}

#[test]
fn no_server_of_webdav_or_s3_breaks_a_read() {
    holds("node-answers", 4_000);
}

#[test]
fn no_sensor_of_a_node_breaks_its_reader() {
    holds("node-sensor", 20_000);
}

#[test]
fn make_fuzz_runs_every_target() {
    let script = include_str!("../../scripts/fuzz");
    let lines = script.lines().filter_map(|line| line.strip_prefix("targets=\""));
    let named: Vec<&str> = lines.flat_map(|line| line.trim_end_matches('"').split(' ')).collect();
    for target in ALL {
        assert!(named.contains(&target.name), "scripts/fuzz does not name {}", target.name);
    }
}
