//! Named streams of random numbers, all from one seed.
//!
//! With one stream for all purposes, one more draw in one place would change every draw after it in all
//! others. Two runs that differ in one setting would have nothing in common. So each purpose has a stream of
//! its own, known by its name.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// A generator: fast, seeded, the same on every machine.
pub type Prng = Pcg64Mcg;

/// The seed of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream of this name, from its beginning.
    pub fn stream(self, name: &str) -> Prng {
        Prng::seed_from_u64(fnv1a(self.0, name.as_bytes()))
    }
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): stable over versions and machines. The hashers of the standard library
/// do not promise that.
fn fnv1a(seed: u64, bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    let all = seed.to_le_bytes().into_iter().chain(bytes.iter().copied());
    all.fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    #[test]
    fn a_stream_is_its_name_and_its_seed_and_nothing_else() {
        let draw = |seed: u64, name: &str| Seed(seed).stream(name).random::<u64>();
        assert_eq!(draw(1, "arrivals of db"), draw(1, "arrivals of db"));
        assert_ne!(draw(1, "arrivals of db"), draw(2, "arrivals of db"));
        assert_ne!(draw(1, "arrivals of db"), draw(1, "offsets of db"));
    }
}
