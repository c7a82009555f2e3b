//! Disks of the papers' arrays.
//!
//! Where the figures come from:
//!
//! - **Published**, and taken as they are: rotation, capacity, average seeks for reading and for writing,
//!   size of the buffer, and the media rate where a source is named. The write settling is the difference
//!   between the two averages.
//! - **Assumed**, and named so with each disk: cylinders, single-track and full-stroke times, of the order
//!   that is usual for disks of that class. The full stroke hardly matters, because the average fixes the
//!   middle of the seek curve.
//! - **Derived**: zones of equal width. The sectors on their tracks fall evenly from the outermost to the
//!   innermost zone, such that capacity and media rate come out right.
//! - **Measured** on a Cheetah 9LP, the model before the 18LP, for the disk simulator DiskSim 4.0
//!   (`cheetah9LP.diskspecs`): 0.28 ms of overhead for a read after a read, and a buffer in 3 segments of 561
//!   sectors. The figures of the other disks follow in proportion.

use std::num::NonZeroU32;

use weir_model::Span;

use crate::disk::geometry::even_zones;
use crate::disk::{DiskOptions, DiskOrder, SeekTimes};

/// The names of the disks.
pub(super) const NAMES: [&str; 4] = ["cheetah-18", "cheetah-18lp", "cheetah-x15", "cheetah-15k.3"];

pub(super) fn preset(name: &str) -> Option<DiskOptions> {
    Some(match name {
        "cheetah-18" => cheetah_18(),
        "cheetah-18lp" => cheetah_18lp(),
        "cheetah-x15" => cheetah_x15(),
        "cheetah-15k.3" => cheetah_15k3(),
        _ => return None,
    })
}

/// 10,000 rpm, 18 GB, as in the FC-60: Seagate Cheetah 18, ST118202LC, of 1998: 18.2 GB, the generation
/// before the 18LP, with twice its heads. Assumed, because the maker's manual (83329260) was not at hand:
/// 24 heads on 6,962 cylinders, seeks 5.7 ms reading and 6.5 ms writing on average, 0.8 ms to the next
/// track, 13.2 ms full stroke; overhead, head switch and buffer as in the 18LP. Check: six of them in
/// RAID-5 give a greedy reader 865 IO/s, and the Façade paper measured 847 IO/s (experiment
/// `facade-calibration`).
fn cheetah_18() -> DiskOptions {
    DiskOptions {
        heads: count(24),
        zones: even_zones(9, 6_962, 255, 171),
        seek: seek(800, 5_700, 13_200),
        ..cheetah_18lp()
    }
}

/// 10,000 rpm, 18 GB: Seagate Cheetah 18LP, ST318203, of 1998: 18.2 GB, seeks 5.2 ms reading and 6.0 ms
/// writing on average, buffer 1 MB. Assumed: 9,801 cylinders, 12 heads, 0.7 ms to the next track,
/// 12.2 ms full stroke. Check: its media rate is 20.7 to 30.9 MB/s, and its access time is 8.5 ms. The model
/// before it, ST39102, has 24 MB/s and 8.8 ms (Hennessy and Patterson, "Computer Architecture", 6th ed.,
/// figure 1.10).
fn cheetah_18lp() -> DiskOptions {
    DiskOptions {
        rpm: 10_000,
        heads: count(12),
        zones: even_zones(9, 9_801, 362, 243),
        seek: seek(700, 5_200, 12_200),
        write_settle: Span::from_micros(800),
        head_switch: Span::from_micros(600),
        overhead: Span::from_micros(280),
        interface: 100_000_000,
        segments: count(3),
        segment_size: 336 * 1024,
        order: DiskOrder::ShortestPositioning,
        tags: count(64),
    }
}

/// 15,000 rpm, 18 GB: Seagate Cheetah X15, ST318451, of 2000: 18.35 GB on five platters, seeks 3.9 ms reading
/// and 4.5 ms writing on average, buffer 4 MB, almost 40 MB/s sustained in the outer zone (c't 16/2000). The
/// sustained rate here is 38.5 MB/s. Assumed: 10,377 cylinders, 0.7 ms to the next track, 8.0 ms full stroke.
fn cheetah_x15() -> DiskOptions {
    DiskOptions {
        rpm: 15_000,
        heads: count(10),
        zones: even_zones(9, 10_377, 392, 299),
        seek: seek(700, 3_900, 8_000),
        write_settle: Span::from_micros(600),
        head_switch: Span::from_micros(600),
        overhead: Span::from_micros(250),
        interface: 100_000_000,
        segments: count(8),
        segment_size: 512 * 1024,
        ..cheetah_18lp()
    }
}

/// 15,000 rpm, 73 GB: Seagate Cheetah 15K.3, ST373453, of 2003: 73.4 GB, media rate 86 MB/s, access time 5.7
/// ms, hence 3.6 ms for the average seek (Hennessy and Patterson, figure 1.10), 4.0 ms for writing, buffer 8
/// MB. Assumed: 31,310 cylinders, 8 heads, 0.3 ms to the next track, 7.4 ms full stroke.
fn cheetah_15k3() -> DiskOptions {
    DiskOptions {
        rpm: 15_000,
        heads: count(8),
        zones: even_zones(12, 31_310, 672, 473),
        seek: seek(300, 3_600, 7_400),
        write_settle: Span::from_micros(400),
        head_switch: Span::from_micros(200),
        overhead: Span::from_micros(200),
        interface: 200_000_000,
        segments: count(16),
        segment_size: 512 * 1024,
        ..cheetah_18lp()
    }
}

fn seek(single_track: u64, average: u64, full_stroke: u64) -> SeekTimes {
    let [single_track, average, full_stroke] = [single_track, average, full_stroke].map(Span::from_micros);
    SeekTimes { single_track, average, full_stroke }
}

fn count(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}
