//! For tests and experiments: real servers of S3, WebDAV and SFTP, each with its data in a folder that is
//! removed.
//!
//! A server that stays behind would keep its port and its folder. Each one ends when its standard input
//! does, so it also ends when the test is killed. A server says when it listens, so nobody waits and hopes.
//!
//! `scripts/setup test` installs them: `moto` and `wsgidav` into `target/node-servers`, and `sshd`.

mod process;
mod ssh;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use process::{Process, python};

/// The user and the password of the WebDAV server.
const WEBDAV: &str = "user = \"weir\"\npassword = \"of the tests\"\n";
/// Any keys do for the S3 server.
const S3: &str = "access_key_id = \"weir\"\nsecret_access_key = \"of the tests\"\n";

/// A server that runs until this is dropped.
pub struct Server {
    process: Process,
    folder: TempDir,
    location: String,
    ssh: Option<PathBuf>,
}

impl Server {
    /// `moto`, with the bucket `bulk`.
    ///
    /// # Errors
    /// Why there can be none on this machine.
    ///
    /// # Panics
    /// If it is there and does not start.
    pub fn s3() -> Result<Self, String> {
        let folder = folder();
        let (process, port) = python("moto", include_str!("s3.py"), folder.path())?;
        let location = format!("s3://bulk/of/tests?endpoint=http://127.0.0.1:{port}");
        Ok(Self { process, folder, location, ssh: None }.with_credentials(S3))
    }

    /// `wsgidav`.
    ///
    /// # Errors
    /// Why there can be none on this machine.
    ///
    /// # Panics
    /// If it is there and does not start.
    pub fn webdav() -> Result<Self, String> {
        let folder = folder();
        std::fs::create_dir_all(folder.path().join("root/bulk")).expect("the folder is ours");
        let (process, port) = webdav_of(folder.path())?;
        Ok(Self { process, folder, location: webdav_location(port), ssh: None }.with_credentials(WEBDAV))
    }

    /// `sshd`, which lets the current user in by a key of its own.
    ///
    /// # Errors
    /// Why there can be none on this machine.
    ///
    /// # Panics
    /// If it is there and does not start.
    pub fn sftp() -> Result<Self, String> {
        let folder = folder();
        let root = folder.path().join("root");
        std::fs::create_dir(&root).expect("the folder is ours");
        let (process, port) = ssh::start(folder.path())?;
        let location = format!("sftp://127.0.0.1:{port}{}", root.display());
        let ssh = Some(folder.path().join("ssh"));
        Ok(Self { process, folder, location, ssh })
    }

    /// The URL of the node on this server.
    #[must_use]
    pub fn location(&self) -> &str {
        &self.location
    }

    /// The file of the credentials for it. SFTP has none.
    #[must_use]
    pub fn credentials(&self) -> Option<PathBuf> {
        let path = self.folder.path().join("credentials.toml");
        path.exists().then_some(path)
    }

    /// For SFTP, the program to run for ssh. It has the key and knows the host.
    #[must_use]
    pub fn ssh(&self) -> Option<&Path> {
        self.ssh.as_deref()
    }

    /// The folder of the node, if its objects are files.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        let bulk = self.folder.path().join("root/bulk");
        if bulk.exists() { bulk } else { self.folder.path().join("root") }
    }

    /// `host:port` of the server.
    ///
    /// # Panics
    /// If its URL has none.
    #[must_use]
    pub fn address(&self) -> String {
        let at = self.location.find("127.0.0.1:").expect("each server listens there");
        let rest = &self.location[at..];
        rest[..rest.find('/').unwrap_or(rest.len())].to_owned()
    }

    /// Kills a server of S3 or WebDAV with SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts `wsgidav` again after its end, with the same files, at another port.
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart_webdav(&mut self) {
        let (process, port) = webdav_of(self.folder.path()).expect("it was there before");
        self.process = process;
        self.location = webdav_location(port);
    }

    /// Ends the server, as if its host were gone.
    pub fn stop(&mut self) {
        self.process.stop();
    }

    fn with_credentials(self, text: &str) -> Self {
        write(&self.folder.path().join("credentials.toml"), text, 0o600);
        self
    }
}

fn webdav_of(folder: &Path) -> Result<(Process, u16), String> {
    python("wsgidav", include_str!("webdav.py"), folder)
}

fn webdav_location(port: u16) -> String {
    format!("webdav://127.0.0.1:{port}/bulk/")
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("there is a folder for temporary files")
}

/// Writes a file with this mode.
fn write(path: &Path, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).expect("the folder is ours");
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("the file is ours");
}
