//! Properties of the judgement of request headers, for any bytes.

use proptest::prelude::*;

use super::*;
use crate::ExportInfo;
use crate::fixtures::{export, header};

prop_compose! {
    fn any_session()(
        size in prop_oneof![0_u64..100_000, any::<u64>()],
        read_only: bool,
        fast_zero: bool,
        minimum in (0_u32..10).prop_map(|bits| 1 << bits),
        maximum in prop_oneof![4096_u32..100_000, Just(u32::MAX)],
        structured_replies: bool,
        base_allocation: bool,
    ) -> Session {
        let block = BlockSizes { minimum, preferred: 4096, maximum };
        let export = ExportInfo { read_only, fast_zero, block, ..export("any", size) };
        Session { export, structured_replies, base_allocation: base_allocation && structured_replies }
    }
}

/// Any bytes, but mostly with the right magic and close to what is allowed.
fn any_header() -> impl Strategy<Value = [u8; REQUEST_LENGTH]> {
    let number = prop_oneof![9 => 0_u16..9, 1 => any::<u16>()];
    let flags = prop_oneof![3 => Just(0), 3 => 0_u16..32, 1 => any::<u16>()];
    let offset = prop_oneof![0_u64..100_000, (0_u64..200).prop_map(|n| n * 512), any::<u64>()];
    let length = prop_oneof![0_u32..100_000, (0_u32..200).prop_map(|n| n * 512), any::<u32>()];
    let plausible = (flags, number, any::<u64>(), offset, length)
        .prop_map(|(flags, number, cookie, offset, length)| header(flags, number, cookie, offset, length));
    prop_oneof![9 => plausible, 1 => any::<[u8; REQUEST_LENGTH]>()]
}

fn uphold(session: &Session, command: &Command) {
    let Session { export, .. } = session;
    assert!(command.offset.checked_add(command.length.into()).unwrap() <= export.size);
    let has_range = !matches!(command.kind, CommandKind::Flush | CommandKind::Disconnect);
    assert_eq!(command.length > 0, has_range);
    assert!(has_range || command.offset == 0);
    assert_eq!(command.offset % u64::from(export.block.minimum), 0);
    assert_eq!(command.length % export.block.minimum, 0);
    if matches!(command.kind, CommandKind::Read | CommandKind::Write) {
        assert!(command.length <= export.block.maximum);
    }
    assert!(!(export.read_only && command.kind.modifies()));
    assert!(!command.fua || command.kind.modifies());
    assert!(!command.no_hole || command.kind == CommandKind::WriteZeroes);
    assert!(!command.fast_zero || command.kind == CommandKind::WriteZeroes && export.fast_zero);
    assert!(!command.dont_fragment || command.kind == CommandKind::Read && session.structured_replies);
    assert!(!command.one_extent || command.kind == CommandKind::BlockStatus);
    assert!(command.kind != CommandKind::BlockStatus || session.base_allocation);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn whatever_is_executed_keeps_to_the_export_and_whatever_is_refused_stays_in_step(
        session in any_session(),
        header in any_header(),
    ) {
        let sent = Header::decode(&header);
        match parse_request(&session, &header) {
            Parsed::Execute(command) => {
                uphold(&session, &command);
                prop_assert_eq!(command.cookie, sent.cookie);
                if command.length > 0 {
                    prop_assert_eq!((command.offset, command.length), (sent.offset, sent.length));
                }
            }
            Parsed::Refuse { cookie, skip, .. } => {
                prop_assert_eq!(cookie, sent.cookie);
                let payload = if sent.command == wire::command::WRITE { sent.length } else { 0 };
                prop_assert_eq!(skip, payload);
            }
            Parsed::Close(_) => prop_assert_ne!(header[..4].to_vec(), wire::REQUEST_MAGIC.to_be_bytes()),
        }
    }
}
