//! The served files, written in full, so that no server gets away with reading holes.
//!
//! Each server has a file of its own, because weir and qemu-nbd rightly lock theirs. Some servers would
//! answer from a sparse file, or from a file of zeroes, without the disk. A server that sends holes as holes
//! would send a fraction of the bytes.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{Advice, fadvise};

/// Bytes of each file that is served. To exceed a disk's own cache, a file would have to be so large that it
/// takes minutes to write.
pub(super) const IMAGE_BYTES: u64 = 1 << 30;

const CHUNK: usize = 1 << 20;

/// The file `name` of so many bytes in `dir`, written now unless an earlier run has written it.
///
/// # Errors
/// If there is no room.
pub(super) fn image(dir: &Path, name: &str, bytes: u64) -> anyhow::Result<PathBuf> {
    let path = dir.join(name);
    if !is_written(&path, bytes) {
        eprintln!("writing {name}, {} MiB", bytes >> 20);
        write(&path, bytes)
            .with_context(|| format!("{}: cannot write the file to be served", path.display()))?;
    }
    Ok(path)
}

/// Whether the file has its size and a block of the disk behind each byte.
fn is_written(path: &Path, bytes: u64) -> bool {
    path.metadata().is_ok_and(|found| found.len() == bytes && found.blocks() * 512 >= bytes)
}

fn write(path: &Path, bytes: u64) -> anyhow::Result<()> {
    let mut file = File::create(path)?;
    let mut chunk = vec![0; CHUNK];
    let mut state = 1;
    for _ in 0..bytes / CHUNK as u64 {
        scramble(&mut chunk, &mut state);
        file.write_all(&chunk)?;
    }
    file.sync_all()?;
    // O_DIRECT is slower if the page cache is full of the file.
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}

/// Fills the chunk with bytes that neither compress nor repeat (xorshift64; Marsaglia, "Xorshift RNGs",
/// 2003). `state` must not be zero.
fn scramble(chunk: &mut [u8], state: &mut u64) {
    for word in chunk.chunks_exact_mut(8) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_chunks_are_equal_and_none_is_zero() {
        let (mut one, mut two, mut state) = ([0; 64], [0; 64], 1);
        scramble(&mut one, &mut state);
        scramble(&mut two, &mut state);
        assert_ne!(one, two);
        assert!(one.chunks(8).chain(two.chunks(8)).all(|word| word != [0; 8]));
    }

    #[test]
    fn a_sparse_file_counts_as_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sparse.img");
        assert!(!is_written(&path, IMAGE_BYTES));
        File::create(&path).unwrap().set_len(IMAGE_BYTES).unwrap();
        assert!(!is_written(&path, IMAGE_BYTES));
    }
}
