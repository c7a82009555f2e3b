//! How answers to options are written.

use crate::wire::{self, info, option_reply};
use crate::{BlockSizes, ExportInfo};

/// Appends an answer: its header, and `parts`, one behind the other, as its data.
pub(super) fn push(out: &mut Vec<u8>, option: u32, answer: u32, parts: &[&[u8]]) {
    let length = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&wire::OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&answer.to_be_bytes());
    out.extend_from_slice(&length_field(length));
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// An export in the list of all.
pub(super) fn push_server(out: &mut Vec<u8>, option: u32, export: &ExportInfo) {
    let parts = [&length_field(export.name.len()), export.name.as_bytes(), export.description.as_bytes()];
    push(out, option, option_reply::SERVER, &parts);
}

/// Size and transmission flags.
pub(super) fn push_export(out: &mut Vec<u8>, option: u32, size: u64, flags: u16) {
    push_info(out, option, info::EXPORT, &[&size.to_be_bytes(), &flags.to_be_bytes()]);
}

/// A name or a description.
pub(super) fn push_text(out: &mut Vec<u8>, option: u32, kind: u16, text: &str) {
    push_info(out, option, kind, &[text.as_bytes()]);
}

/// The sizes that requests should and must keep to.
pub(super) fn push_block_sizes(out: &mut Vec<u8>, option: u32, block: &BlockSizes) {
    let sizes = [block.minimum, block.preferred, block.maximum].map(u32::to_be_bytes);
    push_info(out, option, info::BLOCK_SIZE, &[sizes.as_flattened()]);
}

/// A metadata context.
pub(super) fn push_context(out: &mut Vec<u8>, option: u32, id: u32, name: &str) {
    push(out, option, option_reply::META_CONTEXT, &[&id.to_be_bytes(), name.as_bytes()]);
}

fn push_info(out: &mut Vec<u8>, option: u32, kind: u16, parts: &[&[u8]]) {
    push(out, option, option_reply::INFO, &[&kind.to_be_bytes(), &parts.concat()]);
}

fn length_field(length: usize) -> [u8; 4] {
    // Names and descriptions are short. If one is not, its length is wrong, but the program does not end.
    u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
}
