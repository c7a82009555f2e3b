//! The configurations of the manual: each must be accepted as it stands, and reported as the page shows.

use std::path::Path;

use crate::harness::{Block, Outcome, Program, Scene, blocks};

/// The end of the command that stands above a shown report.
const SHOWN: &str = " | grep -v default:\n";

/// The output of `weir check` for a configuration that it accepts.
fn check(scene: &Scene, block: &Block) -> String {
    let file = scene.write("file.toml", &block.text);
    let Outcome { code, out, log } = Program::weir().arg("check").arg(file.display()).outcome();
    assert_eq!(code, Some(0), "{}: {log}", block.place);
    out
}

/// The pages of `docs/`, without those of its folders.
fn pages() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.ends_with(".md")).collect()
}

#[test]
fn every_configuration_of_the_manual_is_accepted_as_it_stands() {
    let scene = Scene::new();
    let mut checked = Vec::new();
    for page in pages() {
        for block in blocks(&page).iter().filter(|block| block.language == "toml") {
            check(&scene, block);
            checked.push(page.clone());
        }
    }
    for page in
        ["choosing.md", "clients.md", "config.md", "operating.md", "several-gateways.md", "transfers.md"]
    {
        assert!(checked.iter().any(|checked| checked == page), "no configuration in {page}");
    }
}

#[test]
fn the_page_of_choices_shows_what_is_reported_of_each_of_its_configurations() {
    let scene = Scene::new();
    let blocks = blocks("choosing.md");
    let is_toml = |block: &&Block| block.language == "toml";
    let mut shown = 0;
    for pair in blocks.windows(2).filter(|pair| is_toml(&&pair[0])) {
        let (file, report) = (&pair[0], &pair[1]);
        let found = report.text.strip_prefix("$ weir check ").and_then(|text| text.split_once(SHOWN));
        let (_, found) = found.unwrap_or_else(|| panic!("{}: no report follows", file.place));
        let said = check(&scene, file);
        let own: String =
            said.lines().filter(|line| !line.contains("default:")).map(|line| format!("{line}\n")).collect();
        assert_eq!(found, own, "{}", report.place);
        shown += 1;
    }
    assert_eq!(shown, blocks.iter().filter(is_toml).count(), "each has its report");
}
