//! The program that made a record.

use std::sync::LazyLock;

/// The commit that the program was built from, in the form of `git describe`; `unknown` if it was built
/// without git.
pub const fn commit() -> &'static str {
    env!("WEIR_COMMIT")
}

/// A hash of the program itself. The commit is not enough: another program may make another record from the
/// same configuration, and two builds of a changed tree have the same commit.
pub(crate) fn fingerprint() -> &'static str {
    static FINGERPRINT: LazyLock<String> = LazyLock::new(|| {
        let bytes = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
        format!("{:016x}", fnv1a(&bytes))
    });
    &FINGERPRINT
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo). Unlike the standard library's hash, it is the same on every machine
/// and in every version.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
