//! `weir completions SHELL` and `weir man DIR`: what a package has beside the program, made from the
//! arguments that the program takes. So they cannot disagree with it.

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::Failure;
use crate::say;

/// Prints the completions of `command` for a shell.
///
/// # Errors
/// If they cannot be written.
pub(crate) fn completions(mut command: Command, shell: Shell) -> Result<(), Failure> {
    let name = command.get_name().to_owned();
    // The generator panics if it cannot write, which it always can in memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    Ok(say::out().write_all(&script)?)
}

/// Writes a page of section 1 for `command` and for each of its verbs to files in a directory, and prints
/// their names.
///
/// # Errors
/// If one cannot be written.
pub(crate) fn man(mut command: Command, directory: &Path) -> Result<(), Failure> {
    let refused = |path: &Path, error: std::io::Error| {
        Failure::usage(format!("man: {}: {error}; accepted: a directory for new files", path.display()))
    };
    fs::create_dir_all(directory).map_err(|error| refused(directory, error))?;
    command = command.disable_help_subcommand(true);
    command.build();
    for (name, page) in pages(&command)? {
        let path = directory.join(format!("{name}.1"));
        fs::write(&path, page).map_err(|error| refused(&path, error))?;
        writeln!(say::out(), "{}", path.display())?;
    }
    Ok(())
}

/// The page of a command, and those of what is under it; each with its name, such as `weir-throttle-status`.
fn pages(command: &Command) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let version = concat!("weir ", env!("CARGO_PKG_VERSION"));
    let mut page = Vec::new();
    // `man` looks a page up by the whole name, and the library would give it that of the verb alone.
    Man::new(command.clone()).title(name.to_uppercase()).source(version).manual("weir").render(&mut page)?;
    let mut pages = vec![(name, page)];
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        pages.extend(self::pages(verb)?);
    }
    Ok(pages)
}
