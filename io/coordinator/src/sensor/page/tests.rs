//! Pages of agents: as they are, odd, and of any text.

use proptest::prelude::*;

use super::*;

/// A page as an agent serves it. Each row: its labels, whether the device is there, bytes read and written.
fn page(rows: &[(&str, u64, u64, u64)]) -> String {
    let mut text = String::from("# HELP weir_node_device_present 1: the block device is there.\n");
    for (labels, present, read, written) in rows {
        text += &format!("{PRESENT}{{{labels}}} {present}\n");
        text += &format!("weir_node_device_reads_total{{{labels}}} 7\n");
        if *present == 1 {
            text += &format!("{READ}{{{labels}}} {read}\n{WRITTEN}{{{labels}}} {written}\n");
        }
    }
    text + "# EOF\n"
}

const A: &str = "path=\"/srv/a\",device=\"sda\"";
const B: &str = "path=\"/srv/my \\\"b\\\"\",device=\"sdb\"";
const C: &str = "device=\"sdc\"";

fn found(page: &str, choice: Option<&str>) -> (String, u64, u64) {
    let device = device(page, choice).unwrap();
    (device.name, device.bytes.read, device.bytes.written)
}

fn why(page: &str, choice: Option<&str>) -> String {
    device(page, choice).unwrap_err().to_string()
}

#[test]
fn the_only_device_counts_and_of_several_the_one_that_is_chosen() {
    let rows = [(A, 1, 10, 20), (B, 1, 30, 40), (C, 1, 50, 60)];
    assert_eq!(found(&page(&rows[..1]), None), ("sda".to_owned(), 10, 20));
    let all = page(&rows);
    assert_eq!(found(&all, Some("/srv/my \"b\"")), ("sdb".to_owned(), 30, 40));
    assert_eq!(found(&all, Some("sdc")), ("sdc".to_owned(), 50, 60));
    assert_eq!(found(&all, Some("sda")), ("sda".to_owned(), 10, 20));
    let accepted = "accepted: a url with one of #sdc, #/srv/a, #/srv/my \"b\"";
    assert_eq!(why(&all, None), format!("found 3 devices; {accepted}"));
    assert_eq!(why(&all, Some("/srv/c")), format!("found no #/srv/c; {accepted}"));
}

#[test]
fn a_device_that_is_not_there_is_an_error_that_says_so() {
    let gone = page(&[(A, 0, 0, 0), (C, 1, 1, 1)]);
    let expected = "found no counters of the device sda of /srv/a; accepted: a device that is there";
    assert_eq!(why(&gone, Some("/srv/a")), expected);
    let moved = page(&[(A, 0, 0, 0), ("path=\"/srv/b\",device=\"sda\"", 1, 5, 6)]);
    assert_eq!(found(&moved, Some("sda")).1, 5, "under another directory it is there");
}

#[test]
fn a_page_of_another_program_is_no_agents() {
    for text in ["", "<html>what</html>", "# EOF\n", "node_disk_read_bytes_total{device=\"sda\"} 7\n"] {
        assert_eq!(
            why(text, None),
            "found no block device on the page; accepted: the metrics of weir node agent"
        );
    }
}

#[test]
fn an_odd_line_about_a_device_is_an_error_and_no_guess() {
    let good = page(&[(A, 1, 10, 20)]).replace("# EOF\n", "");
    for odd in [
        format!("{READ}{{{A}}} 11\n"),
        format!("{READ}{{{C}}} -1\n"),
        format!("{READ}{{{C}}} 1.5\n"),
        format!("{READ}{{{C}}} NaN\n"),
        format!("{READ}{{{C}}} 18446744073709551616\n"),
        format!("{READ}{{{C}}}\n"),
        format!("{READ}{{{C}\n"),
        format!("{READ}{{path=\"/srv/a\"}} 1\n"),
        format!("{READ}{{device=\"sd\n"),
        format!("{READ}{{device=\"\\x\"}} 1\n"),
        format!("{READ}{{}} 1\n"),
    ] {
        let why = why(&format!("{good}{}\n# EOF\n", odd.trim_end()), Some("/srv/a"));
        assert!(why.contains(READ) && why.contains("accepted: each counter of a device once"), "{odd}{why}");
        assert_eq!(why.lines().count(), 1, "{why}");
        assert!(why.len() < 200, "{why}");
    }
}

#[test]
fn a_page_that_is_cut_short_tells_nothing_wherever_it_is_cut() {
    let whole = page(&[(A, 1, 10_000, 20_000)]);
    for length in 0..whole.len() - 1 {
        assert!(device(&whole[..length], None).is_err(), "{}", &whole[..length]);
    }
    let expected = "found a page that is cut short; accepted: a page whose last line is # EOF";
    assert_eq!(why(whole.strip_suffix("0\n# EOF\n").unwrap(), None), expected);
}

/// Texts of the words that the reader looks for, and of anything else.
fn odd_text() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        PRESENT,
        READ,
        WRITTEN,
        "{",
        "}",
        "} ",
        "path=\"",
        "device=\"",
        "/srv/a",
        "sda",
        "\"",
        "\",",
        "\\",
        "\\n",
        "\n",
        " 1\n",
        " 0\n",
        "99999999999999999999",
        "# ",
        "# EOF\n",
        "=",
        "é",
        "\r\n",
        "\0",
    ]);
    let piece = prop_oneof![6 => words.prop_map(str::to_owned), 1 => ".{0,8}"];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_text_is_a_device_or_a_reason(text in odd_text(), choice in ".{0,8}") {
        for choice in [None, Some(&*choice), Some("/srv/a"), Some("sda")] {
            match device(&text, choice) {
                Ok(_) => prop_assert!([PRESENT, READ, WRITTEN].iter().all(|metric| text.contains(metric))),
                Err(unfit) => prop_assert!(!unfit.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn what_an_agent_says_is_what_is_read(path in "/[^\\\\\"\n\r]{0,20}", read: u64, written: u64) {
        let labels = format!("path=\"{path}\",device=\"sda\"");
        let text = page(&[(&labels, 1, read, written)]);
        prop_assert_eq!(found(&text, Some(&path)), ("sda".to_owned(), read, written));
    }
}
