//! A node with its server, and what tests do with one: write, read, and make up data.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use bytes::Bytes;
use weir_node::{Credentials, ErrorKind, Node, NodeError, Note, ObjectName, PartialId, Reader, Writer};
use weir_node_servers::Server;

/// The bytes of the pieces that tests write.
pub(crate) const PIECE: usize = 1 << 20;

/// A node, and what keeps it alive.
pub(crate) struct Bench {
    pub(crate) node: Node,
    /// The folder of its objects, if they are files.
    pub(crate) root: Option<PathBuf>,
    pub(crate) resumes: bool,
    pub(crate) server: Option<Server>,
    pub(crate) _folder: Option<tempfile::TempDir>,
}

impl Bench {
    pub(crate) fn file() -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let location = format!("file://{}", folder.path().display());
        let node = Node::open(location.parse().unwrap(), None).unwrap();
        let root = Some(folder.path().to_owned());
        Ok(Self { node, root, resumes: true, server: None, _folder: Some(folder) })
    }

    pub(crate) fn webdav() -> Result<Self, String> {
        let server = Server::webdav()?;
        let root = Some(server.root());
        Ok(Self { node: node_on(&server), root, resumes: false, server: Some(server), _folder: None })
    }

    /// A node on a server that all tests share, because it takes seconds to start.
    pub(crate) fn s3() -> Result<Self, String> {
        static SHARED: OnceLock<Result<Mutex<Server>, String>> = OnceLock::new();
        let server = SHARED.get_or_init(|| Server::s3().map(Mutex::new)).as_ref().map_err(Clone::clone)?;
        let node = node_on(&server.lock().unwrap());
        Ok(Self { node, root: None, resumes: true, server: None, _folder: None })
    }

    pub(crate) fn sftp() -> Result<Self, String> {
        let server = Server::sftp()?;
        let root = Some(server.root());
        Ok(Self { node: node_on(&server), root, resumes: true, server: Some(server), _folder: None })
    }
}

/// The node on a server.
pub(crate) fn node_on(server: &Server) -> Node {
    let credentials = server.credentials().map(|path| Credentials::read(&path).unwrap());
    let ssh = server.ssh().map_or_else(|| "ssh".into(), |path| path.as_os_str().to_owned());
    Node::open_with_ssh(server.location().parse().unwrap(), credentials.as_ref(), ssh).unwrap()
}

/// Runs a check on a bench, or notes that there can be none.
pub(crate) fn run(bench: Result<Bench, String>, claim: &str, check: impl AsyncFnOnce(&Bench)) {
    match bench {
        Ok(bench) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.unwrap().block_on(check(&bench));
        }
        Err(why) => weir_guest::skipped(concat!(env!("CARGO_TARGET_TMPDIR"), "/skipped"), claim, &why),
    }
}

/// A name that no other test uses.
pub(crate) fn name(text: &str) -> ObjectName {
    text.parse().unwrap()
}

pub(crate) fn id(text: &str) -> PartialId {
    text.parse().unwrap()
}

/// Bytes without a pattern, others for each seed.
pub(crate) fn data(seed: u64, length: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

/// Writes the bytes in pieces, from where the writer is.
pub(crate) async fn write(writer: &mut Writer, data: &Bytes, notes: &mut Vec<Note>) -> Result<(), NodeError> {
    let mut rest = data.clone();
    while !rest.is_empty() {
        let piece = rest.split_to(PIECE.min(rest.len()));
        let written = writer.write(piece).await;
        notes.extend(writer.take_notes());
        written?;
    }
    Ok(())
}

/// Writes an object whole.
pub(crate) async fn put(
    node: &Node,
    name: &ObjectName,
    id: &PartialId,
    data: &Bytes,
) -> Result<(), NodeError> {
    let mut writer = node.begin(name, id, Some(data.len() as u64)).await?;
    write(&mut writer, data, &mut Vec::new()).await?;
    writer.finish().await
}

/// What a reader still has to say.
pub(crate) async fn rest(mut reader: Reader) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(piece) = reader.next().await.unwrap() {
        assert!(!piece.is_empty());
        bytes.extend(piece);
    }
    bytes
}

pub(crate) async fn get(node: &Node, name: &ObjectName, from: u64) -> Vec<u8> {
    rest(node.read(name, from).await.unwrap()).await
}

/// The sort of an error. The text must be one line.
pub(crate) fn kind<T>(result: Result<T, NodeError>) -> ErrorKind {
    let Err(error) = result else { panic!("that succeeded") };
    let text = error.to_string();
    assert!(!text.is_empty() && !text.contains('\n') && text.chars().count() <= 600, "{text}");
    println!("{:?}: {text}", error.kind());
    error.kind()
}
