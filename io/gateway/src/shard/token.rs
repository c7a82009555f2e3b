//! The names that requests have at the reactor and the devices of a shard.

use weir_backend::Token;
use weir_model::VolumeId;

/// The top bit of a token: set for a last flush, not for a request.
const LAST_FLUSH: u64 = 1 << 63;

/// The thing that a token names.
pub(super) enum Named {
    Request { pool: usize, slot: u32 },
    LastFlush { pool: usize, volume: VolumeId },
}

/// The token of a request, from its pool and its slot.
pub(super) fn request_token(pool: usize, slot: u32) -> Token {
    Token((pool as u64) << 32 | u64::from(slot))
}

/// The token of a volume's last flush.
pub(super) fn last_flush_token(pool: usize, volume: VolumeId) -> Token {
    Token(LAST_FLUSH | (pool as u64) << 32 | u64::from(volume.0))
}

/// Reads a token.
#[allow(clippy::cast_possible_truncation)] // takes apart what the two functions above put together
pub(super) fn named(token: Token) -> Named {
    let (pool, low) = ((token.0 >> 32) as usize & 0x7fff_ffff, token.0 as u32);
    if token.0 & LAST_FLUSH == 0 {
        Named::Request { pool, slot: low }
    } else {
        Named::LastFlush { pool, volume: VolumeId(low) }
    }
}
