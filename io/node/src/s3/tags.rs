//! Whether the parts of an earlier upload have the data that their source has now.
//!
//! Nobody can read the parts of an upload that is not completed. But S3 gives each part a tag, which is the
//! MD5 of its bytes. The source is read again in any case, to hash the whole of it, so its parts can be
//! compared.
//!
//! MD5 guards against an accident here, not against an attacker: whoever can send parts can also write
//! objects. The tag is no MD5 in a bucket that encrypts with keys of KMS or of the customer. It often looks
//! like one, so such an upload begins anew. A tag that does not look like an MD5 is not compared.

use std::collections::VecDeque;

use md5::{Digest, Md5};

/// The tags of the parts of an upload, to be compared with the data of the source, in order.
pub struct Tags {
    /// The bytes of each part that is not yet compared, and its MD5, if its tag is one.
    parts: VecDeque<(u64, Option<u128>)>,
    /// The beginning of the first of them.
    begun: Md5,
    /// How many bytes that is.
    length: u64,
}

impl Tags {
    pub(super) fn new<'t>(parts: impl Iterator<Item = (u64, &'t str)>) -> Self {
        let parts = parts.map(|(bytes, tag)| (bytes, md5_of(tag))).collect();
        Self { parts, begun: Md5::new(), length: 0 }
    }

    /// Whether the parts go on with these bytes, as far as that is known: a part is judged at its last byte.
    /// There may be more parts than data; there must not be more data.
    #[must_use]
    pub fn go_on_with(&mut self, mut data: &[u8]) -> bool {
        while !data.is_empty() {
            let Some((bytes, expected)) = self.parts.front().copied() else { return false };
            let left = usize::try_from(bytes.saturating_sub(self.length)).unwrap_or(usize::MAX);
            let (here, later) = data.split_at(left.min(data.len()));
            self.begun.update(here);
            self.length += here.len() as u64;
            data = later;
            if self.length < bytes {
                break;
            }
            self.length = 0;
            self.parts.pop_front();
            let found = u128::from_be_bytes(self.begun.finalize_reset().into());
            if expected.is_some_and(|expected| expected != found) {
                return false;
            }
        }
        true
    }
}

/// The MD5 that a tag is, if it looks like one.
fn md5_of(tag: &str) -> Option<u128> {
    let digits = tag.trim_matches('"');
    let is_md5 = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u128::from_str_radix(digits, 16).ok().filter(|_| is_md5)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "abc", and "".
    const ABC: &str = "\"900150983cd24fb0d6963f7d28e17f72\"";
    const ANOTHER: &str = "\"d41d8cd98f00b204e9800998ecf8427e\"";

    fn tags(parts: &[(u64, &str)]) -> Tags {
        Tags::new(parts.iter().copied())
    }

    #[test]
    fn parts_are_compared_with_the_source_in_whatever_pieces_it_comes() {
        for pieces in [&["abcabc"][..], &["a", "bca", "", "bc"], &["abc", "abc"]] {
            let mut same = tags(&[(3, ABC), (3, ABC)]);
            assert!(pieces.iter().all(|piece| same.go_on_with(piece.as_bytes())), "{pieces:?}");
            let mut other = tags(&[(3, ABC), (3, ANOTHER)]);
            assert!(!pieces.iter().all(|piece| other.go_on_with(piece.as_bytes())), "{pieces:?}");
        }
    }

    #[test]
    fn a_tag_that_is_no_md5_says_nothing_and_more_data_than_parts_is_other_data() {
        for odd in
            ["", "\"etag\"", "\"900150983cd24fb0d6963f7d28e17f72-2\"", "+00150983cd24fb0d6963f7d28e17f72"]
        {
            let mut parts = tags(&[(3, odd)]);
            assert!(parts.go_on_with(b"xyz"), "{odd}");
            assert!(!parts.go_on_with(b"z"), "{odd}");
        }
        assert!(tags(&[(0, ABC), (1, "")]).go_on_with(b"") && !tags(&[(0, ABC)]).go_on_with(b"a"));
    }
}
