//! Encodes requests.

use crate::wire::{self, REQUEST_LENGTH, command_flag};
use crate::{Command, CommandKind};

/// Appends the 28 bytes of a request to `out`. The caller appends the payload of a write.
pub fn encode_request(out: &mut Vec<u8>, command: &Command) {
    out.extend_from_slice(&request_header(command));
}

/// The 28 bytes of a request, without the payload of a write.
///
/// Source: NBD protocol, "Request message".
pub fn request_header(command: &Command) -> [u8; REQUEST_LENGTH] {
    let flags = flag(command.fua, command_flag::FUA)
        | flag(command.no_hole, command_flag::NO_HOLE)
        | flag(command.dont_fragment, command_flag::DF)
        | flag(command.one_extent, command_flag::REQ_ONE)
        | flag(command.fast_zero, command_flag::FAST_ZERO);
    let mut bytes = [0; REQUEST_LENGTH];
    bytes[0..4].copy_from_slice(&wire::REQUEST_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&number(command.kind).to_be_bytes());
    bytes[8..16].copy_from_slice(&command.cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&command.offset.to_be_bytes());
    bytes[24..28].copy_from_slice(&command.length.to_be_bytes());
    bytes
}

const fn flag(set: bool, bit: u16) -> u16 {
    if set { bit } else { 0 }
}

const fn number(kind: CommandKind) -> u16 {
    match kind {
        CommandKind::Read => wire::command::READ,
        CommandKind::Write => wire::command::WRITE,
        CommandKind::Disconnect => wire::command::DISC,
        CommandKind::Flush => wire::command::FLUSH,
        CommandKind::Trim => wire::command::TRIM,
        CommandKind::Cache => wire::command::CACHE,
        CommandKind::WriteZeroes => wire::command::WRITE_ZEROES,
        CommandKind::BlockStatus => wire::command::BLOCK_STATUS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_laid_out_as_the_protocol_says() {
        let mut out = vec![0xaa];
        let command = Command {
            cookie: 0x0102_0304_0506_0708,
            kind: CommandKind::Write,
            offset: 0x1000,
            length: 0x200,
            fua: true,
            no_hole: false,
            fast_zero: false,
            dont_fragment: false,
            one_extent: false,
        };
        encode_request(&mut out, &command);
        let expected = [
            0xaa, 0x25, 0x60, 0x95, 0x13, 0, 1, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0x10, 0, 0,
            0, 2, 0,
        ];
        assert_eq!(out, expected);
    }
}
