//! The file of a coordinator of transfers. A piece is a line of it.
//!
//! It is no seed of the configuration target: most messages there are values of `weir set`, which this file
//! does not have, and too few mutated files would be left for it.

use weir::fuzzing::{Judged, configuration};

use super::Target;
use crate::script::Script;
use crate::seen::Seen;

pub(super) const TARGET: Target = Target {
    name: "transfers-file",
    run,
    seeds,
    words: &[
        b"[",
        b"]",
        b"\"",
        b"=",
        b"#",
        b"\"deadline\"",
        b"\"sm-r1\"",
        b"[node.b]\n",
        b"\"1GiB\"",
        b"\"100MB/s\"",
        b"file://",
        b"s3://",
        b"user:password@",
        b"-1",
        b"1000001",
        b"9223372036854775807",
        b"nan",
        b"true",
        b"'''",
        b"\\u0000",
        b"\xc3\xa9",
    ],
    must_reach: &["coordinator", "refused"],
};

const FULL: &str = r#"[transfers]
policy = "sm-r3"
state = "/var/lib/weir/transfers"
address = "backup.example:9830"
ca = "/etc/weir/ca.pem"
certificate = "/etc/weir/backup.pem"
key = "/etc/weir/backup.key"
metrics = "127.0.0.1:9812"
classes = ["bronze", "silver", "gold"]
rate = "10MB/s"
[node.array]
url = "file:///srv/array"
peak_read = "300MB/s"
peak_write = "120MB/s"
class = "silver"
[node."tape.1"]
url = "sftp://weir@tape.example:2222/objects"
credentials = "tape.key"
cost = 2
capacity = "2TB"
domain = "rack1"
"#;

const SHORT: &str = r#"[transfers]
[node.cloud]
url = "s3://bucket/objects?endpoint=https://s3.example:9000"
"#;

/// Mistakes of several kinds.
const WRONG: &str = r#"[transfers]
classes = ["low", "low"]
key = "/etc/weir/backup.key"
[node.web]
url = "webdavs://user:password@host/dav/"
class = "high"
"#;

fn seeds() -> Vec<Script> {
    [FULL, SHORT, WRONG].into_iter().map(Script::of_lines).collect()
}

fn run(script: &Script, seen: &mut Seen) {
    seen.message();
    seen.reach(match configuration(&String::from_utf8_lossy(&script.joined())) {
        Judged::Coordinator => "coordinator",
        Judged::Gateway | Judged::Controller | Judged::Agent => "another file",
        Judged::Refused => "refused",
    });
}
