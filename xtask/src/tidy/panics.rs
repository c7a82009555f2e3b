//! Counts the places where outside data could end the program: every place outside tests at which Rust may
//! panic, in the crates that read such data. `xtask/panics.txt` has the counts by file and kind, so that no
//! new place goes unseen.
//!
//! Clippy's `indexing_slicing` and `expect_used` know such places exactly. But several hundred places would
//! need an attribute with a reason each, and these would bury the code, in most of which no panic can happen.
//! `pure/nbd`, where every byte comes from a peer, has these lints on. For the other crates, a count is
//! enough. It must not rise, so a new place gets a second look. If it falls, the list must follow. `unwrap()`
//! is forbidden, because it does not say why it cannot fail. An `expect` must say it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::Context;

use super::finding::Finding;
use super::source::{RustFile, has_word, outside_tests};
use super::tree::Tree;

/// The file with the counts.
pub(super) const LIST: &str = "xtask/panics.txt";

/// How to write the list anew.
const WRITE: &str = "`cargo xtask tidy --list-panics` writes the list anew";

/// The folders and files whose code gets data from a peer, a device, a file or an operator.
const WATCHED: &[&str] = &[
    "pure/model/src/",
    "pure/nbd/src/",
    "pure/sched/src/",
    "pure/control/src/",
    "pure/engine/src/",
    "pure/leases/src/",
    "pure/status/src/",
    "pure/newcomers/src/",
    "io/clock/src/",
    "io/backend/src/",
    "io/gateway/src/",
    "io/cluster/src/",
    "io/recording/src/",
    "io/api/src/",
    "io/load/src/",
    "io/agent/src/sensors",
    "io/node/src/",
    "io/lab/src/array_file.rs",
    "io/lab/src/trace",
    "weir/src/",
];

/// The fewest words of an `expect`: fewer say nothing.
const FEWEST_WORDS: usize = 2;

/// A way to panic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// An index or a slice.
    Index,
    /// `expect`.
    Expect,
    /// `panic!` and `unreachable!`.
    Panic,
    /// `assert!` and its variants. Those of debug builds do not count.
    Assert,
    /// `unwrap`.
    Unwrap,
}

/// How many places of each kind each file has.
type Counts = BTreeMap<(String, Kind), usize>;

/// Checks that the places are exactly those of the list, that there is no `unwrap`, and that each `expect`
/// has a reason.
pub(super) fn listed(tree: &Tree, files: &[RustFile<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut places = BTreeMap::new();
    for file in watched(files) {
        findings.extend(silent_expects(file));
        for (line, kind) in places_of(file) {
            if kind == Kind::Unwrap {
                let instead = "an error, or expect() with why it cannot happen";
                findings.push(Finding::new(file.path, line, "unwrap() outside a test", instead));
            } else {
                places.entry((file.path.to_owned(), kind)).or_insert_with(Vec::new).push(line);
            }
        }
    }
    let list = match parse(tree.text(LIST).unwrap_or_default()) {
        Ok(list) => list,
        Err(error) => return vec![Finding::new(LIST, 1, format!("{error:#}"), WRITE)],
    };
    findings.extend(compare(&places, &list));
    findings
}

/// The list as it should be.
pub(super) fn list(files: &[RustFile<'_>]) -> String {
    let mut counts = Counts::new();
    for file in watched(files) {
        for (_, kind) in places_of(file).into_iter().filter(|(_, kind)| *kind != Kind::Unwrap) {
            *counts.entry((file.path.to_owned(), kind)).or_default() += 1;
        }
    }
    let mut text = String::from(
        "# Places outside tests at which Rust may panic, in what reads outside data: file, kind, how many.\n\
         # Kept by `cargo xtask tidy`; `cargo xtask tidy --list-panics` writes it. A number here should only fall.\n",
    );
    for ((path, kind), count) in &counts {
        text.push_str(&format!("{path} {kind} {count}\n"));
    }
    text
}

fn compare(places: &BTreeMap<(String, Kind), Vec<usize>>, list: &Counts) -> Vec<Finding> {
    let keys: BTreeSet<_> = places.keys().chain(list.keys()).collect();
    let difference = |key: &(String, Kind)| {
        let lines = places.get(key).map_or(&[][..], Vec::as_slice);
        let (found, known) = (lines.len(), list.get(key).copied().unwrap_or(0));
        let (path, kind) = key;
        let last = lines.last().copied().unwrap_or(1);
        let what = format!("{found} x {kind}, where {LIST} has {known}");
        match found.cmp(&known) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Less => Some(Finding::new(path, 1, what, WRITE)),
            std::cmp::Ordering::Greater => {
                let instead = format!(
                    "an error with a place in the protocol; or, if no outside data can reach it, the reason in the code, and {WRITE}"
                );
                Some(Finding::new(path, last, what, instead))
            }
        }
    };
    keys.into_iter().filter_map(difference).collect()
}

fn parse(text: &str) -> anyhow::Result<Counts> {
    let mut counts = Counts::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let mut fields = line.split(' ');
        let (Some(path), Some(kind), Some(count), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            anyhow::bail!("the line {line:?}");
        };
        let kind = [Kind::Index, Kind::Expect, Kind::Panic, Kind::Assert]
            .into_iter()
            .find(|known| known.to_string() == kind)
            .with_context(|| format!("the kind in {line:?}"))?;
        counts.insert((path.to_owned(), kind), count.parse().with_context(|| format!("the line {line:?}"))?);
    }
    Ok(counts)
}

/// The watched files, without those that only tests compile.
fn watched<'f, 't>(files: &'f [RustFile<'t>]) -> impl Iterator<Item = &'f RustFile<'t>> {
    let is_watched = |file: &&RustFile<'_>| WATCHED.iter().any(|start| file.path.starts_with(start));
    outside_tests(files).into_iter().filter(is_watched)
}

fn places_of(file: &RustFile<'_>) -> Vec<(usize, Kind)> {
    let mut places = Vec::new();
    for (number, line) in file.code_outside_tests() {
        let mut add = |kind, count| places.extend(std::iter::repeat_n((number, kind), count));
        add(Kind::Index, indices(line));
        add(Kind::Expect, line.matches(".expect(").count());
        add(Kind::Unwrap, line.matches(".unwrap()").count());
        let macros = |names: &[&str]| names.iter().filter(|name| has_word(line, name)).count();
        add(Kind::Panic, macros(&["panic!", "unreachable!"]));
        add(Kind::Assert, macros(&["assert!", "assert_eq!", "assert_ne!"]));
    }
    places
}

/// Brackets right behind a value: `a[1]`, `f()[1]`, `a[1][2]`, `&a?[..n]`.
fn indices(line: &str) -> usize {
    let is_value = |c: char| c.is_alphanumeric() || "_)]?".contains(c);
    line.match_indices('[').filter(|(at, _)| line[..*at].chars().next_back().is_some_and(is_value)).count()
}

/// Finds each `expect` with a text that says nothing.
fn silent_expects(file: &RustFile<'_>) -> Vec<Finding> {
    let text: Vec<_> = file.text.lines().collect();
    let mut findings = Vec::new();
    for (number, _) in file.code_outside_tests().iter().filter(|(_, line)| line.contains(".expect(")) {
        let after = text[number - 1].split_once(".expect(").map_or("", |(_, after)| after);
        // A text that is too long for the line stands in the next one.
        let after = if after.is_empty() { text.get(*number).map_or("", |next| next.trim()) } else { after };
        let said = after.strip_prefix('"').and_then(|said| said.split('"').next());
        if said.is_some_and(|said| said.split_whitespace().count() < FEWEST_WORDS) {
            let instead = "why it cannot happen, in some words";
            findings.push(Finding::new(file.path, *number, "expect() without a reason", instead));
        }
    }
    findings
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index => "index",
            Self::Expect => "expect",
            Self::Panic => "panic",
            Self::Assert => "assert",
            Self::Unwrap => "unwrap",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::rust_files;
    use super::super::tree::File;
    use super::*;

    const PATH: &str = "pure/nbd/src/a.rs";

    fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        tree.files = files
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        tree
    }

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let tree = tree(files);
        listed(&tree, &rust_files(&tree)).iter().map(Finding::to_string).collect()
    }

    fn findings(code: &str, list: &str) -> Vec<String> {
        found(&[(PATH, code), (LIST, list)])
    }

    #[test]
    fn a_place_that_is_not_listed_is_found_and_one_that_is_listed_is_not() {
        let code = "fn f(a: &[u8]) -> u8 {\n    a[0]\n}\n";
        let found = findings(code, "");
        assert!(
            found[0].starts_with("pure/nbd/src/a.rs:2: 1 x index, where xtask/panics.txt has 0"),
            "{found:?}"
        );
        assert_eq!(findings(code, "# a comment\npure/nbd/src/a.rs index 1\n"), [""; 0]);
    }

    #[test]
    fn a_list_that_has_more_than_the_code_is_found() {
        assert_eq!(findings("fn f() {}\n", "pure/nbd/src/a.rs expect 2\n").len(), 1);
        assert_eq!(findings("fn f() {}\n", "pure/nbd/src/gone.rs expect 2\n").len(), 1);
        assert!(findings("fn f() {}\n", "pure/nbd/src/a.rs hope 2\n")[0].contains("the kind"));
    }

    #[test]
    fn unwrap_is_found_whatever_the_list_says_and_an_expect_needs_a_reason() {
        assert!(
            findings("fn f() { g().unwrap() }\n", "pure/nbd/src/a.rs unwrap 1\n")[0].contains("the kind")
        );
        assert!(findings("fn f() { g().unwrap() }\n", "")[0].contains("unwrap() outside a test"));
        let expect = |said: &str| {
            findings(&format!("fn f() {{ g().expect(\"{said}\") }}\n"), "pure/nbd/src/a.rs expect 1\n")
        };
        assert_eq!(expect("ok").len(), 1);
        assert_eq!(expect("it was checked above"), [""; 0]);
    }

    #[test]
    fn every_way_to_panic_is_counted_and_what_cannot_is_not() {
        let places = |line: &str| {
            let text = format!("fn f() {{ {line} }}\n");
            places_of(&RustFile::new(PATH, &text)).into_iter().map(|(_, kind)| kind).collect::<Vec<_>>()
        };
        assert_eq!(places("a[1][2] + f()[0] + &g()?[..2]"), [Kind::Index; 4]);
        assert_eq!(places("panic!(); unreachable!()"), [Kind::Panic; 2]);
        assert_eq!(places("assert_eq!(1, 1); assert!(x);"), [Kind::Assert; 2]);
        assert_eq!(
            places("debug_assert!(x); let [a, b]: [u8; 2] = *x; vec![1]; &[1]; #[inline] x(); // a[1]"),
            []
        );
    }

    #[test]
    fn tests_may_panic() {
        let code = "#[cfg(test)]\nmod fixtures;\nfn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() { h().unwrap() }\n}\n";
        let files =
            [("pure/nbd/src/lib.rs", code), ("pure/nbd/src/fixtures.rs", "fn f() { g().unwrap() }\n")];
        assert_eq!(found(&files), [""; 0]);
        let nested = [
            ("pure/nbd/src/b.rs", "#[cfg(test)]\nmod rig;\n"),
            ("pure/nbd/src/b/rig/x.rs", "fn f() { g().unwrap() }\n"),
        ];
        assert_eq!(found(&nested), [""; 0]);
        let between =
            "#[cfg(test)]\nimpl A {\n    fn f() { g().unwrap() }\n}\nfn h(a: &[u8]) -> u8 { a[0] }\n";
        assert_eq!(findings(between, "pure/nbd/src/a.rs index 1\n"), [""; 0]);
    }

    #[test]
    fn the_list_that_is_written_is_the_list_that_is_read() {
        let code = "fn f(a: &[u8]) -> u8 { assert!(true); a[0] }\n";
        let list = list(&[RustFile::new(PATH, code)]);
        assert_eq!(findings(code, &list), [""; 0]);
    }
}
