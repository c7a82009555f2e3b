//! Text for a terminal, in which nothing is a command to it.
//!
//! Names come from files, from initiators, and from whatever program answers at an address. A character such
//! as ESC in them would move the cursor or hide lines. So the verbs that print such names print them through
//! [`printable`].

use std::fmt::Write;
use std::io::{self, IsTerminal};

use rustix::termios::tcgetwinsize;

/// The columns of the terminal that is standard output; `None`: it is none, and nothing is to be cut.
pub(crate) fn width() -> Option<u16> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    // A terminal that nobody has given a size says 0.
    tcgetwinsize(&stdout).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
}

/// The text with its control characters escaped, such as `\u{1b}`. Line ends stay.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() && character != '\n' {
            let _ = write!(printable, "{}", character.escape_default()); // a string takes everything
        } else {
            printable.push(character);
        }
    }
    printable
}

/// The JSON with its control characters escaped as JSON has it. Its own writer leaves some in strings, such
/// as U+009B, which begins a command to many terminals.
pub(crate) fn printable_json(json: &str) -> String {
    let mut printable = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_control() && character != '\n' {
            let _ = write!(printable, "\\u{:04x}", u32::from(character)); // a string takes everything
        } else {
            printable.push(character);
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_json_without_what_a_terminal_would_obey() {
        let name = "a\u{1b}[2J\u{9b}\u{7f}é";
        let shown = printable_json(&serde_json::to_string(name).unwrap());
        assert!(!shown.contains(char::is_control), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), name);
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_lines_stay() {
        let table = "│ a\u{1b}[2J\r │\n│ é\t\u{7f}\u{9b} │\n";
        let shown = "│ a\\u{1b}[2J\\r │\n│ é\\t\\u{7f}\\u{9b} │\n";
        assert_eq!(printable(table), shown);
    }
}
