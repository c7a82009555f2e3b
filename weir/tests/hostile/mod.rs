//! Hostile clients, servers and operators against the built program. Beside them works a client of another
//! volume, which must notice nothing.
//!
//! Each kind of attack has a file. Each test is named after what it protects, and fails on a weir that does
//! not protect it.

mod flood;
mod imposter;
mod loss;
mod mass_close;
mod memory;
mod mutated;
mod mutated_replies;
mod mute;
mod neighbour;
mod operator;
mod scraper;
mod silent;
mod truncated;
mod unfinished_writes;
mod upstream;
mod zeroes;
