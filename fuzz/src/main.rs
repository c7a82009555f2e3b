//! The program that runs one target under libFuzzer: the target that `WEIR_FUZZ_TARGET` names. `scripts/fuzz`
//! builds and runs it.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use weir_fuzz::{Script, Seen, Target, mutate, targets};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("WEIR_FUZZ_TARGET").unwrap_or_default();
    let names = || targets::ALL.map(|target| target.name).join(", ");
    targets::by_name(&name).unwrap_or_else(|| panic!("WEIR_FUZZ_TARGET={name:?}; accepted: {}", names()))
});

static SEEDS: LazyLock<Vec<Script>> = LazyLock::new(|| (TARGET.seeds)());

fuzz_target!(
    init: write_seeds(),
    |bytes: &[u8]| {
        (TARGET.run)(&Script::from_bytes(bytes), &mut Seen::default());
    }
);

// Half of the mutations are libFuzzer's own, which know the values that comparisons look for. The others keep
// messages whole.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed.is_multiple_of(2) {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut script = Script::from_bytes(&data[..size]);
    mutate(&mut script, &SEEDS, TARGET.words, &mut Pcg64Mcg::seed_from_u64(seed.into()));
    let bytes = script.to_bytes();
    let length = bytes.len().min(max_size).min(data.len());
    data[..length].copy_from_slice(&bytes[..length]);
    length
});

/// Writes the seeds into the folder `WEIR_FUZZ_SEEDS`, if it is given, because libFuzzer begins with files.
fn write_seeds() {
    let Some(folder) = std::env::var_os("WEIR_FUZZ_SEEDS").map(PathBuf::from) else { return };
    for (number, seed) in SEEDS.iter().enumerate() {
        let path = folder.join(format!("seed-{number}"));
        std::fs::write(&path, seed.to_bytes()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
