//! Clients, servers and operators that do what nobody should, against the built program, and beside them a
//! client of another volume that must notice nothing.
//!
//! A file for each kind of attack. Each test is named after what it protects, and fails on a weir that does
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
