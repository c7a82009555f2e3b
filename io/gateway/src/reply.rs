//! Makes the bytes of a reply from the result of a device. This is the one place where a device's error
//! becomes the protocol's.

use weir_backend::{Buffer, Extent, Finished};
use weir_nbd::{Command, CommandKind, NbdError, Session, block_status_reply, push_done, read_reply, wire};

use crate::output::{Output, Reply};

/// Appends the reply to `command`. Returns the request's buffer if the reply does not need it.
pub(crate) fn push(
    output: &mut Output,
    session: &Session,
    command: &Command,
    finished: Finished,
    reply: Reply,
) -> Option<Buffer> {
    if let Err(error) = finished.result {
        let error = NbdError::from_errno(error.errno.raw_os_error(), command);
        push_error(output, session, command.cookie, error, reply);
        return finished.buffer;
    }
    match (command.kind, finished.buffer) {
        (CommandKind::Read, Some(data)) => {
            for piece in read_reply(session, command, &data) {
                output.part(piece.data, |out| out.extend_from_slice(&piece.header));
            }
            output.end(Some(data), reply);
            None
        }
        (CommandKind::BlockStatus, buffer) => {
            let extents = finished.extents.iter().map(|extent| (extent.length, state_flags(*extent)));
            output.part(0..0, |out| block_status_reply(out, session, command, extents));
            output.end(None, reply);
            buffer
        }
        (_, buffer) => {
            output.part(0..0, |out| push_done(out, command.cookie));
            output.end(None, reply);
            buffer
        }
    }
}

/// Appends an error.
pub(crate) fn push_error(output: &mut Output, session: &Session, cookie: u64, error: NbdError, reply: Reply) {
    output.part(0..0, |out| weir_nbd::push_error(out, session, cookie, error));
    output.end(None, reply);
}

fn state_flags(extent: Extent) -> u32 {
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    flag(extent.hole, wire::state::HOLE) | flag(extent.zero, wire::state::ZERO)
}
