//! Clients, servers and operators that do what nobody should, against the built program, and beside them a client of
//! another volume that must notice nothing.
//!
//! A file for each kind of attack. Each test is named after what it protects, and fails on a weir that does not protect it.

mod neighbour;
mod zeroes;
