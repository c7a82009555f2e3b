//! Runs a target on mutated scripts. The same seed gives the same scripts.
//!
//! `cargo test` runs this driver: it needs only the stable compiler, and is bounded by a count and not by a
//! clock. libFuzzer, which sees the branches that a script takes, finds more in ten minutes. But this driver
//! is not blind: it keeps a script that reaches another set of states than those before it, and mutates it
//! further.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::mutate::mutate;
use crate::script::Script;
use crate::seen::Seen;
use crate::targets::Target;

/// The most scripts that are kept for mutation.
const MOST_KEPT: usize = 512;

/// How much to try, and which mutations.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The seed of the mutations.
    pub seed: u64,
    /// How many messages to judge.
    pub messages: u64,
}

impl Effort {
    /// The effort of the environment: `WEIR_FUZZ_MESSAGES` messages, or `usual`; and the seed
    /// `WEIR_FUZZ_SEED`, which may be any text, or 1.
    pub fn from_environment(usual: u64) -> Self {
        let value = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let messages = value("WEIR_FUZZ_MESSAGES").map_or(usual, |count| {
            count.parse().unwrap_or_else(|_| panic!("WEIR_FUZZ_MESSAGES={count}; accepted: a whole number"))
        });
        Self { seed: value("WEIR_FUZZ_SEED").map_or(1, |text| number_of(&text)), messages }
    }
}

/// A number for any text: the number itself, or the text's FNV-1a hash. So a commit's name can be a seed.
fn number_of(text: &str) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.parse().unwrap_or_else(|_| text.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
}

/// Runs a target's seeds and all scripts in `found/`, without mutations: all must pass.
///
/// # Panics
/// If one does not pass.
pub fn replay(target: &Target) -> Seen {
    let mut seen = Seen::default();
    for script in (target.seeds)().into_iter().chain(found(target)) {
        (target.run)(&script, &mut seen);
    }
    seen
}

/// Runs mutated scripts until `effort.messages` messages were judged.
///
/// # Panics
/// If the target does. The message names a file with the smallest script that was found for it.
pub fn drive(target: &Target, effort: Effort) -> Seen {
    let mut random = Pcg64Mcg::seed_from_u64(effort.seed);
    let mut kept: Vec<Script> = (target.seeds)().into_iter().chain(found(target)).collect();
    let (mut seen, mut shapes) = (Seen::default(), BTreeSet::new());
    while seen.messages() < effort.messages {
        let mut script = kept[random.random_range(0..kept.len())].clone();
        mutate(&mut script, &kept, target.words, &mut random);
        let of_script = attempt(target, &script).unwrap_or_else(|| report(target, script.clone(), effort));
        if kept.len() < MOST_KEPT && shapes.insert(of_script.shape()) {
            kept.push(script);
        }
        // A script without a message counts as one, so that the loop ends.
        seen.message_if_none(&of_script);
        seen.add(&of_script);
    }
    seen
}

/// What a script has reached; `None` if the target panicked.
fn attempt(target: &Target, script: &Script) -> Option<Seen> {
    catch_unwind(AssertUnwindSafe(|| {
        let mut seen = Seen::default();
        (target.run)(script, &mut seen);
        seen
    }))
    .ok()
}

/// Makes the script smaller for as long as the target still panics, writes it to a file, and panics.
fn report(target: &Target, mut script: Script, effort: Effort) -> Seen {
    let mut at = 0;
    while at < script.pieces.len() {
        let mut smaller = script.clone();
        smaller.pieces.remove(at);
        if attempt(target, &smaller).is_none() {
            script = smaller;
        } else {
            at += 1;
        }
    }
    let bytes = script.to_bytes();
    let path = std::env::temp_dir().join(format!("weir-fuzz-{}-{:016x}", target.name, hash(&bytes)));
    let written = fs::write(&path, &bytes);
    panic!(
        "{} fails with seed {}; the script is in {} ({written:?}); once mended, keep it in fuzz/found/{}/",
        target.name,
        effort.seed,
        path.display(),
        target.name
    );
}

fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The scripts in `found/`, in the order of the files' names.
fn found(target: &Target) -> Vec<Script> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("found").join(target.name);
    let Ok(entries) = fs::read_dir(&folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: &PathBuf| fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    paths.iter().map(|path| Script::from_bytes(&read(path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_a_seed_too() {
        assert_eq!(number_of("17"), 17);
        assert_ne!(number_of("79fba68"), number_of("79fba69"));
    }

    #[test]
    fn a_target_that_panics_is_reported_with_its_smallest_script() {
        let target = Target {
            name: "self-test",
            run: |script, seen| {
                seen.message();
                assert!(!script.pieces.iter().any(|piece| piece.starts_with(b"b")), "a b");
            },
            seeds: || vec![Script::of_lines("a\na\nc\n")],
            words: &[b"b"],
            must_reach: &[],
        };
        let failed = catch_unwind(|| drive(&target, Effort { seed: 1, messages: 100_000 })).unwrap_err();
        let message = failed.downcast::<String>().expect("a message");
        let path = message.split("the script is in ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        let script = Script::from_bytes(&fs::read(path).unwrap());
        fs::remove_file(path).unwrap();
        assert_eq!(script.pieces.len(), 1, "{script:?}");
    }
}
