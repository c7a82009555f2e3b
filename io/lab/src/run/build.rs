//! Which program made a record.

use std::sync::LazyLock;

/// The commit that the program was built from, as `git describe` says it; `unknown` if it was built without
/// git.
pub const fn commit() -> &'static str {
    env!("WEIR_COMMIT")
}

/// A number for the program itself: another program may give another record for the same configuration, and
/// two builds of a tree with changes in it have the same commit.
pub(crate) fn fingerprint() -> &'static str {
    static FINGERPRINT: LazyLock<String> = LazyLock::new(|| {
        let bytes = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
        format!("{:016x}", fnv1a(&bytes))
    });
    &FINGERPRINT
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): the same on every machine and in every version, unlike that of std.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
