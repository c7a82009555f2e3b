//! Compares the messages with those of `tc` (iproute2 6.1), and reads them again.

use super::*;

/// What `tc qdisc replace dev v0 root handle 7e17: htb default 0 r2q 2003134834` sends behind its head.
const TC_ROOT: &str = "00000000 02000000 0000177e ffffffff 00000000 08000100 68746200 1c000200 18000200 03000000 \
                       72696577 00000000 00000000 00000000";

/// The options in `tc qdisc replace … netem delay 10ms rate 1tbit limit 5000`.
const TC_NETEM: &str = "5a620200 88130000 00000000 00000000 00000000 00000000 0c000800 00a2941a 1d000000 14000600 \
                        ffffffff 00000000 00000000 00000000";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits
        .chunks(2)
        .map(|pair| u8::try_from(pair[0] << 4 | pair[1]).expect("two digits are a byte"))
        .collect()
}

fn options(message: &Message) -> &[u8] {
    attribute(&message.body[TCMSG..], TCA_OPTIONS).expect("each queue has options")
}

#[test]
fn the_root_is_what_tc_would_send() {
    let message = add_root("v0", 2);
    assert_eq!(message.body, bytes(TC_ROOT));
    assert_eq!((message.kind, message.flags), (36, 0x600));
}

#[test]
fn a_leaf_is_what_tc_would_send_and_has_its_delay_to_the_nanosecond() {
    let message = add_queue("v0", 2, LeafId(3), Span::from_millis(10), 5_000);
    let (expected, sent) = (bytes(TC_NETEM), options(&message));
    assert_eq!(sent[..expected.len()], expected);
    assert_eq!(sent[expected.len()..], [&[12, 0, 10, 0][..], &10_000_000_u64.to_ne_bytes()].concat());
    assert_eq!(message.body[8..16], [0_u32.to_ne_bytes(), 0x7e17_0003_u32.to_ne_bytes()].concat());
    let changed = set_delay("v0", 2, LeafId(3), Span::from_millis(10), 5_000);
    assert_eq!((changed.body, changed.flags), (message.body, 0));
}

#[test]
fn a_class_has_the_rate_that_tc_would_send() {
    let class = add_class("v0", 2, LeafId(3));
    assert_eq!(class.body[4..16], [2, 0x7e17_0003, 0x7e17_0000].map(u32::to_ne_bytes).concat());
    let options = options(&class);
    let tc = bytes("0c000600 00a2941a 1d000000 0c000700 00a2941a 1d000000");
    assert_eq!(options[..24], tc);
    let parameters = attribute(options, TCA_HTB_PARMS).expect("HTB asks for them");
    assert_eq!(parameters.len(), 44, "struct tc_htb_opt");
    assert_eq!(parameters[8..12], [255; 4], "the rate stands in 64 bits");
}

#[test]
fn what_was_written_is_read_again() {
    let half = Span::from_micros(500);
    let written = add_queue("v0", 2, LeafId(3), half, 5_000);
    let read = Queue::read(&written.body).expect("it is whole");
    let expected = Queue {
        interface: 2,
        handle: 0,
        place: Place::Leaf(LeafId(3)),
        kind: "netem".to_owned(),
        is_marked: false,
        delay: half,
        is_waiting: false,
    };
    assert_eq!(read, expected);
    let root = Queue::read(&add_root("v0", 2).body).expect("it is whole");
    assert!(root.is_our_root() && !root.is_foreign());
    for length in 0..written.body.len() {
        let cut = Queue::read(&written.body[..length]); // may miss something, and must not panic
        assert!(cut.is_none_or(|queue| queue.interface == 2));
    }
}

#[test]
fn a_root_that_somebody_has_set_is_told_from_the_kernels_own() {
    let queue = |handle, place, kind: &str| Queue {
        interface: 2,
        handle,
        place,
        kind: kind.to_owned(),
        is_marked: false,
        delay: Span::ZERO,
        is_waiting: false,
    };
    for kind in ["mq", "fq", "fq_codel", "pfifo_fast", "noqueue"] {
        assert!(!queue(0, Place::Root, kind).is_foreign(), "{kind}");
        assert!(queue(0x8001, Place::Root, kind).is_foreign(), "{kind}");
    }
    for kind in ["prio", "htb"] {
        assert!(queue(ROOT, Place::Root, kind).is_foreign(), "{kind}: somebody else took our number");
    }
    assert!(queue(0x8001, Place::Elsewhere, "fq").is_foreign(), "a queue of mq");
    assert!(!queue(0xffff, Place::Ingress, "clsact").is_foreign());
    assert!(!queue(0x8001, Place::Leaf(LeafId(1)), "netem").is_foreign());
}

#[test]
fn an_htb_with_our_number_and_the_usual_divisor_is_somebody_elses() {
    // What `tc qdisc replace dev v0 root handle 7e17: htb default 0` sends.
    let theirs = bytes(&TC_ROOT.replace("72696577", "0a000000"));
    let theirs = Queue::read(&theirs).expect("it is whole");
    assert!(theirs.is_foreign() && !theirs.is_our_root(), "{theirs:?}");
}

#[test]
fn the_limit_of_a_leaf_grows_with_rate_and_ceiling() {
    let gigabit = 125_000_000;
    assert_eq!(limit(gigabit, Span::from_millis(20)), 1_666 + 1_000);
    assert_eq!(limit(100 * gigabit, Span::from_millis(20)), 166_666 + 1_000);
    assert_eq!(limit(u64::MAX, Span::from_secs(3600)), u32::MAX);
}
