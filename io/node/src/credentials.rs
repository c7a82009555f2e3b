//! Credentials, from a small file that only its owner can read.
//!
//! No message repeats anything of the file but the names of its keys. A parser's own message would quote the
//! line with the mistake in it, and that line may be the secret.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use thiserror::Error;

/// The largest file, in bytes. A session token has some thousand.
const LARGEST: u64 = 16 << 10;
/// The bits of a mode that are about users other than the owner.
const OTHERS: u32 = 0o077;
/// What the file may contain.
const KEYS: &str = "access_key_id and secret_access_key, with session_token or not (S3), or user and password \
                    (WebDAV), each a text";

/// A file of credentials that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("credentials {path}: {why}")]
pub struct CredentialsError {
    path: String,
    why: String,
}

/// What a node of S3 or WebDAV asks for. A node of SFTP uses ssh's own keys, and a directory needs nothing.
#[derive(Clone)]
pub struct Credentials(pub(crate) Secret);

/// The two sorts of credentials.
#[derive(Clone)]
pub(crate) enum Secret {
    S3 { access_key_id: String, secret_access_key: String, session_token: Option<String> },
    WebDav { user: String, password: String },
}

impl Credentials {
    /// Reads a TOML file with the keys `access_key_id`, `secret_access_key` and perhaps `session_token`, or
    /// with the keys `user` and `password`.
    ///
    /// # Errors
    /// If it is no regular file of at most 16 KiB, if users other than its owner may use it, or if it has
    /// other keys.
    pub fn read(path: &Path) -> Result<Self, CredentialsError> {
        let error = |why| CredentialsError { path: path.display().to_string(), why };
        open_secret(path).and_then(|text| parse(&text)).map_err(error)
    }
}

impl fmt::Debug for Credentials {
    /// The sort, and never a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Secret::S3 { .. } => f.write_str("Credentials(S3)"),
            Secret::WebDav { .. } => f.write_str("Credentials(WebDAV)"),
        }
    }
}

/// The text of a regular file that only its owner can read. The mode is that of the open file, whatever the
/// path leads to later. A pipe does not make this wait for its writer.
fn open_secret(path: &Path) -> Result<String, String> {
    let open = |path| -> std::io::Result<(File, std::fs::Metadata)> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        Ok((file, metadata))
    };
    let (file, metadata) = open(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("found something that is no regular file; accepted: a TOML file".to_owned());
    }
    let mode = metadata.mode() & 0o7777;
    if mode & OTHERS != 0 {
        return Err(format!(
            "found mode {mode:04o}, by which others than its owner may use it; accepted: 0600 or 0400"
        ));
    }
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > LARGEST {
        return Err(format!("found more than {LARGEST} bytes; accepted: {KEYS}"));
    }
    Ok(text)
}

fn parse(text: &str) -> Result<Credentials, String> {
    let table = text.parse::<toml::Table>().map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        format!("found no TOML in line {}; accepted: {KEYS}", 1 + before.matches('\n').count())
    })?;
    let (mut access_key_id, mut secret_access_key, mut session_token) = (None, None, None);
    let (mut user, mut password) = (None, None);
    for (key, value) in table {
        let place = match key.as_str() {
            "access_key_id" => &mut access_key_id,
            "secret_access_key" => &mut secret_access_key,
            "session_token" => &mut session_token,
            "user" => &mut user,
            "password" => &mut password,
            _ => return Err(format!("found the key {:?}; accepted: {KEYS}", bounded(&key))),
        };
        match value {
            toml::Value::String(text) if is_plain(&text) => *place = Some(text),
            _ => return Err(format!("found something else than a plain text at {key}; accepted: {KEYS}")),
        }
    }
    match (access_key_id, secret_access_key, session_token, user, password) {
        (Some(access_key_id), Some(secret_access_key), session_token, None, None) => {
            Ok(Credentials(Secret::S3 { access_key_id, secret_access_key, session_token }))
        }
        // HTTP ends the user there.
        (None, None, None, Some(user), Some(_)) if user.contains(':') => {
            Err("found a user with a colon; accepted: a user without one".to_owned())
        }
        (None, None, None, Some(user), Some(password)) => Ok(Credentials(Secret::WebDav { user, password })),
        _ => Err(format!("found other keys together; accepted: {KEYS}")),
    }
}

/// Whether a text can stand in a header of HTTP.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

fn bounded(key: &str) -> String {
    key.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read(text: &str, mode: u32) -> Result<Credentials, CredentialsError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        std::fs::set_permissions(file.path(), PermissionsExt::from_mode(mode)).unwrap();
        Credentials::read(file.path())
    }

    #[test]
    fn the_keys_say_the_sort_and_debug_shows_no_secret() {
        let s3 = read("access_key_id = \"AK\"\nsecret_access_key = \"hidden\"\n", 0o600).unwrap();
        assert_eq!(format!("{s3:?}"), "Credentials(S3)");
        let webdav = read("user = \"u\"\npassword = \"hidden\"\n", 0o400).unwrap();
        assert_eq!(format!("{webdav:?}"), "Credentials(WebDAV)");
    }

    #[test]
    fn a_file_that_others_may_use_is_refused() {
        for mode in [0o640, 0o604, 0o660, 0o610] {
            let error = read("user = \"u\"\npassword = \"p\"\n", mode).unwrap_err().to_string();
            assert!(error.contains(&format!("{mode:04o}")) && error.contains("accepted: 0600"), "{error}");
        }
    }

    #[test]
    fn a_mistake_is_named_and_the_secret_is_not() {
        for text in [
            "user = \"u\"\npassword = \"hidden\"\nother = \"hidden\"\n",
            "user = \"u\"\npassword = \"hidden\n",
            "user = \"u\"\npassword = [\"hidden\"]\n",
            "password = \"hidden\"\n",
            "access_key_id = \"hidden\"\nsecret_access_key = \"hidden\"\nuser = \"hidden\"\n",
            "user = \"u:v\"\npassword = \"hidden\"\n",
            &format!("user = \"{}\"\n", "hidden".repeat(4_000)),
        ] {
            let error = read(text, 0o600).unwrap_err().to_string();
            assert!(error.contains("accepted: ") && !error.contains("hidden"), "{error}");
        }
    }

    #[test]
    fn something_that_is_no_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Credentials::read(folder.path()).is_err());
    }
}
