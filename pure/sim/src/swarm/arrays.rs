//! Random arrays: every kind of member under every layout, with and without caches and ports.
//!
//! The arrays are small. Their caches hold less than a run writes, so that they fill. Their flash disks are
//! small enough to need garbage collection.

use std::num::NonZeroU32;

use rand::RngExt;
use weir_model::{Bandwidth, Span};

use super::{pick, span};
use crate::array::options::{ArrayOptions, Layout};
use crate::cache::CacheOptions;
use crate::disk::DiskOptions;
use crate::link::LinkOptions;
use crate::member::MemberOptions;
use crate::raid::RaidLevel;
use crate::random::Prng;
use crate::ssd::SsdOptions;
use crate::station::StationOptions;
use crate::unit::options::UnitOptions;

const MIB: u64 = 1 << 20;

/// An array of any kind.
pub(super) fn draw(random: &mut Prng) -> ArrayOptions {
    let units = (0..random.random_range(1..=3)).map(|_| unit(random)).collect();
    let layout = if random.random_bool(0.5) {
        Layout::Concatenated
    } else {
        Layout::Striped { unit_bytes: random.random_range(1..=256) * 4096 }
    };
    let ports = (0..random.random_range(0..=2)).map(|_| port(random)).collect();
    ArrayOptions { units, layout, ports }
}

/// Any disk of an array: its unit, and its index there.
pub(super) fn any_disk(random: &mut Prng, array: &ArrayOptions) -> (usize, usize) {
    let unit = random.random_range(0..array.units.len());
    (unit, random.random_range(0..array.units[unit].members as usize))
}

fn unit(random: &mut Prng) -> UnitOptions {
    let member = member(random);
    let raid = pick(random, &[RaidLevel::Single, RaidLevel::Raid0, RaidLevel::Raid1, RaidLevel::Raid5]);
    let members = match raid {
        RaidLevel::Single => 1,
        RaidLevel::Raid0 => random.random_range(1..=6),
        RaidLevel::Raid1 => 2 * random.random_range(1..=3),
        RaidLevel::Raid5 => random.random_range(3..=8),
    };
    let nanos_of_overhead = random.random_range(20_000..500_000);
    UnitOptions {
        member,
        members,
        raid,
        stripe_unit: random.random_range(1..=32) * 4096,
        // The smallest member has 64 MiB. Only whole rows are used, so that less than 1 MiB is lost.
        size: Some(random.random_range(4..=48) * MIB),
        cache: cache(random),
        overhead: Span::from_nanos(nanos_of_overhead),
        rebuild_rate: bandwidth(random, 100 * MIB),
    }
}

fn member(random: &mut Prng) -> MemberOptions {
    match random.random_range(0..3) {
        0 => {
            let name = pick(random, DiskOptions::PRESETS);
            MemberOptions::Disk(DiskOptions::preset(name).expect("it is listed"))
        }
        1 => {
            let name = pick(random, SsdOptions::PRESETS);
            let large = SsdOptions::preset(name).expect("it is listed");
            let block_size = NonZeroU32::new(8 * large.program_size.get()).expect("above zero");
            let full = random.random_bool(0.5);
            let (capacity, spare, write_cache) = (64 * MIB, 24 * MIB, MIB);
            MemberOptions::Ssd(SsdOptions { capacity, spare, block_size, write_cache, full, ..large })
        }
        _ => MemberOptions::Station(StationOptions {
            servers: NonZeroU32::new(random.random_range(1..=8)).expect("above zero"),
            service_time: span(random, 1, 10),
            exponential: random.random_bool(0.5),
        }),
    }
}

fn cache(random: &mut Prng) -> CacheOptions {
    if random.random_bool(0.3) {
        return CacheOptions::NONE;
    }
    let low_water = random.random_range(0.0..=1.0);
    let read_cache = random.random_range(0..=4 * MIB);
    CacheOptions {
        nvram: if random.random_bool(0.3) { 0 } else { random.random_range(4096..=2 * MIB) },
        high_water: random.random_range(low_water..=1.0),
        low_water,
        flush_after: random.random_bool(0.5).then(|| span(random, 1, 1_000)),
        destages: random.random_range(1..=16),
        filled: 0.0,
        read_cache,
        prefetch: random.random_range(0..=read_cache / 2),
    }
}

fn port(random: &mut Prng) -> LinkOptions {
    LinkOptions {
        bandwidth: bandwidth(random, 200 * MIB),
        overhead: Span::from_nanos(random.random_range(0..50_000)),
    }
}

fn bandwidth(random: &mut Prng, most: u64) -> Bandwidth {
    Bandwidth::new(random.random_range(MIB..=most)).expect("above zero")
}
