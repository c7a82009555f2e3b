//! Files and functions that fit a head, and files that say why they exist.

use super::finding::Finding;
use super::source::RustFile;

const MOST_LINES: usize = 1_000;
const MOST_FUNCTION_LINES: usize = 80;

/// A Rust file begins with why it exists.
pub(super) fn header(file: &RustFile<'_>) -> Option<Finding> {
    let missing = !file.text.starts_with("//!");
    missing.then(|| Finding::new(file.path, 1, "a file without a header", "//! why it exists"))
}

/// A Rust file has one purpose.
pub(super) fn lines(file: &RustFile<'_>) -> Option<Finding> {
    let lines = file.text.lines().count();
    let what = format!("a file of {lines} lines");
    (lines > MOST_LINES)
        .then(|| Finding::new(file.path, 1, what, format!("at most {MOST_LINES}, split by purpose")))
}

/// A function fits a screen. Counted from the line of `fn` to that of its closing brace.
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

/// Where the body of the function ends that begins here; nothing if it has none. A `;` before the body ends it
/// unless it is within brackets, as in `[u8; 4]`.
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
    fn the_type_of_a_function_is_no_function() {
        let code = "struct S { f: fn (u8) -> u8, }\nfn a() { let b = |x: fn(u8)| { x(1) }; }";
        let names: Vec<_> = functions_of(code).into_iter().map(|(_, name, _)| name).collect();
        assert_eq!(names, ["a"]);
    }
}
