//! Checks that a line of the log that a peer can cause names the peer. By that field, `weir/src/log.rs` knows
//! which lines to limit.

use super::finding::Finding;
use super::source::{RustFile, has_word};

/// The crates that see peers.
const SEE_PEERS: [&str; 4] = ["io/gateway/", "io/api/", "io/cluster/", "io/backend/"];

/// The fields that name a peer; `weir/src/log.rs` has the same.
const PEERS: [&str; 4] = ["peer", "gateway", "upstream", "listener"];

/// The start of the comment before a line that no peer can cause.
const NO_PEER: &str = "No peer: ";

const MACROS: [&str; 5] = ["error!(", "warn!(", "info!(", "debug!(", "trace!("];

/// Checks that each place that writes a line has a field that names a peer, or a comment before it that says
/// why no peer can cause the line.
pub(super) fn peers_are_named(file: &RustFile<'_>) -> Vec<Finding> {
    if !SEE_PEERS.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    let comments: Vec<&str> = file.comments.lines().collect();
    let last = file.first_test_line().unwrap_or(usize::MAX);
    let mut findings = Vec::new();
    for (start, _) in file.code.match_indices("tracing::") {
        let call = &file.code[start..];
        let is_line = MACROS.iter().any(|name| call["tracing::".len()..].starts_with(name));
        let line = 1 + file.code[..start].matches('\n').count();
        if !is_line || line >= last {
            continue;
        }
        // A field's name stands before `=`, and its value behind it.
        let fields = call_of(call).split(',').map(|argument| argument.split('=').next().unwrap_or(argument));
        let named = fields.into_iter().any(|field| PEERS.iter().any(|peer| has_word(field, peer)));
        if !named && !is_excused(&comments, line) {
            let instead = format!("a field {}, or a comment \"{NO_PEER}why\" before it", PEERS.join(", "));
            findings.push(Finding::new(file.path, line, "a line of the log that names no peer", instead));
        }
    }
    findings
}

/// Whether the comment that ends right before this line, counted from one, says that no peer can cause it.
fn is_excused(comments: &[&str], line: usize) -> bool {
    let before = comments[..line - 1].iter().rev();
    before.take_while(|comment| !comment.trim().is_empty()).any(|comment| comment.contains(NO_PEER))
}

/// The macro's call, up to its closing bracket.
fn call_of(code: &str) -> &str {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return &code[..at],
            b')' => depth -= 1,
            _ => {}
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        peers_are_named(&RustFile::new(path, text)).len()
    }

    #[test]
    fn a_line_that_names_no_peer_is_found() {
        let path = "io/gateway/src/a.rs";
        for (text, found) in [
            ("tracing::warn!(%error, \"cannot accept a peer\");", 1),
            ("tracing::warn!(\n    volume = of(peer),\n    \"x\"\n);", 1),
            ("tracing::warn!(peer, %error, \"refused\");", 0),
            ("tracing::debug!(%upstream, \"lost\");", 0),
            ("tracing::info!(peer = self.of(key), \"closing\");", 0),
            ("// No peer: a reload.\ntracing::info!(volume, \"ended\");", 0),
            ("// No peer: a reload, or\n// the end.\ntracing::info!(volume, \"ended\");", 0),
            ("// No peer: a reload.\n\ntracing::info!(volume, \"ended\");", 1),
            ("use tracing::Level;", 0),
            ("#[cfg(test)]\nmod tests { fn f() { tracing::info!(\"x\"); } }", 0),
        ] {
            assert_eq!(findings(path, text), found, "{text}");
        }
        assert_eq!(findings("io/lab/src/a.rs", "tracing::warn!(\"x\");"), 0, "it sees no peers");
    }
}
