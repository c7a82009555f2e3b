//! The machine of a paper: a file with arrays that the files of experiments include.
//!
//! All experiments of a paper run on one model of its array. If each file described the array, one of them
//! could change it to make its claim hold, and nobody would see. So an experiment that includes a machine
//! describes no array of its own.
//!
//! The text of a machine is put after the text of the experiment. So the lines of the experiment stay what
//! they are, and a sweep or a variant can change a value of the machine like any other.

use std::path::Path;

use serde::Deserialize;

use super::ExperimentError;

/// What a machine's file says about its machine.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// The machine, in words: what it is a model of, and where its numbers come from.
    pub says: String,
    /// The numbers of the machine that the paper or its maker published, by their paths in the file; `*`
    /// stands for any text. All others are ours.
    #[serde(default)]
    pub published: Vec<String>,
}

/// The text of an experiment with the machines that it includes.
#[derive(Clone, Debug)]
pub(crate) struct Included {
    /// The whole text.
    pub(crate) text: String,
    /// The files that it is made of, each with the number of its first line.
    files: Vec<(String, usize)>,
}

/// The list of included files, and nothing else of an experiment.
#[derive(Deserialize)]
struct Includes {
    #[serde(default)]
    include: Vec<String>,
}

/// The names of the files that an experiment includes, as it says them.
///
/// # Errors
/// If the text is no TOML, or the list is no list.
pub(crate) fn includes(file: &str, text: &str) -> Result<Vec<String>, ExperimentError> {
    let includes: Includes =
        toml::from_str(text).map_err(|error| ExperimentError::of_parser(file, text, &error))?;
    Ok(includes.include)
}

/// Whether a text describes a machine, and no experiment.
pub(crate) fn is_machine(text: &str) -> bool {
    let table: Option<toml::Table> = toml::from_str(text).ok();
    table.is_some_and(|table| table.contains_key("machine") && !table.contains_key("id"))
}

/// The path of an included file: beside the file that includes it.
fn beside(file: &str, name: &str) -> String {
    Path::new(file).with_file_name(name).display().to_string()
}

impl Included {
    /// The text of `file` and of the files that it includes. `read` gives the text of a file.
    ///
    /// # Errors
    /// If a file cannot be read, describes more than a machine, or the experiment has an array of its own
    /// beside a machine.
    pub(crate) fn new(
        file: &str,
        text: &str,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, ExperimentError> {
        let wrong = |key: &str, message: String| Err(ExperimentError::at(file, key, message));
        let mut whole = Self { text: text.to_owned(), files: vec![(file.to_owned(), 1)] };
        let names = includes(file, text)?;
        if !names.is_empty() && tables(file, text)?.contains_key("array") {
            let message = "found [array] beside include; accepted: the arrays of the included files";
            return wrong("array", message.to_owned());
        }
        for (place, name) in names.iter().enumerate() {
            if name.contains('/') || !is_toml(name) || names[..place].contains(name) {
                let accepted =
                    "the names of other files in the same folder, each once, as in [\"fc60.toml\"]";
                return wrong("include", format!("found \"{name}\"; accepted: {accepted}"));
            }
            let path = beside(file, name);
            let machine = match read(&path) {
                Ok(machine) => machine,
                Err(problem) => return wrong("include", format!("found \"{name}\": {problem}")),
            };
            if let Some(key) = tables(&path, &machine)?.keys().find(|key| !MACHINE.contains(&key.as_str())) {
                let message = format!("found a machine with this key; accepted: {}", MACHINE.join(", "));
                return Err(ExperimentError::at(&path, key.as_str(), message));
            }
            whole.files.push((path, 1 + whole.text.matches('\n').count() + 1));
            whole.text.push('\n');
            whole.text.push_str(&machine);
        }
        Ok(whole)
    }

    /// The file that a line of the whole text is from, and the line's number in that file.
    pub(crate) fn origin(&self, line: usize) -> (&str, usize) {
        let (file, first) =
            self.files.iter().rev().find(|(_, first)| *first <= line).unwrap_or(&self.files[0]);
        (file, 1 + line - first)
    }
}

fn is_toml(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// The tables that a machine's file may have.
const MACHINE: [&str; 2] = ["array", "machine"];

fn tables(file: &str, text: &str) -> Result<toml::Table, ExperimentError> {
    toml::from_str(text).map_err(|error| ExperimentError::of_parser(file, text, &error))
}
