//! After any sequence of requests, a device holds what a `Vec<u8>` would hold.

use proptest::prelude::*;
use weir_model::IoKind;

use crate::fault::Device;
use crate::memory::MemoryDevice;
use crate::rig::{Rig, command, pattern, read, write};
use crate::{BlockDevice, DeviceRequest};

/// The size ends within a block, and is more than one chunk of memory.
const SIZE: u32 = 3 * 65_536 + 1808;

#[derive(Clone, Debug)]
struct Act {
    kind: IoKind,
    offset: u32,
    length: u32,
    fua: bool,
    no_hole: bool,
    seed: u64,
}

fn act() -> impl Strategy<Value = Act> {
    let kind = prop_oneof![
        4 => Just(IoKind::Write),
        2 => Just(IoKind::Read),
        1 => Just(IoKind::Trim),
        2 => Just(IoKind::WriteZeroes),
        1 => Just(IoKind::Flush),
        1 => Just(IoKind::BlockStatus),
    ];
    // Half of all requests are aligned, so that both descriptors get their share.
    let range = (0..SIZE, 1..100_000u32, any::<bool>()).prop_map(|(offset, length, aligned)| {
        let offset = if aligned { offset - offset % 4096 } else { offset };
        let length = if aligned { length.next_multiple_of(4096) } else { length };
        (offset, length.min(SIZE - offset))
    });
    let flags = (prop::bool::weighted(0.1), any::<bool>());
    (kind, range, flags, any::<u32>()).prop_map(|(kind, (offset, length), (fua, no_hole), seed)| Act {
        kind,
        offset,
        length,
        fua,
        no_hole,
        seed: seed.into(),
    })
}

fn request(act: &Act) -> DeviceRequest {
    let request = match act.kind {
        IoKind::Read => read(act.offset.into(), act.length),
        IoKind::Write => write(act.offset.into(), &pattern(act.seed, act.length as usize)),
        IoKind::Flush => command(IoKind::Flush, 0, 0),
        kind => command(kind, act.offset.into(), act.length),
    };
    DeviceRequest { fua: act.fua, no_hole: act.no_hole, ..request }
}

/// Does the act on the device and on the model, and compares the visible results.
async fn check(rig: &Rig, device: &mut Device, model: &mut [u8], act: &Act) {
    let done = rig.run(device, request(act)).await;
    done.result.unwrap();
    let range = &mut model[act.offset as usize..(act.offset + act.length) as usize];
    match act.kind {
        IoKind::Read => assert!(done.buffer.unwrap()[..] == *range, "{act:?} read something else"),
        IoKind::Write => range.copy_from_slice(&pattern(act.seed, act.length as usize)),
        IoKind::Trim | IoKind::WriteZeroes => range.fill(0),
        IoKind::BlockStatus => {
            let mut at = 0;
            for extent in done.extents {
                let end = at + usize::try_from(extent.length).unwrap();
                assert!(!extent.zero || range[at..end].iter().all(|byte| *byte == 0), "{act:?}: not zero");
                at = end;
            }
            assert_eq!(at, range.len(), "{act:?}: the answer covers the question");
        }
        IoKind::Flush | IoKind::Cache => {}
    }
}

fn run(acts: &[Act], open: impl FnOnce(&mut Rig) -> Device) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let mut rig = Rig::new();
        let mut device = open(&mut rig);
        let mut model = vec![0; SIZE as usize];
        for act in acts {
            check(&rig, &mut device, &mut model, act).await;
        }
        assert_eq!(device.properties().size, SIZE.into());
        assert!(rig.bytes(&mut device, 0, SIZE).await == model, "at the end");
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_holds_what_a_vector_would(acts in prop::collection::vec(act(), 1..40)) {
        run(&acts, |rig| rig.file("disk", SIZE.into()));
    }

    #[test]
    fn a_file_without_direct_io_and_zeroes_of_its_own_does_too(acts in prop::collection::vec(act(), 1..40)) {
        run(&acts, |rig| {
            let device = rig.file("disk", SIZE.into());
            rig.shard.reactor.change_abilities(|file| {
                file.direct = false;
                file.zero_range = false;
            });
            device
        });
    }

    #[test]
    fn memory_holds_what_a_vector_would(acts in prop::collection::vec(act(), 1..40)) {
        run(&acts, |_| Device::new(Box::new(MemoryDevice::new(SIZE.into()).unwrap()), Vec::new()));
    }
}
