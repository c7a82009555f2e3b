//! Nodes of all four sorts, in directories and on real servers.
//!
//! | file | what it checks |
//! |---|---|
//! | `conformance` | what holds for every sort of node |
//! | `file`, `webdav`, `s3`, `sftp` | what holds for one sort, after its conformance |
//! | `bench` | a node with its server, and how tests use one |
//! | `fake` | servers that do what no real one does on demand |

mod bench;
mod conformance;
mod fake;
mod file;
mod s3;
mod sftp;
mod webdav;
