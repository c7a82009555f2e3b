//! The properties of a unit that cannot be seen from outside an array.

use std::num::NonZeroU32;

use weir_model::{Instant, Span};

use super::*;
use crate::event_queue::EventQueue;
use crate::member::MemberOptions;
use crate::raid::RaidLevel;
use crate::station::StationOptions;

#[test]
fn destaging_grows_with_what_is_above_low_water() {
    let service_time = Span::from_millis(5);
    let station = StationOptions { servers: NonZeroU32::MIN, service_time, exponential: false };
    let bare = UnitOptions::bare(MemberOptions::Station(station), 1 << 30);
    let cache = CacheOptions { nvram: 4 << 20, destages: 12, ..CacheOptions::NONE };
    let options = UnitOptions { members: 6, raid: RaidLevel::Raid5, cache, ..bare };
    // Low water is at 614 of 1024 blocks, high water at 819.
    let destaging = [600, 620, 720, 900].map(|blocks| {
        let mut unit = Unit::new(0, &options, Seed(1));
        let (mut events, mut done) = (EventQueue::new(), Vec::new());
        let mut turn = Turn { now: Instant::ORIGIN, events: &mut events, done: &mut done };
        for row in 0..blocks {
            unit.write(&mut turn, row, u64::from(row) << 20, 4096);
        }
        unit.destaging
    });
    assert_eq!(destaging, [0, 1, 7, 12]);
}
