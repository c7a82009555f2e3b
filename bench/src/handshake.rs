//! The negotiation of an NBD client that only wants to be connected: fixed newstyle, option GO.
//!
//! It is written here, because the benchmark must build even if the product does not. So it cannot use the
//! product's codec. Source: the NBD protocol (`doc/proto.md` of the NetworkBlockDevice/nbd project), "Fixed
//! newstyle negotiation".

use std::io::{self, Read, Write};

const NBDMAGIC: u64 = 0x4e42_444d_4147_4943;
const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const CLIENT_FIXED_NEWSTYLE: u32 = 1;
const CLIENT_NO_ZEROES: u32 = 2;
const OPTION_GO: u32 = 7;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;

/// The longest reply to GO. A sane server's is shorter.
const LONGEST_REPLY: u32 = 64 << 10;

/// Negotiates `export`. Afterwards the server waits for requests.
///
/// # Errors
/// If the connection breaks, the server refuses, or the peer is no NBD server.
pub(super) fn negotiate(stream: &mut (impl Read + Write), export: &str) -> io::Result<()> {
    expect(number(read(stream)?), NBDMAGIC, "the greeting")?;
    expect(number(read(stream)?), IHAVEOPT, "the greeting")?;
    let _flags: [u8; 2] = read(stream)?;
    stream.write_all(&go(export)?)?;
    loop {
        expect(number(read(stream)?), REPLY_MAGIC, "a reply")?;
        let [_option, kind, length] = [read(stream)?, read(stream)?, read(stream)?].map(u32::from_be_bytes);
        if length > LONGEST_REPLY {
            return Err(invalid(format!("a reply of {length} bytes")));
        }
        io::copy(&mut stream.take(length.into()), &mut io::sink())?;
        match kind {
            REPLY_ACK => return Ok(()),
            REPLY_INFO => {}
            refusal => return Err(invalid(format!("the server refuses with {refusal:#x}"))),
        }
    }
}

/// The client's flags and the option.
fn go(export: &str) -> io::Result<Vec<u8>> {
    let length =
        u32::try_from(export.len()).map_err(|_| invalid("the name of the export is too long".to_owned()))?;
    let mut bytes = Vec::new();
    bytes.extend((CLIENT_FIXED_NEWSTYLE | CLIENT_NO_ZEROES).to_be_bytes());
    bytes.extend(IHAVEOPT.to_be_bytes());
    bytes.extend(OPTION_GO.to_be_bytes());
    bytes.extend((4 + length + 2).to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(export.as_bytes());
    bytes.extend(0_u16.to_be_bytes()); // no information is asked for
    Ok(bytes)
}

fn read<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

const fn number(bytes: [u8; 8]) -> u64 {
    u64::from_be_bytes(bytes)
}

fn expect(found: u64, accepted: u64, place: &str) -> io::Result<()> {
    if found == accepted {
        return Ok(());
    }
    Err(invalid(format!("{place}: found {found:#x}; accepted: {accepted:#x}")))
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A server that has already sent all of its replies.
    struct Script {
        says: Cursor<Vec<u8>>,
        heard: Vec<u8>,
    }

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.says.read(buffer)
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.heard.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn script(replies: &[(u32, &[u8])]) -> Script {
        let mut says = b"NBDMAGICIHAVEOPT\0\x03".to_vec();
        for (kind, data) in replies {
            says.extend(REPLY_MAGIC.to_be_bytes());
            says.extend(
                [OPTION_GO, *kind, u32::try_from(data.len()).unwrap()].map(u32::to_be_bytes).concat(),
            );
            says.extend(*data);
        }
        Script { says: Cursor::new(says), heard: Vec::new() }
    }

    #[test]
    fn information_is_skipped_until_the_server_agrees() {
        let mut server = script(&[(REPLY_INFO, &[0; 12]), (REPLY_ACK, &[])]);
        negotiate(&mut server, "v").unwrap();
        assert_eq!(server.heard, b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x07\0\0\0\x01v\0\0");
    }

    #[test]
    fn a_refusal_and_a_stranger_are_errors() {
        assert!(negotiate(&mut script(&[(0x8000_0006, b"no such export")]), "v").is_err());
        assert!(negotiate(&mut script(&[]), "v").is_err());
        let stranger =
            Script { says: Cursor::new(b"HTTP/1.1 400 Bad Request\r\n".to_vec()), heard: Vec::new() };
        assert!(negotiate(&mut { stranger }, "v").is_err());
    }
}
