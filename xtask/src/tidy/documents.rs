//! Checks that the documents are right about crates, symbols, tests and link targets, and that each manifest
//! takes the workspace's lints.

use super::finding::Finding;
use super::tree::{File, Tree};

/// Checks that every crate is in the table of ARCHITECTURE.md, with its folder.
pub(super) fn crates_are_listed(tree: &Tree) -> Vec<Finding> {
    const PAGE: &str = "ARCHITECTURE.md";
    let page = tree.text(PAGE).unwrap_or_default();
    let missing = tree.members.iter().filter(|member| {
        let folder = member.manifest.trim_end_matches("/Cargo.toml");
        let named = |line: &str| {
            line.contains(&format!("`{}`", member.name)) && line.contains(&format!("`{folder}`"))
        };
        !page.lines().any(named)
    });
    missing
        .map(|member| {
            Finding::new(PAGE, 1, format!("nothing about {}", member.name), "a line with its name and folder")
        })
        .collect()
}

/// Checks that the glossary has a table of the papers' symbols, with at least one row.
pub(super) fn symbols_are_listed(tree: &Tree) -> Option<Finding> {
    const PAGE: &str = "docs/glossary.md";
    let page = tree.text(PAGE).unwrap_or_default();
    let mut rows = page.lines().skip_while(|line| !line.starts_with("| symbol |"));
    let is_row = |line: Option<&str>| line.is_some_and(|line| line.starts_with('|'));
    let complete = is_row(rows.next()) && is_row(rows.next()) && is_row(rows.next());
    (!complete).then(|| {
        let instead = "a table that begins with \"| symbol |\", a row for each symbol";
        Finding::new(PAGE, 1, "no table of the papers' symbols", instead)
    })
}

/// Checks the tables with a column of tests, on the pages that promise one: each row names tests that exist,
/// or says that it is open.
pub(super) fn rows_have_tests(tree: &Tree) -> Vec<Finding> {
    const PAGES: [&str; 2] = ["docs/limits.md", "docs/operating.md"];
    const COLUMN: &str = "test that holds it";
    const INSTEAD: &str = "the names of test functions in backquotes, or \"open\" and what is missing";
    let rust: Vec<_> = tree.files.iter().filter(|file| file.path.ends_with(".rs")).collect();
    let is_there = |name: &str| rust.iter().any(|file| file.text.contains(&format!("fn {name}(")));
    let mut findings = Vec::new();
    for path in PAGES {
        let page = tree.text(path).unwrap_or_default();
        if !page.contains(COLUMN) {
            findings.push(Finding::new(path, 1, "no table with tests", format!("a column \"{COLUMN}\"")));
        }
        let mut has_tests = false;
        for (number, line) in (1..).zip(page.lines()) {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let ["", what, .., tests, ""] = cells.as_slice() else {
                has_tests = false;
                continue;
            };
            let is_header = *tests == COLUMN;
            has_tests |= is_header;
            if !has_tests || is_header || what.starts_with("---") || tests.starts_with("open") {
                continue;
            }
            // Every other piece is in backquotes.
            let named: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
            if named.is_empty() {
                findings.push(Finding::new(path, number, format!("no test for: {what}"), INSTEAD));
            }
            for name in named.into_iter().filter(|name| !is_there(name)) {
                findings.push(Finding::new(path, number, format!("no test is called {name}"), INSTEAD));
            }
        }
    }
    findings
}

/// Checks that the manifest takes the lints of the workspace.
pub(super) fn lints_are_inherited(tree: &Tree, manifest: &str) -> Option<Finding> {
    let text = tree.text(manifest).unwrap_or_default();
    let mut lints = text.lines().skip_while(|line| line.trim() != "[lints]").skip(1);
    let inherited =
        lints.find(|line| !line.trim().is_empty()).is_some_and(|line| line.trim() == "workspace = true");
    (!inherited).then(|| Finding::new(manifest, 1, "lints of its own", "[lints] workspace = true"))
}

/// Checks that every link of a Markdown file to a file of the repository leads to an existing file. Headings
/// (`#…`) are not checked.
pub(super) fn links(file: &File, has: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    if !file.path.ends_with(".md") {
        return Vec::new();
    }
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = Vec::new();
    let mut in_code = false;
    for (number, line) in (1..).zip(file.text.lines()) {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        for target in targets(line) {
            if !resolve(folder, target).is_some_and(|path| has(&path)) {
                let what = format!("the dead link {target}");
                findings.push(Finding::new(&file.path, number, what, "a file that is there"));
            }
        }
    }
    findings
}

/// The targets of a line's links, `[text](target)`, that are in the repository.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    // Every other piece is inline code.
    let prose = line.split('`').step_by(2);
    let links = prose.flat_map(|piece| piece.split("](").skip(1));
    let targets = links.filter_map(|after| after.split([')', ' ']).next());
    let local = targets.map(|target| target.split('#').next().unwrap_or_default());
    local.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
}

/// The path from the root for `target` in `folder`; `None` if it leads out of the repository.
fn resolve(folder: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::tree::Member;
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| File { path: (*path).to_owned(), text: (*text).to_owned() };
        let name = "weir-sched".to_owned();
        let member = Member { name, manifest: "pure/sched/Cargo.toml".to_owned(), ..Member::default() };
        let mut tree = Tree::default();
        tree.files = files.iter().map(file).collect();
        tree.members = vec![member];
        tree
    }

    #[test]
    fn a_crate_that_the_architecture_does_not_list_is_found() {
        let listed = "| `weir-sched` | `pure/sched` | the scheduler |";
        assert_eq!(crates_are_listed(&tree(&[("ARCHITECTURE.md", listed)])), []);
        assert_eq!(crates_are_listed(&tree(&[("ARCHITECTURE.md", "`weir-sched`")])).len(), 1);
        assert_eq!(crates_are_listed(&tree(&[])).len(), 1);
    }

    #[test]
    fn a_glossary_without_symbols_is_found() {
        let table = "# Glossary\n\n| symbol | name |\n|---|---|\n| `E` | error |\n";
        assert_eq!(symbols_are_listed(&tree(&[("docs/glossary.md", table)])), None);
        assert!(symbols_are_listed(&tree(&[("docs/glossary.md", "| symbol |\n|---|\n")])).is_some());
        assert!(symbols_are_listed(&tree(&[])).is_some());
    }

    #[test]
    fn a_row_without_a_test_that_is_there_is_found() {
        let header = "| what grows | what bounds it | test that holds it |\n|---|---|---|\n";
        let test = ("weir/tests/a.rs", "#[test]\nfn a_client_is_held_back() {}\n");
        let found = |tests: &str| {
            let other = "| what | why |\n|---|---|\n| a row | of another table |\n";
            let page = format!("{header}| memory | a limit | {tests} |\n\n{other}");
            rows_have_tests(&tree(&[("docs/limits.md", &page), ("docs/operating.md", header), test])).len()
        };
        assert_eq!(found("`a_client_is_held_back`, and more"), 0);
        assert_eq!(found("open: nobody has looked"), 0);
        assert_eq!(found("`a_client_is_let_in`"), 1);
        assert_eq!(found("it is so"), 1);
        assert_eq!(rows_have_tests(&tree(&[("docs/limits.md", header)])).len(), 1);
    }

    #[test]
    fn a_manifest_with_lints_of_its_own_is_found() {
        let manifest = |text| lints_are_inherited(&tree(&[("a/Cargo.toml", text)]), "a/Cargo.toml");
        assert_eq!(manifest("[package]\n\n[lints]\nworkspace = true\n"), None);
        assert!(manifest("[package]\nworkspace = true\n").is_some());
        assert!(manifest("[lints.rust]\nunsafe_code = \"allow\"\n").is_some());
    }

    #[test]
    fn a_dead_link_is_found() {
        let has = |path: &str| ["docs/a.md", "README.md"].contains(&path);
        let dead =
            |text: &str| links(&File { path: "docs/b.md".to_owned(), text: text.to_owned() }, &has).len();
        assert_eq!(dead("[a](a.md) [top](../README.md#use) [web](https://x.org/y) [here](#here)"), 0);
        assert_eq!(dead("[a](c.md) and [out](../../x.md)"), 2);
        assert_eq!(dead("`[a](c.md)`\n```\n[a](c.md)\n```\n"), 0);
    }
}
