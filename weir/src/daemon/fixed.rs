//! Values that only a restart can change: which of them a reload would change, with both values. To name all
//! of them at once would leave the operator to compare the files.

use std::fmt::Display;

use crate::failure::Failure;

/// A value that is fixed while the process runs: its key, and its text if it is there.
pub(crate) type Fixed = (String, Option<String>);

/// A fixed value.
pub(crate) fn fixed(key: impl Into<String>, value: Option<impl Display>) -> Fixed {
    (key.into(), value.map(|value| value.to_string()))
}

/// Refuses a reload that changes a fixed value, with a line for each. Keys that are only in one of the two
/// are none of these.
///
/// # Errors
/// If a value differs.
pub(crate) fn refuse_changes(in_force: Vec<Fixed>, new: &[Fixed]) -> Result<(), Failure> {
    let show =
        |value: &Option<String>| value.as_ref().map_or("nothing".to_owned(), |text| format!("{text:?}"));
    let difference = |(key, now): Fixed| {
        let (_, found) = new.iter().find(|(other, found)| *other == key && *found != now)?;
        let (found, now) = (show(found), show(&now));
        Some(format!("{key}: cannot change while it runs: found {found}; accepted: {now}, or a restart"))
    };
    let differences: Vec<_> = in_force.into_iter().filter_map(difference).collect();
    if differences.is_empty() { Ok(()) } else { Err(Failure::usage(differences.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_that_differs_is_named_with_both_and_no_other() {
        let values = |a, b: Option<&str>| vec![fixed("t.a", Some(a)), fixed("t.b", b)];
        assert!(refuse_changes(values(1, None), &values(1, None)).is_ok());
        let refused = refuse_changes(values(1, Some("x")), &values(1, None)).unwrap_err().to_string();
        assert_eq!(refused, "t.b: cannot change while it runs: found nothing; accepted: \"x\", or a restart");
        let refused = refuse_changes(values(1, Some("x")), &values(2, None)).unwrap_err().to_string();
        assert!(refused.starts_with("t.a: cannot change while it runs: found \"2\"; accepted: \"1\", "));
        assert_eq!(refused.lines().count(), 2, "{refused}");
        assert!(refuse_changes(values(1, None), &[fixed("t.c", Some(3))]).is_ok());
    }
}
