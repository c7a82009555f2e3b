//! Commands of a shell, and what undoes them.

use std::io::{self, Write};
use std::process::{Command, Output};

use anyhow::{Context, ensure};

/// Where an administrator's programs are, which are not in everybody's path.
const ALSO: &str = "/usr/sbin:/sbin";

/// What a script says. It ends with the first command that fails.
pub(crate) fn shell(script: &str) -> anyhow::Result<String> {
    let Output { status, stdout, stderr } =
        program("bash").args(["-e", "-o", "pipefail", "-c", script]).output().context("bash")?;
    let log = String::from_utf8_lossy(&stderr);
    ensure!(status.success(), "{status} from: {}\n{}", script.trim(), log.trim());
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// A program, also one for administrators.
pub(crate) fn program(name: &str) -> Command {
    let mut program = Command::new(name);
    program.env("PATH", format!("{}:{ALSO}", std::env::var("PATH").unwrap_or_default()));
    program
}

/// A program in the network namespace of a host.
pub(crate) fn program_at(host: &str, name: &str) -> Command {
    let mut at = program("ip");
    at.args(["netns", "exec", host, name]);
    at
}

/// Steps that changed this machine. Each is undone when this goes, the last one first.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    undo: Vec<String>,
}

impl Steps {
    /// Does a step. `undo` must also work if the step was done in part, or not at all.
    pub(crate) fn take(&mut self, step: &str, undo: &str) -> anyhow::Result<String> {
        self.undo.push(undo.to_owned());
        shell(step)
    }

    /// Undoes all steps.
    ///
    /// # Errors
    /// The first thing that could not be undone. The others are undone nevertheless.
    pub(crate) fn undo(&mut self) -> anyhow::Result<()> {
        let undone = self.undo.drain(..).rev().map(|undo| shell(&undo).map(|_| ()));
        undone.fold(Ok(()), anyhow::Result::and)
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Err(error) = self.undo() {
            // Standard error may be gone, too.
            let _ = writeln!(io::stderr(), "weir: something of the test bed is left: {error:#}");
        }
    }
}
