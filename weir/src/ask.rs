//! Asks a running server for a verb, and reads its answer.

use serde::de::DeserializeOwned;
use weir_api::{AskError, Server};

use crate::failure::Failure;

/// The server's answer to a GET of `path`.
///
/// # Errors
/// If the server does not answer, or refuses, or if its answer is not the expected one.
pub(crate) async fn get<T: DeserializeOwned>(server: &Server, path: &str) -> Result<T, Failure> {
    read(server, &text(server, path).await?)
}

/// The text at `path` of the server.
///
/// # Errors
/// If the server does not answer, or refuses.
pub(crate) async fn text(server: &Server, path: &str) -> Result<String, Failure> {
    server.get(path).await.map_err(failure)
}

/// Reads the JSON that a server answered.
///
/// A server of another version may leave out a field, or use a word that this program does not know. The
/// program then refuses the whole answer: a table could show only a guess.
///
/// # Errors
/// If the answer is not the expected one. The error names the field that was read last.
pub(crate) fn read<T: DeserializeOwned>(server: &Server, text: &str) -> Result<T, Failure> {
    parse(server, text).map_err(failure)
}

/// As [`read`], for a caller that says more about the error.
///
/// # Errors
/// As [`read`].
pub(crate) fn parse<T: DeserializeOwned>(server: &Server, text: &str) -> Result<T, AskError> {
    serde_json::from_str(text).map_err(|error| {
        let found = match last_field(text, &error) {
            Some(field) => format!("near {field:?}: {error}"),
            None => error.to_string(),
        };
        // The unknown word stands in it as the server wrote it. It is no text for the terminal to obey.
        AskError::NotWeir(server.clone(), found.replace(char::is_control, "?"))
    })
}

/// The name of the last field that begins before the error.
fn last_field<'t>(text: &'t str, error: &serde_json::Error) -> Option<&'t str> {
    let lines_before = text.split_inclusive('\n').take(error.line().checked_sub(1)?);
    let line_begins = lines_before.map(str::len).sum::<usize>();
    let (before, _) = text.get(..line_begins + error.column())?.rsplit_once("\":")?;
    Some(before.rsplit_once('"')?.1)
}

/// The failure of a question. If the server refused, the operator can mend it.
pub(crate) fn failure(error: AskError) -> Failure {
    match error {
        AskError::Refused(why) => Failure::Usage(why),
        error => Failure::Runtime(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use weir_status::{IntervalStatus, PoolSharing, RequestCounters, TargetStatus};

    use super::*;

    fn refusal<T: DeserializeOwned>(text: &str) -> String {
        let server = Server::read("http://127.0.0.1:9810").unwrap();
        read::<T>(&server, text).err().unwrap().to_string()
    }

    #[test]
    fn an_unknown_word_is_refused_with_the_name_of_its_field() {
        for (refused, field) in [
            (refusal::<PoolSharing>(r#"{"total_concurrency":6,"is_probed":true,"case":"new"}"#), "case"),
            (refusal::<PoolSharing>("{\n \"case\": \"new\",\n \"is_probed\": true\n}"), "case"),
            (refusal::<TargetStatus>(r#"{"metric":"new","value":1.0,"unit":"us"}"#), "metric"),
            (refusal::<Vec<TargetStatus>>(r#"[{"value":1.0,"unit":"us","metric":"new"}]"#), "metric"),
            (refusal::<TargetStatus>(r#"{"metric":"p95","value":1.0,"unit":"new"}"#), "unit"),
            (refusal::<IntervalStatus>(r#"{"age_s":1.0,"fit":"new","fit_value":null}"#), "fit"),
            (refusal::<RequestCounters>(r#"{"kind":"new","count":1}"#), "kind"),
        ] {
            let named = format!("near \"{field}\": unknown ");
            assert!(refused.contains(&named) && refused.contains("new"), "{refused}");
        }
    }

    #[test]
    fn an_answer_that_is_no_json_is_refused_without_a_field() {
        let refused = refusal::<PoolSharing>("<html>\u{1b}");
        assert!(refused.contains("expected value at line 1") && !refused.contains("near"), "{refused}");
        let refused = refusal::<PoolSharing>("{\"case\":\"\\u001b[2J\"}");
        assert!(refused.contains("near \"case\"") && !refused.contains('\u{1b}'), "{refused}");
    }
}
