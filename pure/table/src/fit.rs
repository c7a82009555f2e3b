//! Tables that fit the terminal.
//!
//! A table that is too wide for a terminal gives way in this order, and only as far as it must:
//!
//! 1. Cells are broken into lines, between words.
//! 2. Words of more than [`LONGEST_WORD`] characters, which are names, lose their middle:
//!    `oltp-databa…-replica`. They keep as many more characters as it takes to tell them apart.
//! 3. Columns go, in an order that the table states. A line below says which.
//!
//! The library could break cells anywhere, and make any table fit. It would break a latency into its digits.

use std::collections::BTreeSet;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, TableStyle, Width};

/// The most characters of a word in a table that has to give way, if no two words become alike by it.
const LONGEST_WORD: usize = 20;

/// What the library adds to the content of a column: a space on both sides.
const PADDING: usize = 2;

/// A terminal that is narrower, or says that it has no width at all, is taken to have this one.
const LEAST_WIDTH: u16 = 20;

/// A table whose numbers are at the right, for a terminal with `width` columns; `None`: as wide as it is.
/// `spare` are the columns that may go, the first of them first.
pub fn table(
    style: TableStyle,
    header: &[&str],
    rows: impl IntoIterator<Item = impl IntoIterator<Item = String>>,
    is_text: impl Fn(usize) -> bool,
    spare: &[usize],
    width: Option<u16>,
) -> String {
    let mut rows: Vec<Vec<String>> = rows.into_iter().map(|row| row.into_iter().collect()).collect();
    let mut shown: Vec<usize> = (0..header.len()).collect();
    let mut gone = Vec::new();
    let width = width.map(|width| width.max(LEAST_WIDTH)).filter(|width| {
        width_of(shown.iter().map(|column| widest(header, &rows, *column, line))) > usize::from(*width)
    });
    if let Some(width) = width {
        let longest = longest_word(&rows);
        rows.iter_mut().flatten().for_each(|cell| *cell = shortened(cell, longest));
        let mut spare = spare.iter();
        while least(header, &rows, &shown) > usize::from(width)
            && let Some(column) = spare.next()
        {
            shown.retain(|other| other != column);
            gone.push(header[*column]);
        }
    }
    let mut table = Table::new();
    table.load_style(style).set_header(shown.iter().map(|column| header[*column]));
    table.add_rows(rows.iter().map(|row| shown.iter().filter_map(|column| row.get(*column))));
    for (column, place) in table.column_iter_mut().zip(&shown) {
        column.set_cell_alignment(if is_text(*place) { CellAlignment::Left } else { CellAlignment::Right });
    }
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        // In a terminal that is narrower still, words are broken, too.
        let is_room = least(header, &rows, &shown) <= usize::from(width);
        for (column, place) in table.column_iter_mut().zip(&shown).filter(|_| is_room) {
            let least = widest(header, &rows, *place, word) + PADDING;
            let least = u16::try_from(least).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
        }
    }
    match gone.is_empty() {
        true => table.to_string(),
        false => format!("{table}\nno room for: {}", gone.join(", ")),
    }
}

/// The width of the table if each of its words is whole.
fn least(header: &[&str], rows: &[Vec<String>], shown: &[usize]) -> usize {
    width_of(shown.iter().map(|column| widest(header, rows, *column, word)))
}

/// The width of a table whose columns have contents of these widths, with a space between two columns.
fn width_of(contents: impl Iterator<Item = usize>) -> usize {
    contents.map(|content| content + PADDING + 1).sum::<usize>().saturating_sub(1)
}

/// The most characters of any part of a column's cells, its header among them.
fn widest(header: &[&str], rows: &[Vec<String>], column: usize, part: fn(&str) -> usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| part(cell));
    cells.chain([part(header[column])]).max().unwrap_or(0)
}

fn line(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

fn word(text: &str) -> usize {
    text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0)
}

/// How many characters words keep, at least [`LONGEST_WORD`], so that those that differ still do.
fn longest_word(rows: &[Vec<String>]) -> usize {
    let words = rows.iter().flatten().flat_map(|cell| cell.split(' '));
    let words: BTreeSet<&str> = words.filter(|word| word.chars().count() > LONGEST_WORD).collect();
    let whole = words.iter().map(|word| word.chars().count()).max().unwrap_or(LONGEST_WORD);
    let are_told_apart = |longest: &usize| {
        let shortened: BTreeSet<String> = words.iter().map(|word| shorten(word, *longest)).collect();
        shortened.len() == words.len()
    };
    (LONGEST_WORD..whole).find(are_told_apart).unwrap_or(whole)
}

/// The text with the middle of each word of more than `longest` characters left out.
fn shortened(text: &str, longest: usize) -> String {
    if word(text) <= longest {
        return text.to_owned();
    }
    text.split(' ').map(|word| shorten(word, longest)).collect::<Vec<_>>().join(" ")
}

/// The word with at most `longest` characters.
fn shorten(word: &str, longest: usize) -> String {
    let characters: Vec<char> = word.chars().collect();
    if characters.len() <= longest {
        return word.to_owned();
    }
    // Names of one kind differ at their ends more often than in the middle.
    let head = longest / 2 + 1;
    let tail = longest - head - 1;
    let (head, tail) = (&characters[..head], &characters[characters.len() - tail..]);
    head.iter().chain(&['…']).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use comfy_table::presets;

    use super::*;

    const HEADER: [&str; 5] = ["volume", "pool", "IO/s", "mean", "why"];

    fn shown(name: &str, width: Option<u16>) -> String {
        let row = [name, "array1", "12345", "12.50 ms", "its own max_iops holds it back"].map(str::to_owned);
        table(presets::UTF8_HORIZONTAL_ONLY, &HEADER, [row], |column| column < 2, &[1, 2], width)
    }

    fn widest_line(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap()
    }

    #[test]
    fn a_table_that_fits_or_goes_to_no_terminal_is_left_as_it_is() {
        let name = "oltp-database-of-the-first-replica";
        let whole = shown(name, None);
        assert!(whole.contains(name) && widest_line(&whole) > 90, "{whole}");
        assert_eq!(shown(name, Some(u16::try_from(widest_line(&whole)).unwrap())), whole);
    }

    #[test]
    fn words_move_to_further_lines_before_anything_is_left_out() {
        let narrower = shown("db", Some(60));
        assert!(widest_line(&narrower) <= 60, "{narrower}");
        for word in ["db", "array1", "12345", "12.50 ms", "max_iops", "holds", "back"] {
            assert!(narrower.contains(word), "{word} in\n{narrower}");
        }
        assert!(!narrower.contains("no room for"), "{narrower}");
    }

    #[test]
    fn long_names_lose_their_middle_and_columns_go_in_the_order_that_is_stated() {
        let name = "oltp-database-of-the-first-replica";
        let narrower = shown(name, Some(64));
        assert!(narrower.contains("oltp-databa…-replica"), "{narrower}");
        let narrow = shown(name, Some(50));
        assert!(widest_line(&narrow) <= 50 && narrow.ends_with("\nno room for: pool"), "{narrow}");
        let narrowest = shown(name, Some(44));
        assert!(narrowest.ends_with("\nno room for: pool, IO/s"), "{narrowest}");
        assert!(narrowest.contains("ms") && !narrowest.contains("12345"), "{narrowest}");
    }

    #[test]
    fn names_that_differ_in_the_middle_alone_stay_different() {
        let names =
            ["database-of-customer-17-in-the-first-site", "database-of-customer-18-in-the-first-site"];
        let rows = names.map(|name| [name, "array1", "12345", "12.50 ms", "-"].map(str::to_owned));
        for width in 1..120 {
            let shown =
                table(presets::NOTHING, &HEADER, rows.clone(), |column| column < 2, &[1, 2], Some(width));
            let lines = || shown.split("\nno room for").next().unwrap().lines();
            let first: Vec<_> = lines().filter(|line| line.contains("datab")).collect();
            assert!(widest_line(lines().next().unwrap()) <= usize::from(width.max(LEAST_WIDTH)), "{shown}");
            if width >= 64 {
                assert!(first.len() == 2 && first[0] != first[1], "{width}:\n{shown}");
            }
        }
    }

    #[test]
    fn at_any_width_no_line_is_wider_than_the_terminal() {
        for width in 1..120 {
            let shown = shown("oltp-database-of-the-first-replica", Some(width));
            // The line below is a sentence, which the terminal itself wraps.
            let table = shown.split("\nno room for").next().unwrap();
            assert!(widest_line(table) <= usize::from(width.max(LEAST_WIDTH)), "{width}:\n{shown}");
        }
    }
}
