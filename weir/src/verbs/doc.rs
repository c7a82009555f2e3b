//! `weir doc TOPIC`: the pages of the manual, as they were when the program was built.
//!
//! A host with the program may have no network and no source. The pages are part of the program, so they fit
//! its version.

use std::io::Write;

use clap::Args;
use comfy_table::presets;
use serde::Serialize;

use crate::answer::Form;
use crate::failure::Failure;
use crate::say;
use crate::terminal;

/// The pages, by the names of their files.
const PAGES: &[(&str, &str)] = &[
    ("choosing", include_str!("../../../docs/choosing.md")),
    ("clients", include_str!("../../../docs/clients.md")),
    ("config", include_str!("../../../docs/config.md")),
    ("durability", include_str!("../../../docs/durability.md")),
    ("glossary", include_str!("../../../docs/glossary.md")),
    ("guarantee", include_str!("../../../docs/guarantee.md")),
    ("life-of-an-io", include_str!("../../../docs/life-of-an-io.md")),
    ("limits", include_str!("../../../docs/limits.md")),
    ("operating", include_str!("../../../docs/operating.md")),
    ("several-gateways", include_str!("../../../docs/several-gateways.md")),
    ("throttle", include_str!("../../../docs/throttle.md")),
    ("traces", include_str!("../../../docs/traces.md")),
    ("transfers", include_str!("../../../docs/transfers.md")),
];

/// Which page.
#[derive(Args, Debug)]
pub(crate) struct DocArguments {
    /// The page; without it, weir lists them
    topic: Option<String>,
    #[command(flatten)]
    form: Form,
}

/// A page in the list.
#[derive(Serialize)]
struct Page {
    topic: &'static str,
    title: &'static str,
}

/// Prints a page in Markdown, or what pages there are.
///
/// # Errors
/// If there is no such page.
pub(crate) fn doc(arguments: &DocArguments) -> Result<(), Failure> {
    let Some(topic) = &arguments.topic else {
        let page = |(topic, text): &(&'static str, &'static str)| Page { topic, title: title(text) };
        let pages: Vec<_> = PAGES.iter().map(page).collect();
        return arguments.form.print(&pages, |pages| {
            let rows = pages.iter().map(|page| [page.topic.to_owned(), page.title.to_owned()]);
            let (style, width) = (presets::UTF8_HORIZONTAL_ONLY, terminal::width());
            weir_table::table(style, &["topic", "what it is about"], rows, |_| true, &[], width)
        });
    };
    let Some((_, text)) = PAGES.iter().find(|(name, _)| name == topic) else {
        let topics: Vec<_> = PAGES.iter().map(|(topic, _)| *topic).collect();
        return Err(Failure::usage(format!("doc: found no page {topic:?}; accepted: {}", topics.join(", "))));
    };
    Ok(write!(say::out(), "{text}")?)
}

/// The first line of a page.
fn title(text: &'static str) -> &'static str {
    text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_page_of_the_manual_is_part_of_the_program_and_has_a_title() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let files = files.filter_map(|name| Some(name.to_str()?.strip_suffix(".md")?.to_owned()));
        let pages: BTreeSet<_> = PAGES.iter().map(|(topic, _)| (*topic).to_owned()).collect();
        assert_eq!(files.collect::<BTreeSet<_>>(), pages);
        assert!(PAGES.iter().all(|(_, text)| text.starts_with("# ") && !title(text).is_empty()));
    }
}
