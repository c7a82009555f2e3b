//! The pages of the manual, as readers use them: blocks to copy, and rows of tables.

use std::path::Path;

/// A fenced block of a page.
#[derive(Debug)]
pub(crate) struct Block {
    /// The language, the first word behind the fence.
    pub(crate) language: String,
    /// The page's note for the tests: the rest of that line, often empty.
    pub(crate) mark: String,
    /// The text to copy.
    pub(crate) text: String,
    /// The place of the block, for the message of a failure.
    pub(crate) place: String,
}

/// The text of a page of `docs/`.
///
/// # Panics
/// If there is no such page.
pub(crate) fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The blocks of a page of `docs/`, in their order.
///
/// # Panics
/// If there is no such page, or a block of it has no end or no language.
pub(crate) fn blocks(name: &str) -> Vec<Block> {
    let text = page(name);
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(info), None) => {
                let (language, mark) = info.split_once(' ').unwrap_or((info, ""));
                let place = format!("docs/{name}:{number}");
                assert!(!language.is_empty(), "{place}: a block without a language");
                let (language, mark) = (language.to_owned(), mark.to_owned());
                open = Some(Block { language, mark, text: String::new(), place });
            }
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "docs/{name}: a block without an end");
    blocks
}
