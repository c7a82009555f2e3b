//! The agent's signs of life: two sets with the protocol TCP as their one element, which expires unless the
//! agent renews it. While one of them has it, TCP packets are looked up among the members.
//!
//! Members do not expire one by one. To renew a thousand of them each second would cost more than the rest of
//! the agent. And a kernel before 6.12 can only renew an element by removing and adding it. Before 6.17, a
//! look-up at that moment may find neither, and the packet overtakes those that wait in its leaf. The two
//! signs are renewed in turn, so a packet that misses one finds the other.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use weir_model::Span;

use super::attributes::{Attributes, attribute, net64};
use super::nftables::{NFTA_LIST_ELEM, elements, look_at_elements, of_elements};
use super::wire::Message;

const NFT_MSG_NEWSETELEM: u16 = 12;
const NFT_MSG_DELSETELEM: u16 = 14;
const NFTA_SET_ELEM_KEY: u16 = 1;
const NFTA_SET_ELEM_EXPIRATION: u16 = 5;
const NFTA_DATA_VALUE: u16 = 1;
const IPPROTO_TCP: u8 = 6;

/// One of the two signs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sign {
    /// The first one.
    Even,
    /// The second one.
    Odd,
}

impl Sign {
    /// Both signs.
    pub(super) const ALL: [Self; 2] = [Self::Even, Self::Odd];

    /// The name of its set.
    pub(super) fn set(self) -> &'static str {
        match self {
            Self::Even => "alive0",
            Self::Odd => "alive1",
        }
    }

    /// The number of its set within a transaction. The maps have the numbers before.
    pub(super) fn set_number(self) -> u32 {
        match self {
            Self::Even => 3,
            Self::Odd => 4,
        }
    }

    /// The sign whose turn is next.
    pub(super) fn other(self) -> Self {
        match self {
            Self::Even => Self::Odd,
            Self::Odd => Self::Even,
        }
    }
}

/// Gives a sign, for its whole time from now on. It is removed in between, whether it was there or not.
pub(super) fn renew(sign: Sign) -> Vec<Message> {
    let value = Attributes::new().bytes(NFTA_DATA_VALUE, &[IPPROTO_TCP]);
    let key = Attributes::new().nest(NFTA_SET_ELEM_KEY, &value);
    let list = Attributes::new().nest(NFTA_LIST_ELEM, &key);
    let message = |kind, flags| of_elements("give a sign of life", kind, flags, sign.set(), &list);
    vec![
        message(NFT_MSG_NEWSETELEM, NLM_F_CREATE),
        message(NFT_MSG_DELSETELEM, 0),
        message(NFT_MSG_NEWSETELEM, NLM_F_CREATE | NLM_F_EXCL),
    ]
}

/// Asks for a sign.
pub(super) fn look(sign: Sign) -> Message {
    look_at_elements("look at a sign of life", sign.set())
}

/// How long a sign still lasts, of a part of an answer to [`look`].
pub(super) fn lasts(body: &[u8]) -> Option<Span> {
    let expiration = |element| attribute(element, NFTA_SET_ELEM_EXPIRATION).and_then(net64);
    elements(body).find_map(expiration).map(Span::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_what_nft_would_send() {
        // `nft add element inet weir_throttle alive0 { tcp }`, the list of elements (nft 1.0.6).
        let nft = [0x10, 0, 1, 0x80, 0x0c, 0, 1, 0x80, 5, 0, 1, 0, 6, 0, 0, 0];
        for message in renew(Sign::Even) {
            assert!(message.body.ends_with(&nft), "{message:?}");
            assert_eq!(lasts(&message.body), None, "it does not say how long");
        }
    }

    #[test]
    fn the_time_that_is_left_is_read() {
        let element = Attributes::new().net64(NFTA_SET_ELEM_EXPIRATION, 2_500);
        let list = Attributes::new().nest(NFTA_LIST_ELEM, &element);
        assert_eq!(lasts(&of_elements("", 0, 0, "alive0", &list).body), Some(Span::from_millis(2_500)));
    }
}
