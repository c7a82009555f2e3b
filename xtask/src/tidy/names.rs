//! Finds names that say nothing: a module called "util" collects code that nobody has found a place for.

use super::finding::Finding;
use super::source::RustFile;
use super::tree::File;

const NAMELESS: &[&str] =
    &["core", "common", "util", "utils", "misc", "helper", "helpers", "manager", "managers"];

const INSTEAD: &str = "the name of what it is for";

/// Checks that the crate does not have such a name.
pub(super) fn crate_name(name: &str, manifest: &str) -> Option<Finding> {
    let nameless = name.split('-').any(|part| NAMELESS.contains(&part));
    nameless.then(|| Finding::new(manifest, 1, format!("the crate name {name}"), INSTEAD))
}

/// Checks that neither the file nor its folders have such a name.
pub(super) fn path(file: &File) -> Option<Finding> {
    let stem = file.path.strip_suffix(".rs").unwrap_or(&file.path);
    let nameless = stem.split('/').find(|part| NAMELESS.contains(part))?;
    Some(Finding::new(&file.path, 1, format!("the name {nameless}"), INSTEAD))
}

/// Checks that no module within a file has such a name.
pub(super) fn inline_modules(file: &RustFile<'_>) -> Vec<Finding> {
    let name = |line: &str| {
        let (_, after) = line
            .split_once("mod ")
            .filter(|(before, _)| before.trim_end().is_empty() || before.starts_with("pub"))?;
        Some(after.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next()?.to_owned())
    };
    let modules = file.code_lines().filter_map(|(number, line)| Some((number, name(line.trim_start())?)));
    modules
        .filter(|(_, name)| NAMELESS.contains(&name.as_str()))
        .map(|(number, name)| Finding::new(file.path, number, format!("the module name {name}"), INSTEAD))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_says_nothing_is_found() {
        assert!(crate_name("weir-utils", "io/utils/Cargo.toml").is_some());
        assert!(crate_name("weir-model", "pure/model/Cargo.toml").is_none());
        let file = |path: &str| File { path: path.to_owned(), text: String::new() };
        assert!(path(&file("io/gateway/src/common.rs")).is_some());
        assert!(path(&file("io/gateway/src/helpers/buffer.rs")).is_some());
        assert!(path(&file("io/gateway/src/commonplace.rs")).is_none());
        let modules = "mod util {}\npub(crate) mod misc;\nmod wire;\n// mod core;\n";
        assert_eq!(inline_modules(&RustFile::new("x.rs", modules)).len(), 2);
    }
}
