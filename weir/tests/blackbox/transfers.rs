//! Bulk transfers from outside: a coordinator, its clients, and real storage nodes.
//!
//! | file | what it tests |
//! |---|---|
//! | `round_trips` | what was stored is read again, on each sort of node, and damage is found and mended |
//! | `refusals` | what makes no sense is refused in one line |
//! | `failing_nodes` | nodes that are down, end in the middle, or are full |
//! | `calibrate` | measuring a node, ended in the middle |
//! | `kills` | coordinator, client and node killed at any moment |
//! | `remote` | clients of other machines |

mod calibrate;
mod failing_nodes;
mod kills;
mod proxy;
mod refusals;
mod remote;
mod round_trips;
mod site;
