//! Checks that files and functions are short enough to understand, and that each file says why it exists.

use super::finding::Finding;
use super::source::RustFile;
use super::tree::File;

/// The most columns of a line of text, the same as of code (rustfmt.toml).
const MOST_COLUMNS: usize = 110;
const MOST_LINES: usize = 1_000;
const MOST_FUNCTION_LINES: usize = 80;

/// Checks that a Rust file begins with why it exists.
pub(super) fn header(file: &RustFile<'_>) -> Option<Finding> {
    let missing = !file.text.starts_with("//!");
    missing.then(|| Finding::new(file.path, 1, "a file without a header", "//! why it exists"))
}

/// Checks the length of a Rust file, which has one purpose.
pub(super) fn lines(file: &RustFile<'_>) -> Option<Finding> {
    let lines = file.text.lines().count();
    let what = format!("a file of {lines} lines");
    (lines > MOST_LINES)
        .then(|| Finding::new(file.path, 1, what, format!("at most {MOST_LINES}, split by purpose")))
}

/// Checks that lines of text and comments are no wider than lines of code. Tables, quoted output and links
/// are not checked, because their lines cannot be broken. The benchmarks' reports are not checked either.
pub(super) fn columns(file: &File) -> Vec<Finding> {
    let is_rust = file.path.ends_with(".rs");
    if !is_rust && (!file.path.ends_with(".md") || file.path.starts_with("bench/results/")) {
        return Vec::new();
    }
    let (mut quoted, mut findings) = (false, Vec::new());
    for (line, text) in (1..).zip(file.text.lines()) {
        let words = text.trim_start().trim_start_matches(['/', '!']).trim_start();
        if is_rust && !text.trim_start().starts_with("//") {
            continue;
        }
        quoted ^= words.starts_with("```");
        let may_break = !quoted && !words.starts_with(['|', '[', '!']) && words.contains(' ');
        let columns = text.chars().count();
        if may_break && columns > MOST_COLUMNS {
            let what = format!("a line of {columns} columns");
            findings.push(Finding::new(&file.path, line, what, format!("at most {MOST_COLUMNS}")));
        }
    }
    findings
}

/// Checks that a function fits a screen, from the line of `fn` to that of its closing brace.
pub(super) fn functions(file: &RustFile<'_>) -> Vec<Finding> {
    let long = |(_, _, lines): &(usize, String, usize)| *lines > MOST_FUNCTION_LINES;
    functions_of(&file.code)
        .into_iter()
        .filter(long)
        .map(|(line, name, lines)| {
            let what = format!("fn {name} has {lines} lines");
            Finding::new(file.path, line, what, format!("at most {MOST_FUNCTION_LINES}"))
        })
        .collect()
}

/// The line, the name and the length in lines of every function with a body.
fn functions_of(code: &str) -> Vec<(usize, String, usize)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut functions = Vec::new();
    for (start, _) in code.match_indices("fn ") {
        let name: String = code[start + 3..].trim_start().chars().take_while(|c| is_part(*c)).collect();
        if name.is_empty() || code[..start].chars().next_back().is_some_and(is_part) {
            continue;
        }
        if let Some(length) = body_end(&code[start..]) {
            let line = 1 + code[..start].matches('\n').count();
            functions.push((line, name, 1 + code[start..start + length].matches('\n').count()));
        }
    }
    functions
}

/// Where the body of the function that begins here ends; `None` if it has none. A `;` before a body means
/// that there is none, unless it is within brackets, as in `[u8; 4]`.
fn body_end(function: &str) -> Option<usize> {
    let (mut brackets, mut braces) = (0_i32, 0_i32);
    for (at, byte) in function.bytes().enumerate() {
        match byte {
            b'[' | b'(' => brackets += 1,
            b']' | b')' => brackets -= 1,
            b';' if brackets == 0 && braces == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces == 0 && brackets == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_header_is_found() {
        assert!(header(&RustFile::new("x.rs", "use std::fmt;\n")).is_some());
        assert!(header(&RustFile::new("x.rs", "//! Why.\n")).is_none());
    }

    #[test]
    fn a_file_of_more_than_a_thousand_lines_is_found() {
        assert!(lines(&RustFile::new("x.rs", &"\n".repeat(1_001))).is_some());
        assert!(lines(&RustFile::new("x.rs", &"\n".repeat(1_000))).is_none());
    }

    #[test]
    fn a_function_of_more_than_eighty_lines_is_found() {
        let function = |lines: usize| {
            format!("trait T {{ fn f(); }}\nfn g(x: [u8; 4]) {{{}}}\n", "\n".repeat(lines - 1))
        };
        assert_eq!(functions(&RustFile::new("x.rs", &function(80))), []);
        let found = functions(&RustFile::new("x.rs", &function(81)));
        assert_eq!(found[0].to_string(), "x.rs:2: fn g has 81 lines; instead: at most 80");
    }

    #[test]
    fn a_line_of_text_that_is_wider_than_code_is_found_and_a_table_is_not() {
        let found = |path: &str, text: String| columns(&File { path: path.to_owned(), text }).len();
        let wide = format!("word {}", "x".repeat(106));
        assert_eq!(found("x.md", wide.clone()), 1);
        assert_eq!(found("x.md", wide[1..].to_owned()), 0, "110 columns");
        assert_eq!(found("x.rs", format!("    /// {wide}")), 1);
        assert_eq!(found("x.rs", format!("let x = \"{wide}\";")), 0, "that is code, which rustfmt sees to");
        assert_eq!(found("x.md", format!("| {wide} |")), 0);
        assert_eq!(found("x.md", format!("```text\n{wide}\n```")), 0);
        assert_eq!(found("x.md", "x".repeat(200)), 0, "it cannot be broken");
    }

    #[test]
    fn the_type_of_a_function_is_no_function() {
        let code = "struct S { f: fn (u8) -> u8, }\nfn a() { let b = |x: fn(u8)| { x(1) }; }";
        let names: Vec<_> = functions_of(code).into_iter().map(|(_, name, _)| name).collect();
        assert_eq!(names, ["a"]);
    }
}
