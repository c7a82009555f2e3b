//! What a package has beside the program, made by the program itself: the manual, pages for `man`, and
//! completions.

use crate::harness::{Outcome, Program, Scene, page};

#[test]
fn the_manual_is_in_the_program() {
    let told = Program::weir().args("doc operating").run();
    assert!(told.trim_end() == page("operating.md").trim_end(), "it is another page");
    let listed = Program::weir().args("doc").run();
    assert!(listed.contains("operating") && listed.contains("Operating weir"), "{listed}");
    let Outcome { code, out, log } = Program::weir().args("doc nothing").outcome();
    assert_eq!((code, out.as_str()), (Some(64), ""));
    assert!(log.starts_with("doc: found no page \"nothing\"; accepted: choosing, "), "{log}");
}

#[test]
fn each_verb_has_a_page_of_its_own_with_its_options() {
    let scene = Scene::new();
    let written = Program::weir().args("man").arg(scene.file("man1").display()).run();
    let names = |text: &str| text.lines().map(|line| line.rsplit('/').next().unwrap().to_owned()).collect();
    let names: Vec<String> = names(&written);
    for name in ["weir.1", "weir-status.1", "weir-set.1", "weir-throttle-explain.1", "weir-transfers-list.1"]
    {
        assert!(names.iter().any(|found| found == name), "{name} in {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("guard") || name.contains("help")), "{names:?}");
    let set = std::fs::read_to_string(scene.file("man1/weir-set.1")).expect("it was written");
    for part in [".TH WEIR-SET 1", "weir\\-set \\- Change targets", "\\-\\-dry\\-run", "\\-\\-server"] {
        assert!(set.contains(part), "{part} in\n{set}");
    }
    scene.write("file", "");
    let Outcome { code, log, .. } = Program::weir().args("man").arg(scene.file("file").display()).outcome();
    assert_eq!(code, Some(64));
    assert!(log.contains("accepted: a directory for new files") && log.lines().count() == 1, "{log}");
}

#[test]
fn bash_completes_verbs_and_options() {
    let scene = Scene::new();
    let script = Program::weir().args("completions bash").run();
    let file = scene.write("weir.bash", &script);
    let asked = "COMP_WORDS=(weir expl); COMP_CWORD=1; _weir weir expl weir; echo ${COMPREPLY[@]}
        COMP_WORDS=(weir status --ser); COMP_CWORD=2; _weir weir --ser status; echo ${COMPREPLY[@]}";
    let completed = Program::new("bash").arg("-c").arg(format!("source {}; {asked}", file.display())).run();
    assert_eq!(completed.lines().collect::<Vec<_>>(), ["explain", "--server"]);
    for shell in ["zsh", "fish"] {
        let script = Program::weir().args("completions").arg(shell).run();
        assert!(script.contains("explain"), "{shell}");
    }
}
