//! Runs a target on mutated scripts, the same ones for the same seed.
//!
//! libFuzzer finds more in ten minutes, as it sees which branches a script takes; this needs nothing but the
//! stable compiler, is bounded by a count and not by a clock, and so is what `cargo test` runs. It is not
//! blind: a script that reaches another set of states than those before it is kept, and mutated further.

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

/// The most scripts that are kept to be mutated.
const MOST_KEPT: usize = 512;

/// What to try.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Which mutations: others for each seed.
    pub seed: u64,
    /// How many messages are to be judged.
    pub messages: u64,
}

impl Effort {
    /// `WEIR_FUZZ_MESSAGES` messages, or `usual`; the seed is `WEIR_FUZZ_SEED`, any text, or 1.
    pub fn from_environment(usual: u64) -> Self {
        let value = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let messages = value("WEIR_FUZZ_MESSAGES").map_or(usual, |count| {
            count.parse().unwrap_or_else(|_| panic!("WEIR_FUZZ_MESSAGES={count}; accepted: a whole number"))
        });
        Self { seed: value("WEIR_FUZZ_SEED").map_or(1, |text| number_of(&text)), messages }
    }
}

/// A number for any text: itself if it is one, else its FNV-1a hash, so that a commit's name will do.
fn number_of(text: &str) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.parse().unwrap_or_else(|_| text.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
}

/// Everything that was ever found in a target, and its seeds: all must pass as they are.
///
/// # Panics
/// If one does not.
pub fn replay(target: &Target) -> Seen {
    let mut seen = Seen::default();
    for script in (target.seeds)().into_iter().chain(found(target)) {
        (target.run)(&script, &mut seen);
    }
    seen
}

/// Runs mutated scripts until so many messages were judged.
///
/// # Panics
/// If the target does: with the file in which the smallest script that was found for it now stands.
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
        // Also a script without a message brings the end nearer.
        seen.message_if_none(&of_script);
        seen.add(&of_script);
    }
    seen
}

/// What a script reached; `None` if the target panicked.
fn attempt(target: &Target, script: &Script) -> Option<Seen> {
    catch_unwind(AssertUnwindSafe(|| {
        let mut seen = Seen::default();
        (target.run)(script, &mut seen);
        seen
    }))
    .ok()
}

/// Makes the script smaller for as long as the target still panics, and writes it down.
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

/// What was found before, in the order of the files' names.
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
