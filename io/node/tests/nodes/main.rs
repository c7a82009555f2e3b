//! Nodes of all four sorts, in directories and on real servers.
//!
//! | file | what it checks |
//! |---|---|
//! | `conformance` | what holds for every sort of node |
//! | `file`, `webdav`, `s3`, `sftp` | what holds for one sort, after its conformance |
//! | `bench` | a node with its server, and how tests use one |

mod bench;
mod conformance;
mod file;
mod s3;
mod sftp;
mod webdav;
