//! What each option means.

use super::{HandshakeLimits, ServerHandshake, Step, answers};
use crate::fields::Fields;
use crate::reply::BASE_ALLOCATION_ID;
use crate::wire::{self, info, option, option_reply};
use crate::{CloseReason, ExportInfo, Exports, Session};

const BASE_NAMESPACE: &str = "base:";

/// How many bytes of data `option` may have before the connection is closed. `NBD_OPT_EXPORT_NAME` is bounded
/// more tightly, because it cannot be answered with an error.
pub(super) fn longest(option: u32, limits: &HandshakeLimits) -> u32 {
    match option {
        option::EXPORT_NAME => limits.max_option_length,
        _ => limits.max_skipped_length,
    }
}

/// The answer to `option`, if it does not depend on the option's data: then the data are skipped. `None` if
/// they must be read.
pub(super) fn answer_without_data(option: u32, length: u32, limits: &HandshakeLimits) -> Option<u32> {
    match option {
        // Data "SHOULD" be ignored here, not refused.
        option::ABORT => Some(option_reply::ACK),
        option::LIST | option::STRUCTURED_REPLY if length > 0 => Some(option_reply::ERR_INVALID),
        option::EXPORT_NAME | option::LIST | option::STRUCTURED_REPLY => None,
        option::INFO | option::GO | option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
            (length > limits.max_option_length).then_some(option_reply::ERR_TOO_BIG)
        }
        // Also `NBD_OPT_STARTTLS`: the specification asks for this answer from a server without TLS.
        // `NBD_REP_ERR_POLICY` would say that TLS could be switched on.
        _ => Some(option_reply::ERR_UNSUP),
    }
}

impl ServerHandshake {
    /// Answers an option whose data are complete.
    pub(super) fn answer_option(&mut self, option: u32, data: &[u8], exports: &dyn Exports) -> Step {
        match option {
            option::EXPORT_NAME => return self.enter_by_name(data, exports),
            option::LIST => self.list(exports),
            option::STRUCTURED_REPLY => {
                self.structured_replies = true;
                self.acknowledge(option);
            }
            option::INFO | option::GO => return self.describe(option, data, exports),
            _ => self.contexts(option, data, exports),
        }
        Step::Continue
    }

    fn enter_by_name(&mut self, data: &[u8], exports: &dyn Exports) -> Step {
        let Some((name, export)) = string(data).and_then(|name| Some((name, exports.find(name)?))) else {
            return Step::Close(CloseReason::UnknownExport);
        };
        let flags = export.transmission_flags(self.structured_replies);
        self.output.extend_from_slice(&export.size.to_be_bytes());
        self.output.extend_from_slice(&flags.to_be_bytes());
        if !self.no_zeroes {
            self.output.extend_from_slice(&[0; wire::EXPORT_NAME_ZEROES]);
        }
        self.enter(name, export)
    }

    fn list(&mut self, exports: &dyn Exports) {
        for export in exports.names().iter().filter_map(|name| exports.find(name)) {
            answers::push_server(&mut self.output, option::LIST, &export);
        }
        self.acknowledge(option::LIST);
    }

    fn describe(&mut self, option: u32, data: &[u8], exports: &dyn Exports) -> Step {
        let Some(asked) = InfoRequest::parse(data) else {
            self.refuse(option, option_reply::ERR_INVALID, "malformed request");
            return Step::Continue;
        };
        let Some(export) = exports.find(asked.name) else {
            self.refuse(option, option_reply::ERR_UNKNOWN, "no such export");
            return Step::Continue;
        };
        let out = &mut self.output;
        answers::push_export(out, option, export.size, export.transmission_flags(self.structured_replies));
        if asked.wants_name {
            answers::push_text(out, option, info::NAME, &export.name);
        }
        if asked.wants_description && !export.description.is_empty() {
            answers::push_text(out, option, info::DESCRIPTION, &export.description);
        }
        // The block sizes are sent even if the client did not ask, because requests outside them are refused
        // in any case.
        answers::push_block_sizes(out, option, &export.block);
        self.acknowledge(option);
        if option == option::GO { self.enter(asked.name, export) } else { Step::Continue }
    }

    fn contexts(&mut self, option: u32, data: &[u8], exports: &dyn Exports) {
        if !self.structured_replies {
            self.refuse(option, option_reply::ERR_INVALID, "structured replies must be negotiated first");
            return;
        }
        let Some(asked) = ContextRequest::parse(option, data) else {
            self.refuse(option, option_reply::ERR_INVALID, "malformed request");
            return;
        };
        if exports.find(asked.name).is_none() {
            self.refuse(option, option_reply::ERR_UNKNOWN, "no such export");
            return;
        }
        if asked.base_allocation {
            let chosen = option == option::SET_META_CONTEXT;
            // In a mere list, the number is "reserved and SHOULD be set to zero".
            let id = if chosen { BASE_ALLOCATION_ID } else { 0 };
            answers::push_context(&mut self.output, option, id, wire::BASE_ALLOCATION);
            if chosen {
                self.context_export = Some(asked.name.to_owned());
            }
        }
        self.acknowledge(option);
    }

    fn enter(&self, name: &str, export: ExportInfo) -> Step {
        Step::Enter(Session {
            export,
            structured_replies: self.structured_replies,
            base_allocation: self.context_export.as_deref() == Some(name),
        })
    }

    fn acknowledge(&mut self, option: u32) {
        answers::push(&mut self.output, option, option_reply::ACK, &[]);
    }

    fn refuse(&mut self, option: u32, error: u32, message: &str) {
        answers::push(&mut self.output, option, error, &[message.as_bytes()]);
    }
}

/// The data of `NBD_OPT_INFO` and `NBD_OPT_GO`.
struct InfoRequest<'a> {
    name: &'a str,
    wants_name: bool,
    wants_description: bool,
}

impl<'a> InfoRequest<'a> {
    /// `None` if it is malformed.
    fn parse(data: &'a [u8]) -> Option<Self> {
        let mut fields = Fields::new(data);
        let name = string(fields.counted_bytes()?)?;
        let mut request = Self { name, wants_name: false, wants_description: false };
        for _ in 0..fields.u16()? {
            match fields.u16()? {
                info::NAME => request.wants_name = true,
                info::DESCRIPTION => request.wants_description = true,
                // The others are always sent, or are unknown and must be ignored.
                _ => {}
            }
        }
        fields.is_empty().then_some(request)
    }
}

/// The data of `NBD_OPT_LIST_META_CONTEXT` and `NBD_OPT_SET_META_CONTEXT`.
struct ContextRequest<'a> {
    name: &'a str,
    /// Whether one of the queries matches `base:allocation`, the only context.
    base_allocation: bool,
}

impl<'a> ContextRequest<'a> {
    /// `None` if it is malformed. Queries for contexts or namespaces that are not known must be ignored.
    fn parse(option: u32, data: &'a [u8]) -> Option<Self> {
        let mut fields = Fields::new(data);
        let name = string(fields.counted_bytes()?)?;
        let queries = fields.u32()?;
        let listing = option == option::LIST_META_CONTEXT;
        let mut base_allocation = listing && queries == 0;
        for _ in 0..queries {
            let query = string(fields.counted_bytes()?)?;
            base_allocation |= query == wire::BASE_ALLOCATION || (listing && query == BASE_NAMESPACE);
        }
        fields.is_empty().then_some(Self { name, base_allocation })
    }
}

/// A string as the specification defines it; `None` if the bytes are none.
fn string(bytes: &[u8]) -> Option<&str> {
    let text = str::from_utf8(bytes).ok()?;
    (text.len() <= wire::MAX_STRING && !text.contains('\0')).then_some(text)
}
