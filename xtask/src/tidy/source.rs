//! Splits a Rust file into code and comments, line for line.
//!
//! The rules look for words and braces, and a word in a string is not the word in code. A whole parser
//! (`syn`) would be another dependency, of another version than that of the derive macros. The rules only
//! have to tell strings and comments from code. Cost: the rules do not see what a macro expands to.

use super::tree::Tree;

/// A Rust file.
pub(super) struct RustFile<'t> {
    /// Its path from the root, with `/`.
    pub(super) path: &'t str,
    /// Its text.
    pub(super) text: &'t str,
    /// The text with comments and literals blanked, line for line.
    pub(super) code: String,
    /// The text with everything except comments blanked, line for line.
    pub(super) comments: String,
}

impl<'t> RustFile<'t> {
    /// The text at `path`.
    pub(super) fn new(path: &'t str, text: &'t str) -> Self {
        let (code, comments) = split(text);
        Self { path, text, code, comments }
    }

    /// The lines of code, counted from one.
    pub(super) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.code.lines())
    }

    /// The first line that only tests compile; all lines of a file of tests.
    pub(super) fn first_test_line(&self) -> Option<usize> {
        let path = self.path;
        let is_test = path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("/props.rs");
        if is_test || path.starts_with("pure/testkit/") {
            return Some(1);
        }
        self.code_lines().find(|(_, line)| line.contains("#[cfg(test)]")).map(|(number, _)| number)
    }

    /// The lines of code outside tests: without each item behind `#[cfg(test)]`, up to its closing brace.
    pub(super) fn code_outside_tests(&self) -> Vec<(usize, &str)> {
        let mut outside = Vec::new();
        let mut lines = self.code_lines();
        while let Some((number, line)) = lines.next() {
            if line.trim() != "#[cfg(test)]" {
                outside.push((number, line));
                continue;
            }
            let indent = |line: &str| line.len() - line.trim_start().len();
            let item =
                lines.find(|(_, item)| !item.trim().starts_with('#')).map_or("", |(_, item)| item.trim_end());
            if !item.ends_with([';', ',', '}']) {
                lines.find(|(_, end)| end.trim() == "}" && indent(end) == indent(line));
            }
        }
        outside
    }

    /// The modules that the file declares for tests only and that have a file of their own, as paths without
    /// `.rs`.
    fn test_modules(&self) -> Vec<String> {
        let stem = self.path.trim_end_matches(".rs");
        let folder =
            ["/lib", "/main", "/mod"].iter().find_map(|root| stem.strip_suffix(root)).unwrap_or(stem);
        let lines: Vec<_> = self.code.lines().map(str::trim).collect();
        let declared = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]");
        declared
            .filter_map(|pair| pair[1].split_once("mod ")?.1.strip_suffix(';'))
            .map(|name| format!("{folder}/{name}"))
            .collect()
    }
}

/// Every Rust file of the tree.
pub(super) fn rust_files(tree: &Tree) -> Vec<RustFile<'_>> {
    let rust = tree.files.iter().filter(|file| file.path.ends_with(".rs"));
    rust.map(|file| RustFile::new(&file.path, &file.text)).collect()
}

/// The files without those that only tests compile.
pub(super) fn outside_tests<'f, 't>(files: &'f [RustFile<'t>]) -> Vec<&'f RustFile<'t>> {
    let tests: Vec<String> = files.iter().flat_map(RustFile::test_modules).collect();
    let is_test = |path: &str| {
        tests.iter().any(|module| {
            path.strip_prefix(module.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        })
    };
    files.iter().filter(|file| !is_test(file.path)).collect()
}

/// Whether `word` is in `line` as a word of its own.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let after = line[start + word.len()..].chars().next();
        let before = line[..start].chars().next_back();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// The kind of text that a character belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Literal,
}

fn split(text: &str) -> (String, String) {
    let parts = parts(text);
    let only = |wanted: Part| {
        let keep = |(c, part): (char, &Part)| if c == '\n' || *part == wanted { c } else { ' ' };
        text.chars().zip(&parts).map(keep).collect()
    };
    (only(Part::Code), only(Part::Comment))
}

/// The kind of each character.
fn parts(text: &str) -> Vec<Part> {
    let chars: Vec<char> = text.chars().collect();
    let mut parts = vec![Part::Code; chars.len()];
    let mut i = 0;
    while i < chars.len() {
        let rest = &chars[i..];
        let after_word = i > 0 && (chars[i - 1].is_alphanumeric() || chars[i - 1] == '_');
        let (part, length) = match rest {
            ['/', '/', ..] => (Part::Comment, line_length(rest)),
            ['/', '*', ..] => (Part::Comment, block_comment_length(rest)),
            ['"', ..] => (Part::Literal, quoted_length(rest, '"')),
            ['r', '"' | '#', ..] if !after_word || is_byte_prefix(&chars[..i]) => {
                match raw_string_length(rest) {
                    Some(length) => (Part::Literal, length),
                    None => (Part::Code, 1),
                }
            }
            ['\'', '\\', ..] | ['\'', _, '\'', ..] => (Part::Literal, quoted_length(rest, '\'')),
            _ => (Part::Code, 1),
        };
        let end = (i + length.max(1)).min(chars.len());
        parts[i..end].fill(part);
        i = end;
    }
    parts
}

fn line_length(rest: &[char]) -> usize {
    rest.iter().position(|c| *c == '\n').unwrap_or(rest.len())
}

/// Block comments nest.
fn block_comment_length(rest: &[char]) -> usize {
    let (mut depth, mut i) = (0_usize, 0);
    while i < rest.len() {
        match rest[i..] {
            ['/', '*', ..] => (depth, i) = (depth + 1, i + 2),
            ['*', '/', ..] => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            break;
        }
    }
    i
}

/// Up to the closing quote that no backslash precedes.
fn quoted_length(rest: &[char], quote: char) -> usize {
    let mut i = 1;
    while i < rest.len() && rest[i] != quote {
        i += if rest[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

/// The length of `r"…"`, `r#"…"#` and so on; `None` for a raw identifier such as `r#type`.
fn raw_string_length(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    let start = 1 + hashes;
    if rest.get(start) != Some(&'"') {
        return None;
    }
    let closes = |i: usize| {
        rest[i] == '"' && rest[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes
    };
    Some((start + 1..rest.len()).find(|i| closes(*i)).map_or(rest.len(), |i| i + 1 + hashes))
}

/// Whether the `r` that follows belongs to `br"…"` or `cr"…"`.
fn is_byte_prefix(before: &[char]) -> bool {
    let word = before.iter().rev().take_while(|c| c.is_alphanumeric() || **c == '_').count();
    word == 1 && matches!(before.last(), Some('b' | 'c'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_are_not_code() {
        for (text, code) in [
            ("a // b", "a     "),
            ("a /* /* b */ c */ d", "a                 d"),
            ("f(\"x{\\\"}\")", "f(       )"),
            ("r#\"}\"# + br\"}\"", "       + b    "),
            ("'{' + b'\\'' + 'a: loop", "    + b     + 'a: loop"),
            ("r#type", "r#type"),
            ("\"unclosed", "         "),
        ] {
            assert_eq!(RustFile::new("x.rs", text).code, code, "{text}");
        }
    }

    #[test]
    fn comments_keep_their_lines() {
        let file = RustFile::new("x.rs", "let a = \"// no\";\n// yes\n");
        assert_eq!(file.comments, "                \n// yes\n");
    }

    #[test]
    fn a_word_is_not_part_of_another() {
        assert!(has_word("pub unsafe fn", "unsafe"));
        assert!(!has_word("#![deny(unsafe_code)]", "unsafe"));
    }
}
