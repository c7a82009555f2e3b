//! The abilities of a server's export, checked, in the terms of a device.
//!
//! Equal abilities are the check for a server that comes back: clients that were told the old abilities can
//! go on with the new ones.

use weir_nbd::client::RemoteExport;
use weir_nbd::wire::transmission_flag as flag;

use crate::Properties;

/// The longest payload for a server that tells no block sizes (NBD protocol, "Size constraints").
const DEFAULT_MAXIMUM: u32 = 32 << 20;
/// The protocol's upper limit of the smallest block, and its lower limit of the longest.
const MINIMUM_AT_MOST: u32 = 64 << 10;
const MAXIMUM_AT_LEAST: u32 = 512;

/// The abilities of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Abilities {
    pub(super) size: u64,
    pub(super) read_only: bool,
    pub(super) flush: bool,
    pub(super) fua: bool,
    pub(super) trim: bool,
    pub(super) write_zeroes: bool,
    pub(super) fast_zero: bool,
    pub(super) cache: bool,
    /// Whether a flush on one connection covers the answers on all.
    pub(super) multi_conn: bool,
    /// Offsets and lengths must be multiples of this; a power of two.
    pub(super) minimum: u32,
    preferred: u32,
    /// The longest read and write; a multiple of `minimum`.
    pub(super) maximum: u32,
}

impl Abilities {
    /// The abilities of `export`. If they make no sense, the error says in words what is wrong.
    pub(super) fn of(export: &RemoteExport) -> Result<Self, String> {
        if export.size == 0 {
            return Err("has no bytes to serve".to_owned());
        }
        // Without this flag, the other flags say nothing.
        let flags = if export.flags & flag::HAS_FLAGS == 0 { 0 } else { export.flags };
        let has = |flag| flags & flag != 0;
        let (minimum, preferred, maximum) = block_sizes(export)?;
        let read_only = has(flag::READ_ONLY);
        Ok(Self {
            size: export.size,
            read_only,
            flush: has(flag::SEND_FLUSH),
            fua: has(flag::SEND_FUA),
            trim: has(flag::SEND_TRIM),
            write_zeroes: has(flag::SEND_WRITE_ZEROES),
            fast_zero: has(flag::SEND_WRITE_ZEROES) && has(flag::SEND_FAST_ZERO),
            cache: has(flag::SEND_CACHE),
            multi_conn: has(flag::CAN_MULTI_CONN),
            minimum,
            preferred,
            maximum,
        })
    }

    /// The properties of the device.
    pub(super) fn properties(&self) -> Properties {
        Properties {
            size: self.size,
            read_only: self.read_only,
            fast_zero: self.fast_zero,
            minimum_block: self.minimum,
            preferred_block: self.preferred,
        }
    }

    /// How `other` differs from these abilities, in words; `None` if it does not.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        if self.size != other.size {
            return Some(format!("its size was {} bytes and is {}", self.size, other.size));
        }
        let blocks = |abilities: &Self| (abilities.minimum, abilities.preferred, abilities.maximum);
        let (was, is) = (blocks(self), blocks(other));
        if was != is {
            return Some(format!("its block sizes were {was:?} and are {is:?}"));
        }
        (self != other).then(|| format!("it could do [{}] and can do [{}]", self.words(), other.words()))
    }

    /// The flags that are set.
    fn words(&self) -> String {
        let all = [
            (self.read_only, "read-only"),
            (self.flush, "flush"),
            (self.fua, "fua"),
            (self.trim, "trim"),
            (self.write_zeroes, "write-zeroes"),
            (self.fast_zero, "fast-zero"),
            (self.cache, "cache"),
            (self.multi_conn, "multi-conn"),
        ];
        all.iter().filter(|(is_set, _)| *is_set).map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
    }
}

/// Minimum, preferred and maximum block size.
fn block_sizes(export: &RemoteExport) -> Result<(u32, u32, u32), String> {
    let Some(block) = export.block else { return Ok((1, 4096, DEFAULT_MAXIMUM)) };
    let minimum = block.minimum;
    let maximum = block.maximum.min(DEFAULT_MAXIMUM);
    if !minimum.is_power_of_two() || minimum > MINIMUM_AT_MOST || maximum < minimum.max(MAXIMUM_AT_LEAST) {
        let (least, most) = (block.minimum, block.maximum);
        return Err(format!(
            "tells block sizes of at least {least} and at most {most} bytes; accepted: at least a power of two up to \
             {MINIMUM_AT_MOST}, at most no less than that and than {MAXIMUM_AT_LEAST}"
        ));
    }
    // The preferred size is only advice. A value that makes no sense is not passed on.
    let preferred = match block.preferred {
        sensible if sensible.is_power_of_two() && (512..=maximum).contains(&sensible) => {
            sensible.max(minimum)
        }
        _ => minimum.max(4096),
    };
    Ok((minimum, preferred, maximum - maximum % minimum))
}

#[cfg(test)]
mod tests {
    use weir_nbd::BlockSizes;

    use super::*;

    fn export(size: u64, flags: u16, block: Option<(u32, u32, u32)>) -> RemoteExport {
        let block = block.map(|(minimum, preferred, maximum)| BlockSizes { minimum, preferred, maximum });
        RemoteExport { name: String::new(), size, flags, block, structured_replies: true }
    }

    #[test]
    fn block_sizes_that_make_no_sense_are_refused_and_advice_that_makes_none_is_not_passed_on() {
        for (minimum, maximum) in [(0, 1 << 20), (3, 1 << 20), (1 << 17, 1 << 20), (4096, 512), (1, 511)] {
            assert!(
                Abilities::of(&export(1 << 20, 1, Some((minimum, 4096, maximum)))).is_err(),
                "{minimum} {maximum}"
            );
        }
        for (told, expected) in [
            (None, (1, 4096, 32 << 20)),
            (Some((512, 4096, u32::MAX)), (512, 4096, 32 << 20)),
            (Some((512, 3, 65_535)), (512, 4096, 65_024)),
            (Some((65_536, 4096, 1 << 20)), (65_536, 65_536, 1 << 20)),
        ] {
            let found = Abilities::of(&export(1 << 20, 1, told)).unwrap();
            assert_eq!((found.minimum, found.preferred, found.maximum), expected, "{told:?}");
        }
        assert!(Abilities::of(&export(0, 1, None)).is_err());
    }

    #[test]
    fn what_has_changed_is_told_in_words_and_what_nobody_notices_is_no_change() {
        let before = Abilities::of(&export(1 << 20, flag::HAS_FLAGS | flag::SEND_FLUSH, None)).unwrap();
        let after = |size, flags| Abilities::of(&export(size, flags, None)).unwrap();
        let changed = |after: Abilities| before.difference(&after);
        let flags = flag::HAS_FLAGS | flag::SEND_FLUSH;
        assert_eq!(changed(after(1 << 20, flags | flag::ROTATIONAL | flag::SEND_DF)), None);
        assert_eq!(changed(after(512, flags)).unwrap(), "its size was 1048576 bytes and is 512");
        assert_eq!(
            changed(after(1 << 20, flags | flag::READ_ONLY)).unwrap(),
            "it could do [flush] and can do [read-only flush]"
        );
        assert_eq!(changed(after(1 << 20, flag::SEND_FLUSH)).unwrap(), "it could do [flush] and can do []");
    }
}
