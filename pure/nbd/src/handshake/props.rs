//! Properties of the handshake, for any input of a client, however it is split.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::fixtures::two_exports;

const LIMITS: HandshakeLimits = HandshakeLimits {
    max_options: 12,
    max_option_length: 96,
    max_skipped_length: 200,
    max_output_length: 300,
};

/// The longest answer to one option from `two_exports`: the list, or all that can be told about an export.
const LONGEST_ANSWERS: usize = 250;

/// Plays a handshake with the input in portions, as a driver must. Returns the outcome and all output.
fn play(portions: &[&[u8]]) -> (Handshaking, Vec<u8>) {
    let exports = two_exports();
    let mut handshake = ServerHandshake::new(LIMITS);
    let mut sent = handshake.take_output();
    for (i, portion) in portions.iter().enumerate() {
        let mut outcome = handshake.handle_input(portion, &exports);
        loop {
            let output = handshake.take_output();
            assert!(output.len() <= LIMITS.max_output_length + LONGEST_ANSWERS, "{}", output.len());
            assert!(handshake.unit.capacity() <= 2 * LIMITS.max_option_length as usize);
            assert!(handshake.backlog.len() <= portion.len());
            sent.extend(output);
            if outcome != Handshaking::Drain {
                break;
            }
            outcome = handshake.handle_input(&[], &exports);
        }
        match outcome {
            Handshaking::NeedMore => {}
            Handshaking::Ready { session, mut rest } => {
                rest.extend(portions[i + 1..].concat());
                return (Handshaking::Ready { session, rest }, sent);
            }
            over => return (over, sent),
        }
    }
    (Handshaking::NeedMore, sent)
}

fn counted(text: &[u8]) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_be_bytes(), text].concat()
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![8 => Just(b"db".to_vec()), 1 => Just(b"".to_vec()), 1 => vec(any::<u8>(), 0..8)]
}

fn info_data() -> impl Strategy<Value = Vec<u8>> {
    (name(), vec(0_u16..6, 0..5)).prop_map(|(name, requests)| {
        let count = u16::try_from(requests.len()).unwrap().to_be_bytes();
        let requests: Vec<u8> = requests.iter().flat_map(|request| request.to_be_bytes()).collect();
        [&counted(&name)[..], &count, &requests].concat()
    })
}

fn context_data() -> impl Strategy<Value = Vec<u8>> {
    let query = prop_oneof![Just("base:allocation"), Just("base:"), Just("qemu:x")];
    (name(), vec(query, 0..3)).prop_map(|(name, queries)| {
        let count = u32::try_from(queries.len()).unwrap().to_be_bytes();
        let queries: Vec<u8> = queries.iter().flat_map(|query| counted(query.as_bytes())).collect();
        [&counted(&name)[..], &count, &queries].concat()
    })
}

/// An option with data of the kind that it takes.
fn well_formed() -> impl Strategy<Value = (u32, Vec<u8>)> {
    let bare = prop_oneof![4 => Just(option::STRUCTURED_REPLY), 2 => Just(option::LIST), 1 => any::<u32>()];
    let context = prop_oneof![Just(option::LIST_META_CONTEXT), Just(option::SET_META_CONTEXT)];
    prop_oneof![
        8 => (bare, Just(vec![])),
        8 => (context, context_data()),
        4 => (Just(option::INFO), info_data()),
        1 => (Just(option::GO), info_data()),
        1 => (Just(option::EXPORT_NAME), name()),
    ]
}

/// An option that is well formed, has arbitrary data, or has a wrong length.
fn option_message() -> impl Strategy<Value = Vec<u8>> {
    let option = prop_oneof![12 => well_formed(), 1 => (0_u32..12, vec(any::<u8>(), 0..220))];
    let lie =
        prop_oneof![40 => Just(None), 1 => any::<u32>().prop_map(Some), 1 => (0_u32..250).prop_map(Some)];
    (option, lie).prop_map(|((option, data), lie)| {
        let length = lie.unwrap_or_else(|| u32::try_from(data.len()).unwrap());
        [&wire::OPTION_MAGIC.to_be_bytes()[..], &option.to_be_bytes(), &length.to_be_bytes(), &data].concat()
    })
}

/// Input that a client might send, from plausible to plain noise.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let plausible = (prop_oneof![9 => 0_u32..4, 1 => any::<u32>()], vec(option_message(), 0..16))
        .prop_map(|(flags, options)| [&flags.to_be_bytes()[..], &options.concat()].concat());
    prop_oneof![9 => plausible, 1 => vec(any::<u8>(), 0..300)]
}

/// `input` cut at each of `cuts`, taken modulo its length.
fn split<'a>(input: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
    cuts.sort_unstable();
    let ends = cuts.iter().copied().chain([input.len()]);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    starts.zip(ends).map(|(start, end)| &input[start..end]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn the_result_does_not_depend_on_how_the_input_is_split(
        input in input(),
        cuts in vec(any::<usize>(), 0..12),
    ) {
        let whole = play(&[&input]);
        let in_portions = play(&split(&input, &cuts));
        let single_bytes: Vec<&[u8]> = input.chunks(1).collect();
        let byte_by_byte = play(&single_bytes);
        prop_assert_eq!(&whole, &in_portions);
        prop_assert_eq!(&whole, &byte_by_byte);
    }

    #[test]
    fn a_session_never_has_a_context_without_structured_replies(input in input()) {
        if let (Handshaking::Ready { session, .. }, _) = play(&[&input]) {
            prop_assert!(session.structured_replies || !session.base_allocation);
            prop_assert_eq!(two_exports().find(&session.export.name), Some(session.export));
        }
    }
}
