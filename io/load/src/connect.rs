//! Makes a socket in the transmission phase from a target.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use weir_nbd::client::{ClientHandshake, Connecting, HandshakeError, RemoteExport};
use weir_nbd::wire::transmission_flag;

use crate::{Address, LoadError, LoadSpec, Target};

/// How long a server may take for the handshake.
const HANDSHAKE_SECONDS: u64 = 10;
/// The largest payload that a server accepts if it does not tell its block sizes (NBD protocol, "Block
/// sizes").
const DEFAULT_MAX_PAYLOAD: u32 = 32 << 20;

/// A socket of either kind. The dynamic call for each system call costs nothing beside the system call.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Socket for T {}

/// A connection that is ready for requests.
pub(crate) struct Connected {
    pub(crate) socket: Box<dyn Socket>,
    pub(crate) export: RemoteExport,
    /// Bytes that the server sent directly behind the handshake; a sane server sends none.
    pub(crate) rest: Vec<u8>,
}

/// Connects to `target`.
pub(crate) async fn connect(target: &Target, structured_replies: bool) -> Result<Connected, LoadError> {
    let limit = Duration::from_secs(HANDSHAKE_SECONDS);
    let open = async {
        let socket =
            open(target).await.map_err(|source| LoadError::Connect { target: target.to_string(), source })?;
        shake_hands(socket, target, structured_replies).await
    };
    let silent = |_| LoadError::Silent { target: target.to_string(), seconds: HANDSHAKE_SECONDS };
    tokio::time::timeout(limit, open).await.map_err(silent)?
}

/// How many blocks of the range of `spec` lie in `export`.
pub(crate) fn usable_blocks(spec: &LoadSpec, export: &RemoteExport) -> Result<u64, LoadError> {
    let refuse = |field, found: String, accepted: String| {
        Err(LoadError::Export { target: spec.target.to_string(), field, found, accepted })
    };
    let has = |flag| export.flags & transmission_flag::HAS_FLAGS != 0 && export.flags & flag != 0;
    if spec.read_percent < 100 && has(transmission_flag::READ_ONLY) {
        return refuse("read_percent", spec.read_percent.to_string(), "100, as it is read-only".to_owned());
    }
    if let Some(every) = spec.flush_every
        && !has(transmission_flag::SEND_FLUSH)
    {
        return refuse("flush_every", every.to_string(), "no flushes".to_owned());
    }
    let (least, most) = payload_limits(export);
    if spec.block_bytes > most || !spec.block_bytes.is_multiple_of(least) {
        let accepted = format!("multiples of {least} up to {most}");
        return refuse("block_bytes", spec.block_bytes.to_string(), accepted);
    }
    if !spec.offset.is_multiple_of(u64::from(least)) {
        return refuse("offset", spec.offset.to_string(), format!("multiples of {least}"));
    }
    let room = export.size.saturating_sub(spec.offset);
    if let Some(length) = spec.length.filter(|length| *length > room) {
        let accepted = format!("at most {room}: it has {} bytes and offset is {}", export.size, spec.offset);
        return refuse("length", length.to_string(), accepted);
    }
    match spec.length.unwrap_or(room) / u64::from(spec.block_bytes) {
        0 => {
            let accepted =
                format!("at most {room}: it has {} bytes and offset is {}", export.size, spec.offset);
            refuse("block_bytes", spec.block_bytes.to_string(), accepted)
        }
        blocks => Ok(blocks),
    }
}

/// The number of bytes that requests must be multiples of, and the most bytes that a request may transfer.
pub(crate) fn payload_limits(export: &RemoteExport) -> (u32, u32) {
    export.block.map_or((1, DEFAULT_MAX_PAYLOAD), |block| (block.minimum.max(1), block.maximum))
}

async fn open(target: &Target) -> io::Result<Box<dyn Socket>> {
    Ok(match target.address() {
        Address::Tcp { host, port } => {
            let socket = TcpStream::connect((host.as_str(), *port)).await?;
            socket.set_nodelay(true)?;
            Box::new(socket)
        }
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
    })
}

async fn shake_hands(
    mut socket: Box<dyn Socket>,
    target: &Target,
    structured_replies: bool,
) -> Result<Connected, LoadError> {
    let refused = |source| LoadError::Handshake { target: target.to_string(), source };
    let mut handshake = ClientHandshake::new(target.export(), structured_replies).map_err(refused)?;
    let mut buffer = [0; 4096];
    loop {
        // A connection that breaks during the handshake counts as closed by the server, also if it was reset.
        let count = socket.read(&mut buffer).await.unwrap_or(0);
        if count == 0 {
            return Err(refused(handshake.handle_end()));
        }
        let progress = handshake.handle_input(&buffer[..count]);
        let sent = socket.write_all(&handshake.take_output()).await;
        match progress.map_err(refused)? {
            Connecting::Ready { export, rest } => return Ok(Connected { socket, export, rest }),
            Connecting::NeedMore if sent.is_err() => {
                return Err(refused(HandshakeError::Closed { naming: false }));
            }
            Connecting::NeedMore => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_nbd::BlockSizes;

    use super::*;

    fn export(size: u64, flags: u16, block: Option<BlockSizes>) -> RemoteExport {
        RemoteExport { name: String::new(), size, flags, block, structured_replies: false }
    }

    fn spec(change: impl FnOnce(&mut LoadSpec)) -> LoadSpec {
        let mut spec = LoadSpec::new("nbd://h/".parse().unwrap());
        change(&mut spec);
        spec
    }

    #[test]
    fn only_whole_blocks_within_the_range_are_used() {
        let export = export(10_000, 1, None);
        assert_eq!(usable_blocks(&spec(|_| ()), &export).unwrap(), 2);
        assert_eq!(usable_blocks(&spec(|spec| spec.offset = 2_000), &export).unwrap(), 1);
        assert_eq!(usable_blocks(&spec(|spec| spec.length = Some(4_200)), &export).unwrap(), 1);
    }

    #[test]
    fn a_load_that_the_export_cannot_take_is_refused_with_what_it_can() {
        let sizes = BlockSizes { minimum: 512, preferred: 4096, maximum: 65_536 };
        let export =
            export(100_000, transmission_flag::HAS_FLAGS | transmission_flag::READ_ONLY, Some(sizes));
        let message = |spec: LoadSpec| usable_blocks(&spec, &export).unwrap_err().to_string();
        assert_eq!(
            message(spec(|spec| spec.offset = 99_840)),
            "nbd://h/: block_bytes is 4096; the export accepts at most 160: it has 100000 bytes and offset is 99840"
        );
        assert!(message(spec(|spec| spec.read_percent = 99)).contains("read-only"));
        assert!(message(spec(|spec| spec.flush_every = 4.try_into().ok())).contains("accepts no flushes"));
        assert!(message(spec(|spec| spec.block_bytes = 1_000)).contains("multiples of 512 up to 65536"));
        assert!(message(spec(|spec| spec.block_bytes = 131_072)).contains("multiples of 512 up to 65536"));
        assert!(message(spec(|spec| spec.offset = 100)).contains("multiples of 512"));
        assert!(message(spec(|spec| spec.length = Some(200_000))).contains("at most 100000"));
    }
}
