//! Text for a terminal, in which nothing is a command to it.
//!
//! Names come from files, from initiators, and from whatever program answers at an address. A character such
//! as ESC in them would move the cursor or hide lines. So the verbs that print such names print them through
//! [`printable`].

use std::fmt::Write;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_lines_stay() {
        let table = "│ a\u{1b}[2J\r │\n│ é\t\u{7f}\u{9b} │\n";
        let shown = "│ a\\u{1b}[2J\\r │\n│ é\\t\\u{7f}\\u{9b} │\n";
        assert_eq!(printable(table), shown);
    }
}
