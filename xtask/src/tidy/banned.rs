//! Words and calls that must not be in a file at all, or only in one place.

use super::finding::Finding;
use super::source::{RustFile, has_word};
use super::tree::File;

/// Notes to oneself, wherever they stand.
const NOTES: &[&str] = &["FIXME", "TODO", "XXX"];

/// Code that was not meant to stay, and tests that do not run.
const UNFINISHED: &[&str] = &["dbg!", "todo!", "unimplemented!", "#[ignore"];

/// Reads of a clock. `tokio::time::Instant::now` is one as well.
const CLOCK_READS: &[&str] = &["Instant::now", "SystemTime::now"];

const SLEEPS: &[&str] = &["thread::sleep", "time::sleep"];

/// Folders of one machine. Each is put together from two parts, so that this file does not break its own
/// rule.
const MACHINE_FOLDERS: &[&str] = &[concat!("/", "home/"), concat!("/", "work/"), concat!("/", "root/")];

/// Checks that there is no note and no unfinished code.
pub(super) fn leftovers(file: &RustFile<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.comments.lines()) {
        for note in NOTES.iter().filter(|note| has_word(line, note)) {
            findings.push(Finding::new(
                file.path,
                number,
                format!("a {note}"),
                "an issue, or the work itself",
            ));
        }
    }
    for (number, line) in file.code_lines() {
        for leftover in UNFINISHED.iter().filter(|leftover| line.contains(**leftover)) {
            findings.push(Finding::new(file.path, number, *leftover, "finished code, and tests that run"));
        }
    }
    findings
}

/// Checks that only `io/clock` reads a clock. Benchmarks may, because they measure.
pub(super) fn clocks(file: &RustFile<'_>) -> Vec<Finding> {
    let measures = file.path.starts_with("bench/") || file.path.contains("/benches/");
    if measures || file.path.starts_with("io/clock/") {
        return Vec::new();
    }
    words_in_code(file, 1, CLOCK_READS, "weir_clock::Clock, or now as an argument")
}

/// Checks that only `io/backend` has unsafe code, because it hands memory to the kernel.
pub(super) fn unsafety(file: &RustFile<'_>) -> Vec<Finding> {
    if file.path.starts_with("io/backend/") {
        return Vec::new();
    }
    words_in_code(file, 1, &["unsafe"], "safe code, or a place in io/backend")
}

/// Checks that no test sleeps: such a test is slow on a fast machine, and wrong on a slow one.
pub(super) fn sleeps_in_tests(file: &RustFile<'_>) -> Vec<Finding> {
    let Some(first) = file.first_test_line() else { return Vec::new() };
    words_in_code(file, first, SLEEPS, "virtual time, or waiting for the event itself")
}

/// Checks that no file names a folder of somebody's machine.
pub(super) fn machine_paths(file: &File) -> Vec<Finding> {
    let lines = (1..).zip(file.text.lines());
    lines
        .filter_map(|(number, line)| {
            let folder = MACHINE_FOLDERS.iter().find(|folder| is_absolute_in(line, folder))?;
            let what = format!("a path below {folder}");
            Some(Finding::new(&file.path, number, what, "a path relative to the repository"))
        })
        .collect()
}

/// Whether `folder` stands in the line as the start of a path, and not only in the middle of one.
fn is_absolute_in(line: &str, folder: &str) -> bool {
    let is_middle = |c: char| c.is_alphanumeric() || "._-}*".contains(c);
    line.match_indices(folder).any(|(start, _)| !line[..start].chars().next_back().is_some_and(is_middle))
}

fn words_in_code(file: &RustFile<'_>, from_line: usize, words: &[&str], instead: &str) -> Vec<Finding> {
    let lines = file.code_lines().filter(|(number, _)| *number >= from_line);
    lines
        .filter_map(|(number, line)| {
            let word = words.iter().find(|word| has_word(line, word))?;
            Some(Finding::new(file.path, number, *word, instead))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(rule: fn(&RustFile<'_>) -> Vec<Finding>, path: &str, text: &str) -> usize {
        rule(&RustFile::new(path, text)).len()
    }

    #[test]
    fn notes_and_unfinished_code_are_found() {
        assert_eq!(count(leftovers, "a.rs", "// TODO: more\n/* FIXME */ fn f() { todo!() }"), 3);
        assert_eq!(count(leftovers, "a.rs", "#[ignore = \"slow\"]\nfn f() { dbg!(1); }"), 2);
        assert_eq!(count(leftovers, "a.rs", "let word = \"TODO dbg!\"; // TODOS"), 0);
    }

    #[test]
    fn a_clock_is_read_in_one_place() {
        let text = "let now = std::time::Instant::now();\n// Instant::now\nlet x = SystemTime::now();";
        assert_eq!(count(clocks, "io/gateway/src/a.rs", text), 2);
        assert_eq!(count(clocks, "io/clock/src/lib.rs", text), 0);
        assert_eq!(count(clocks, "pure/sched/benches/decide.rs", text), 0);
    }

    #[test]
    fn unsafe_code_is_in_one_place() {
        assert_eq!(count(unsafety, "io/gateway/src/a.rs", "unsafe { f() } // unsafe"), 1);
        assert_eq!(count(unsafety, "io/backend/src/a.rs", "unsafe { f() }"), 0);
        assert_eq!(count(unsafety, "io/gateway/src/a.rs", "#![deny(unsafe_code)]"), 0);
    }

    #[test]
    fn a_test_does_not_sleep() {
        let text = "fn f() { std::thread::sleep(d); }\n#[cfg(test)]\nmod tests { use tokio::time::sleep; }";
        assert_eq!(count(sleeps_in_tests, "io/gateway/src/a.rs", text), 1);
        assert_eq!(count(sleeps_in_tests, "weir/tests/a.rs", text), 2);
        assert_eq!(count(sleeps_in_tests, "io/gateway/src/a.rs", "std::thread::sleep(d);"), 0);
    }

    #[test]
    fn a_path_of_somebodys_machine_is_found() {
        let found =
            |line: &str| machine_paths(&File { path: "a.md".to_owned(), text: line.to_owned() }).len();
        assert_eq!(found(concat!("see /", "home/me/weir")), 1);
        assert_eq!(found(concat!("see \"/", "root/.cargo\"")), 1);
        assert_eq!(found(concat!("see docs/", "work/list.md and https://x.org/", "home/a")), 0);
    }
}
