//! Finds circles of imports between the files of a crate: `a.rs` imports from `b.rs`, and `b.rs` from `a.rs`.
//!
//! Files in a circle can only be understood together. The compiler accepts them, so nobody notices when one
//! begins. ARCHITECTURE.md says why two sorts of imports do not count: what a file imports from a file above
//! it (`a/b.rs` from `a.rs`), and what only tests import.
//!
//! A name that another file passes on (`pub use`) counts as imported from the file that defines it. Otherwise
//! each circle could hide behind `lib.rs`. The rule reads `use` items and paths in the code. It does not see
//! names that a macro makes or that are passed on with a `*`, nor calls of methods, which need no import.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::finding::Finding;
use super::source::{RustFile, outside_tests};
use super::tree::Member;

const INSTEAD: &str = "what two of them need, in a file below both";

/// How many files may pass on a name before the search for its origin ends.
const MOST_PASSED_ON: usize = 8;

/// The files of a crate, by the path of their module: `crate` for `lib.rs`, `crate::a::b` for `a/b.rs`.
type Modules<'t> = BTreeMap<String, Module<'t>>;

/// What is to be known of a file.
struct Module<'t> {
    file: &'t str,
    /// The paths in the code, each with its line.
    paths: Vec<(usize, String)>,
    /// The path behind each name that a `use` item makes known.
    names: BTreeMap<String, String>,
}

/// From each module to those that it imports from, each with the first line that does.
type Imports<'m> = BTreeMap<&'m str, BTreeMap<&'m str, usize>>;

/// Checks that no crate has such a circle. Each file in one is in a finding, with the shortest circle.
pub(super) fn of_imports(members: &[Member], files: &[RustFile<'_>]) -> Vec<Finding> {
    let files = outside_tests(files);
    let mut findings = Vec::new();
    for member in members {
        let modules = modules(&files, &member.manifest.replace("Cargo.toml", "src/"));
        let imports = modules.keys().map(|from| (from.as_str(), imports(&modules, from))).collect();
        let circles: BTreeSet<_> = modules.keys().filter_map(|module| shortest(&imports, module)).collect();
        for circle in circles {
            let names: Vec<_> = circle.iter().map(|module| module.trim_start_matches("crate::")).collect();
            let what = format!("a circle of imports: {} -> {}", names.join(" -> "), names[0]);
            let line = imports[circle[0]][circle[1]];
            findings.push(Finding::new(modules[circle[0]].file, line, what, INSTEAD));
        }
    }
    findings
}

/// The modules of the crate with this folder of sources.
fn modules<'t>(files: &[&RustFile<'t>], folder: &str) -> Modules<'t> {
    let mut modules = Modules::new();
    for file in files {
        let Some(path) = file.path.strip_prefix(folder).and_then(|path| path.strip_suffix(".rs")) else {
            continue;
        };
        let name = match path.trim_end_matches("/mod") {
            "lib" | "main" => "crate".to_owned(),
            path => format!("crate::{}", path.replace('/', "::")),
        };
        // A program beside a library is a crate of its own, and uses it as any other.
        modules.entry(name).or_insert_with(|| module(file));
    }
    modules
}

fn module<'t>(file: &RustFile<'t>) -> Module<'t> {
    let mut module = Module { file: file.path, paths: Vec::new(), names: BTreeMap::new() };
    let mut lines = file.code_outside_tests().into_iter();
    while let Some((number, line)) = lines.next() {
        let Some(tree) = use_tree(line) else {
            module.paths.extend(paths(line).map(|path| (number, path.to_owned())));
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';')
            && let Some((_, more)) = lines.next()
        {
            tree.push_str(more.trim());
        }
        for item in flatten(tree.split(';').next().unwrap_or(&tree)) {
            let (path, alias) = item.split_once(" as ").unwrap_or((&item, ""));
            let path = path.trim_end_matches("::self");
            let name = if alias.is_empty() { path.rsplit("::").next().unwrap_or(path) } else { alias };
            module.paths.push((number, path.to_owned()));
            module.names.insert(name.to_owned(), path.to_owned());
        }
    }
    module
}

/// What follows `use` or `pub(…) use` at the start of a line.
fn use_tree(line: &str) -> Option<&str> {
    let (before, tree) = line.trim_start().split_once("use ")?;
    let is_visibility = before.starts_with("pub(") && before.ends_with(") ");
    (is_visibility || ["", "pub "].contains(&before)).then_some(tree)
}

/// The paths in a line of code.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    words.map(|word| word.trim_matches(':')).filter(|word| word.contains("::"))
}

/// The items of a `use` tree: `a::{b, c::{d as e}}` has `a::b` and `a::c::d as e`.
fn flatten(tree: &str) -> Vec<String> {
    let Some((before, rest)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let inside = rest.rsplit_once('}').map_or(rest, |(inside, _)| inside);
    let mut depth = 0;
    let items = inside.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let items = items.filter(|item| !item.trim().is_empty()).flat_map(flatten);
    items.map(|item| format!("{}{item}", before.trim())).collect()
}

fn imports<'m>(modules: &'m Modules<'_>, from: &str) -> BTreeMap<&'m str, usize> {
    let mut imports = BTreeMap::new();
    for (line, path) in &modules[from].paths {
        let is_above = |module: &str| {
            from.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        if let Some(module) = origin(modules, from, path).filter(|module| !is_above(module)) {
            imports.entry(module).or_insert(*line);
        }
    }
    imports
}

/// The module that defines what `path` names in the module `from`; `None` if another crate does.
fn origin<'m>(modules: &'m Modules<'_>, from: &str, path: &str) -> Option<&'m str> {
    let mut path = absolute(modules, from, path)?;
    for _ in 0..MOST_PASSED_ON {
        let (module, Module { names, .. }) = longest(modules, &path)?;
        let mut rest = path[module.len()..].splitn(3, "::").skip(1);
        let behind = rest.next().and_then(|name| absolute(modules, module, names.get(name)?));
        match (behind, rest.next()) {
            (None, _) => return Some(module),
            (Some(behind), None) => path = behind,
            (Some(behind), Some(rest)) => path = format!("{behind}::{rest}"),
        }
    }
    None
}

/// The path from the root of the crate; `None` if it leads into another crate.
fn absolute(modules: &Modules<'_>, from: &str, path: &str) -> Option<String> {
    let (mut from, mut path) = (from, path.strip_prefix("self::").unwrap_or(path));
    let is_relative = path.starts_with("super::");
    while let Some(rest) = path.strip_prefix("super::") {
        (from, path) = (from.rsplit_once("::")?.0, rest);
    }
    if path.starts_with("crate::") {
        return Some(path.to_owned());
    }
    let child = format!("{from}::{}", path.split("::").next().unwrap_or(path));
    (is_relative || modules.contains_key(&child)).then(|| format!("{from}::{path}"))
}

/// The module with the longest path that `path` begins with.
fn longest<'m, 't>(modules: &'m Modules<'t>, path: &str) -> Option<(&'m str, &'m Module<'t>)> {
    let mut start = path;
    loop {
        if let Some((name, module)) = modules.get_key_value(start) {
            return Some((name, module));
        }
        start = start.rsplit_once("::")?.0;
    }
}

/// The shortest circle through a module, from the first of its modules on.
fn shortest<'m>(imports: &Imports<'m>, through: &'m str) -> Option<Vec<&'m str>> {
    let mut importer_of = BTreeMap::new();
    let mut open = VecDeque::from([through]);
    while !importer_of.contains_key(through) {
        let from = open.pop_front()?;
        for module in imports[from].keys() {
            importer_of.entry(*module).or_insert_with(|| {
                open.push_back(module);
                from
            });
        }
    }
    let mut circle = vec![importer_of[through]];
    while circle[circle.len() - 1] != through {
        circle.push(importer_of[circle[circle.len() - 1]]);
    }
    circle.reverse();
    let first = (0..circle.len()).min_by_key(|at| circle[*at])?;
    circle.rotate_left(first);
    Some(circle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let member = Member { manifest: "io/x/Cargo.toml".to_owned(), ..Member::default() };
        let paths: Vec<_> = files.iter().map(|(path, _)| format!("io/x/src/{path}")).collect();
        let files = paths.iter().zip(files).map(|(path, (_, text))| RustFile::new(path, text));
        of_imports(&[member], &files.collect::<Vec<_>>()).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_circle_is_found_with_its_files_and_the_line_of_its_first_import() {
        let found = findings(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("a.rs", "use std::fmt;\nuse crate::b::{\n    B,\n    BB,\n};\n"),
            ("b.rs", "use crate::c::C; // why\n"),
            ("c.rs", "pub struct Pause {\n    a: crate::a::A,\n}\n"),
        ]);
        assert_eq!(
            found,
            [
                "io/x/src/a.rs:2: a circle of imports: a -> b -> c -> a; instead: what two of them need, in a file below both"
            ]
        );
    }

    #[test]
    fn files_that_import_in_one_direction_are_no_circle() {
        let found = findings(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\npub use c::C;\n"),
            ("a.rs", "use crate::b::B;\nuse crate::c::C;\n// use crate::a::A;\n"),
            ("b.rs", "use crate::C;\nconst A: &str = \"crate::a::A\";\n"),
            ("c.rs", "use std::a::A;\n"),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn a_name_that_is_passed_on_counts_as_imported_from_where_it_is_defined() {
        let found = findings(&[
            ("lib.rs", "mod a;\nmod b;\npub use a::{A as Renamed, part::{self}};\n"),
            ("a.rs", "mod part;\npub use part::Part;\npub struct A(crate::b::B);\n"),
            ("a/part.rs", "use crate::b::B;\n"),
            ("b.rs", "use crate::{Renamed, other};\nuse crate::a::Part;\n"),
        ]);
        let circles: Vec<_> = found.iter().map(|found| found.split("; ").next().unwrap()).collect();
        assert_eq!(
            circles,
            [
                "io/x/src/a.rs:3: a circle of imports: a -> b -> a",
                "io/x/src/a/part.rs:1: a circle of imports: a::part -> b -> a::part"
            ]
        );
    }

    #[test]
    fn a_part_may_import_from_the_files_above_it_and_a_test_from_every_file() {
        let found = findings(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "mod part;\n#[cfg(test)]\nmod rig;\nuse part::Part;\nfn f() { part::g() }\n"),
            ("a/part.rs", "use super::A;\nuse crate::b::B;\nuse crate::Root;\n"),
            ("a/rig.rs", "use crate::b::B;\n"),
            ("b.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n"),
        ]);
        assert_eq!(found, [""; 0]);
        let neighbours = [
            ("a.rs", "mod one;\nmod two;\n"),
            ("a/one.rs", "use super::two::Two;\n"),
            ("a/two.rs", "use super::one::One;\n"),
        ];
        assert_eq!(findings(&neighbours).len(), 1);
    }
}
