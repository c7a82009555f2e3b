//! What holds for every sort of node.

use bytes::Bytes;
use weir_node::{ErrorKind, Node, Note, ObjectName, PartialId, Reader, Writer};

use crate::bench::{Bench, PIECE, data, get, id, kind, name, put, rest, write};

/// Makes a test of each claim, for the node that `$bench` gives.
macro_rules! conformance {
    ($bench:expr) => {
        $crate::conformance::conformance!($bench;
            a_node_says_that_it_is_there
            an_object_comes_back_as_it_was_written_whatever_its_size_and_its_name
            a_read_begins_in_the_middle_and_at_the_end_and_not_behind_it
            a_name_without_an_object_has_no_size_and_cannot_be_read
            a_partial_is_never_visible
            an_object_is_never_overwritten
            an_upload_goes_on_after_its_writer_was_dropped
            what_was_discarded_cannot_be_gone_on_with
            what_was_removed_is_not_there_and_can_be_removed_again
            an_object_of_another_size_than_announced_is_refused
        );
    };
    ($bench:expr; $($claim:ident)*) => {
        $(
            #[test]
            fn $claim() {
                let claim = concat!(module_path!(), "::", stringify!($claim));
                $crate::bench::run($bench, claim, $crate::conformance::$claim);
            }
        )*
    };
}
pub(crate) use conformance;

/// What a task of tokio may do with a node. It compiles only if each future may move between threads.
#[test]
fn all_that_waits_may_move_between_threads() {
    fn may_move<T: Send>(_: impl FnOnce(Node, Writer, Reader, ObjectName, PartialId) -> T) {}
    may_move(|node, mut writer, mut reader, name, id| async move {
        let _ = (node.probe().await, node.size(&name).await, node.remove(&name).await);
        let _ = (node.begin(&name, &id, None).await, node.resume(&name, &[], None).await);
        let _ = (node.read(&name, 0).await, node.discard(&[]).await);
        let _ = (writer.write(Bytes::new()).await, reader.next().await, writer.read_back(0));
        let _ = writer.finish().await;
    });
}

pub(crate) async fn a_node_says_that_it_is_there(bench: &Bench) {
    bench.node.probe().await.unwrap();
}

pub(crate) async fn an_object_comes_back_as_it_was_written_whatever_its_size_and_its_name(bench: &Bench) {
    let names = ["whole", "whole folder/a b", "whole folder/100%/ü#&+=~'\"{}", "whole folder/[x]/.hidden"];
    let sizes = [0, 1, PIECE + 3, 20 * PIECE + 7];
    for (seed, (text, size)) in (1..).zip(names.into_iter().zip(sizes)) {
        let bytes = data(seed, size);
        for known in [true, false] {
            let name = name(&format!("{text}-{known}"));
            let announced = known.then_some(size as u64);
            let id = id(&format!("whole-{seed}-{known}"));
            let mut writer = bench.node.begin(&name, &id, announced).await.unwrap();
            write(&mut writer, &bytes, &mut Vec::new()).await.unwrap();
            let sent = writer.sent();
            assert!(sent.get() <= size as u64, "{name}");
            writer.finish().await.unwrap();
            assert_eq!(sent.get(), size as u64, "{name}");
            assert_eq!(bench.node.size(&name).await.unwrap(), Some(size as u64), "{name}");
            assert!(get(&bench.node, &name, 0).await == bytes, "{name}");
            bench.node.make_durable(&name).await.unwrap();
        }
    }
}

pub(crate) async fn a_read_begins_in_the_middle_and_at_the_end_and_not_behind_it(bench: &Bench) {
    let (name, bytes) = (name("middle"), data(1, 9 * PIECE + 5));
    put(&bench.node, &name, &id("middle"), &bytes).await.unwrap();
    let end = bytes.len() as u64;
    for from in [1, 8 << 20, end - 1, end] {
        let reader = bench.node.read(&name, from).await.unwrap();
        assert_eq!(reader.size(), end);
        let arrived = reader.arrived();
        let at = usize::try_from(from).unwrap();
        assert!(rest(reader).await == bytes.slice(at..), "from {from}");
        assert_eq!(arrived.get(), end - from);
    }
    assert_eq!(kind(bench.node.read(&name, end + 1).await), ErrorKind::Other);
}

pub(crate) async fn a_name_without_an_object_has_no_size_and_cannot_be_read(bench: &Bench) {
    for text in ["none", "no folder/none"] {
        assert_eq!(bench.node.size(&name(text)).await.unwrap(), None);
        assert_eq!(kind(bench.node.read(&name(text), 0).await), ErrorKind::NotFound);
    }
}

pub(crate) async fn a_partial_is_never_visible(bench: &Bench) {
    let (name, bytes) = (name("never/visible"), data(2, 12 * PIECE));
    let mut writer = bench.node.begin(&name, &id("never-visible"), None).await.unwrap();
    write(&mut writer, &bytes, &mut Vec::new()).await.unwrap();
    assert_eq!(bench.node.size(&name).await.unwrap(), None);
    assert_eq!(kind(bench.node.read(&name, 0).await), ErrorKind::NotFound);
    drop(writer);
    assert_eq!(bench.node.size(&name).await.unwrap(), None);
}

pub(crate) async fn an_object_is_never_overwritten(bench: &Bench) {
    for (text, size) in [("kept-small", 5), ("kept/large", 12 * PIECE)] {
        let (name, first, second) = (name(text), data(3, size), data(4, size));
        let id = |which: &str| id(&format!("{which}-{size}"));
        // Both begin while the name is free.
        let mut late = bench.node.begin(&name, &id("late"), None).await.unwrap();
        write(&mut late, &second, &mut Vec::new()).await.unwrap();
        put(&bench.node, &name, &id("first"), &first).await.unwrap();
        assert_eq!(kind(late.finish().await), ErrorKind::Exists);
        assert_eq!(kind(put(&bench.node, &name, &id("second"), &second).await), ErrorKind::Exists);
        assert!(get(&bench.node, &name, 0).await == first, "{name}");
    }
}

pub(crate) async fn an_upload_goes_on_after_its_writer_was_dropped(bench: &Bench) {
    let (name, bytes) = (name("on/and on"), data(5, 60 * PIECE + 11));
    let announced = Some(bytes.len() as u64);
    let mut notes = Vec::new();
    let mut writer = bench.node.begin(&name, &id("on-and-on"), announced).await.unwrap();
    assert_eq!(writer.offset(), 0);
    write(&mut writer, &bytes.slice(..57 * PIECE), &mut notes).await.unwrap();
    drop(writer);
    // Another process reads the notes as text.
    let notes: Vec<Note> = notes.iter().map(|note| note.to_string().parse().unwrap()).collect();
    let resumed = bench.node.resume(&name, &notes, announced).await;
    if !bench.resumes {
        assert_eq!(kind(resumed), ErrorKind::Gone);
        bench.node.discard(&notes).await.unwrap();
        return;
    }
    let mut writer = resumed.unwrap();
    let offset = usize::try_from(writer.offset()).unwrap();
    assert!((1..=57 * PIECE).contains(&offset), "offset {offset}");
    if let Some(back) = writer.read_back(0).unwrap() {
        assert_eq!(back.size(), offset as u64);
        assert!(rest(back).await == bytes.slice(..offset), "what is read back");
    }
    write(&mut writer, &bytes.slice(offset..), &mut Vec::new()).await.unwrap();
    writer.finish().await.unwrap();
    assert!(get(&bench.node, &name, 0).await == bytes, "what was written in two parts");
    assert_eq!(kind(bench.node.resume(&name, &notes, announced).await), ErrorKind::Gone);
}

pub(crate) async fn what_was_discarded_cannot_be_gone_on_with(bench: &Bench) {
    let (name, bytes, mut notes) = (name("discarded"), data(6, 20 * PIECE), Vec::new());
    let mut writer = bench.node.begin(&name, &id("discarded"), None).await.unwrap();
    write(&mut writer, &bytes, &mut notes).await.unwrap();
    drop(writer);
    let was_there = bench.node.discard(&notes).await.unwrap();
    // S3 cannot tell, and a server of WebDAV may keep nothing of a request that was broken off.
    assert!(was_there || !bench.resumes || bench.root.is_none());
    assert!(!bench.node.discard(&notes).await.unwrap());
    assert!(!bench.node.discard(&[]).await.unwrap());
    assert_eq!(kind(bench.node.resume(&name, &notes, None).await), ErrorKind::Gone);
    assert_eq!(kind(bench.node.resume(&name, &[], None).await), ErrorKind::Gone);
}

pub(crate) async fn what_was_removed_is_not_there_and_can_be_removed_again(bench: &Bench) {
    for text in ["removed", "a folder/removed"] {
        let name = name(text);
        bench.node.remove(&name).await.unwrap();
        put(&bench.node, &name, &id(&format!("removed-{}", text.len())), &data(7, 9)).await.unwrap();
        bench.node.remove(&name).await.unwrap();
        assert_eq!(bench.node.size(&name).await.unwrap(), None);
        bench.node.remove(&name).await.unwrap();
    }
}

pub(crate) async fn an_object_of_another_size_than_announced_is_refused(bench: &Bench) {
    let name = name("other size");
    let mut writer = bench.node.begin(&name, &id("more"), Some(4)).await.unwrap();
    writer.write(Bytes::from_static(b"1234")).await.unwrap();
    assert_eq!(kind(writer.write(Bytes::from_static(b"5")).await), ErrorKind::Other);
    assert_eq!(kind(writer.finish().await), ErrorKind::Other);
    let mut writer = bench.node.begin(&name, &id("fewer"), Some(4)).await.unwrap();
    writer.write(Bytes::from_static(b"123")).await.unwrap();
    assert_eq!(kind(writer.finish().await), ErrorKind::Other);
    assert_eq!(bench.node.size(&name).await.unwrap(), None);
}
