//! The units of systemd on the page of operation: systemd must understand every line of them.

use crate::harness::{Outcome, Program, Scene, blocks, skipped};

/// Where the page installs the program.
const INSTALLED: &str = "/usr/local/bin/weir";

#[test]
fn systemd_understands_the_units_of_the_page_of_operation() {
    let units: Vec<_> = blocks("operating.md").into_iter().filter(|block| block.language == "ini").collect();
    let names: Vec<_> = units.iter().map(|unit| &*unit.mark).collect();
    assert_eq!(names, ["weir.service", "weir-controller.service"]);
    if !has_systemd() {
        return skipped("pages: systemd-analyze", "no such program; it comes with systemd");
    }
    for unit in units {
        let scene = Scene::new();
        let text = unit.text.replace(INSTALLED, env!("CARGO_BIN_EXE_weir"));
        let file = scene.write(&unit.mark, text);
        let verify = Program::new("systemd-analyze").args("verify --recursive-errors=no --man=no");
        let Outcome { code, out, log } = verify.arg(file.display()).outcome();
        assert_eq!((code, &*out, &*log), (Some(0), "", ""), "{}", unit.place);
    }
}

fn has_systemd() -> bool {
    std::process::Command::new("systemd-analyze").arg("--version").output().is_ok()
}
