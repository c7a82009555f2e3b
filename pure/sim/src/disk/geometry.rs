//! Where a sector lies: zone, cylinder, head, and the angle at which it passes under the head.
//!
//! **Modelled**: zones of cylinders with the same number of sectors on a track. Sectors are numbered cylinder
//! by cylinder, and in each cylinder head by head. With track and cylinder skew, a transfer that crosses to
//! the next track does not lose a turn.
//!
//! **Not modelled**: spare sectors, defects, serpentine layouts.
//!
//! Angles are nanoseconds of rotation, from zero up to one turn. So an angle and the time until it passes are
//! the same number, and no angle is ever converted. Sectors begin at rounded nanoseconds, and lengths are
//! differences of beginnings. Lengths rounded one by one would add up to a missed turn at the end of a long
//! run.

/// The size of a sector in bytes.
pub(crate) const SECTOR: u64 = 512;

/// A run of cylinders, from the outside in, whose tracks hold the same number of sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// How many cylinders.
    pub cylinders: u32,
    /// How many sectors of 512 bytes a track holds.
    pub sectors_per_track: u32,
}

/// Zones of about the same width. A track of the outermost zone holds `outer` sectors, and one of the
/// innermost `inner`. The recording density along a track is the same everywhere, so the number falls with
/// the radius.
pub(crate) fn even_zones(zones: u32, cylinders: u32, outer: u32, inner: u32) -> Vec<Zone> {
    let begin = |zone: u32| cylinders * zone / zones;
    let sectors = |zone: u32| outer - (outer - inner) * zone / (zones - 1);
    (0..zones)
        .map(|zone| Zone { cylinders: begin(zone + 1) - begin(zone), sectors_per_track: sectors(zone) })
        .collect()
}

/// The place of a sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) cylinder: u32,
    pub(crate) head: u32,
    pub(crate) zone: u32,
    /// Its number on its track.
    pub(crate) sector: u32,
    /// When it begins to pass, in nanoseconds of rotation.
    pub(crate) angle: u32,
}

/// How long a transfer takes, and where it leaves the heads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Transfer {
    pub(crate) nanos: u64,
    pub(crate) cylinder: u32,
    pub(crate) head: u32,
}

/// The tables from which places and transfers are computed.
#[derive(Debug)]
pub(crate) struct Geometry {
    zones: Box<[ZoneTable]>,
    heads: u32,
    period: u32,
    /// Nanoseconds from the end of a track to the beginning of the next track: in the same cylinder, and in
    /// the next cylinder.
    track_skew: u32,
    cylinder_skew: u32,
    /// By how much the first track of a cylinder is turned against the first track of the cylinder before.
    cylinder_turn: u64,
    sectors: u32,
}

#[derive(Clone, Copy, Debug)]
struct ZoneTable {
    first_sector: u32,
    first_cylinder: u32,
    sectors_per_track: u32,
    sectors_per_cylinder: u32,
    /// Nanoseconds for a sector, times 2^32, rounded up, so that a whole track takes exactly one turn.
    sector_nanos: u64,
}

impl Geometry {
    /// The geometry; `None` if it has no sectors, or 2^32 or more.
    pub(crate) fn new(
        zones: &[Zone],
        heads: u32,
        period: u32,
        track_skew: u32,
        cylinder_skew: u32,
    ) -> Option<Self> {
        let mut tables = Vec::with_capacity(zones.len());
        let (mut sectors, mut cylinders) = (0_u32, 0_u32);
        for zone in zones {
            let sectors_per_cylinder =
                zone.sectors_per_track.checked_mul(heads).filter(|&count| count > 0)?;
            tables.push(ZoneTable {
                first_sector: sectors,
                first_cylinder: cylinders,
                sectors_per_track: zone.sectors_per_track,
                sectors_per_cylinder,
                sector_nanos: (u64::from(period) << 32).div_ceil(u64::from(zone.sectors_per_track)),
            });
            sectors = sectors.checked_add(sectors_per_cylinder.checked_mul(zone.cylinders)?)?;
            cylinders = cylinders.checked_add(zone.cylinders)?;
        }
        let cylinder_turn = u64::from(heads - 1) * u64::from(track_skew) + u64::from(cylinder_skew);
        let zones = tables.into_boxed_slice();
        (sectors > 0).then_some(Self {
            zones,
            heads,
            period,
            track_skew,
            cylinder_skew,
            cylinder_turn,
            sectors,
        })
    }

    pub(crate) fn sectors(&self) -> u32 {
        self.sectors
    }

    /// Where `sector` is, which must be below [`Geometry::sectors`].
    pub(crate) fn locate(&self, sector: u32) -> Place {
        let behind = self.zones[1..].iter().take_while(|zone| zone.first_sector <= sector).count();
        let zone = &self.zones[behind];
        let inside = sector - zone.first_sector;
        let (cylinder, inside) = (inside / zone.sectors_per_cylinder, inside % zone.sectors_per_cylinder);
        let (head, inside) = (inside / zone.sectors_per_track, inside % zone.sectors_per_track);
        let cylinder = zone.first_cylinder + cylinder;
        let turned = u64::from(cylinder) * self.cylinder_turn
            + u64::from(head) * u64::from(self.track_skew)
            + zone.begin(inside);
        Place {
            cylinder,
            head,
            zone: small(behind as u64),
            sector: inside,
            angle: small(turned % u64::from(self.period)),
        }
    }

    /// The transfer of `count` sectors from `place` on, from when the first begins to pass.
    pub(crate) fn transfer(&self, place: Place, count: u32) -> Transfer {
        let Place { cylinder, head, .. } = place;
        let mut walk =
            Walk { geometry: self, zone: place.zone, cylinder, head, sector: place.sector, nanos: 0 };
        let mut left = count;
        loop {
            let (taken, nanos) = walk.rest_of_track(left);
            walk.nanos += nanos;
            left -= taken;
            if left == 0 {
                return Transfer { nanos: walk.nanos, cylinder: walk.cylinder, head: walk.head };
            }
            walk.next_track();
        }
    }

    /// How many whole sectors from `place` on pass within `nanos` of the beginning of the first, at most
    /// `limit`.
    pub(crate) fn passed(&self, place: Place, nanos: u64, limit: u32) -> u32 {
        let Place { cylinder, head, .. } = place;
        let mut walk =
            Walk { geometry: self, zone: place.zone, cylinder, head, sector: place.sector, nanos: 0 };
        let mut passed = 0;
        loop {
            let (taken, needed) = walk.rest_of_track(limit - passed);
            if walk.nanos + needed > nanos {
                let zone = &self.zones[walk.zone as usize];
                let until = (zone.begin(walk.sector) + nanos.saturating_sub(walk.nanos)) << 32;
                return passed + small((until / zone.sector_nanos).saturating_sub(u64::from(walk.sector)));
            }
            passed += taken;
            if passed == limit {
                return limit;
            }
            walk.nanos += needed;
            walk.next_track();
        }
    }

    /// Bytes a second of an endless transfer in a zone, switches included.
    #[cfg(test)]
    pub(crate) fn media_rate(&self, zone: usize) -> f64 {
        let [heads, period] = [self.heads, self.period].map(f64::from);
        let nanos =
            heads * period + f64::from(self.track_skew) * (heads - 1.0) + f64::from(self.cylinder_skew);
        f64::from(self.zones[zone].sectors_per_cylinder) * 512e9 / nanos
    }
}

impl ZoneTable {
    /// When a sector begins to pass, after the first of its track.
    fn begin(&self, sector: u32) -> u64 {
        (u64::from(sector) * self.sector_nanos) >> 32
    }
}

/// A head on its way along the tracks.
struct Walk<'a> {
    geometry: &'a Geometry,
    zone: u32,
    cylinder: u32,
    head: u32,
    sector: u32,
    nanos: u64,
}

impl Walk<'_> {
    /// How many sectors lie ahead on this track, at most `limit`, and how long they take.
    fn rest_of_track(&self, limit: u32) -> (u32, u64) {
        let zone = &self.geometry.zones[self.zone as usize];
        let taken = limit.min(zone.sectors_per_track - self.sector);
        (taken, zone.begin(self.sector + taken) - zone.begin(self.sector))
    }

    fn next_track(&mut self) {
        let Geometry { zones, heads, track_skew, cylinder_skew, .. } = self.geometry;
        self.sector = 0;
        self.head += 1;
        if self.head < *heads {
            self.nanos += u64::from(*track_skew);
            return;
        }
        self.head = 0;
        self.cylinder += 1;
        self.nanos += u64::from(*cylinder_skew);
        if zones.get(self.zone as usize + 1).is_some_and(|next| next.first_cylinder == self.cylinder) {
            self.zone += 1;
        }
    }
}

/// Converts a number that the caller knows to be small: below a turn, or a count of sectors of one disk.
#[allow(clippy::cast_possible_truncation)] // see above; this is the hot path
fn small(number: u64) -> u32 {
    debug_assert!(u32::try_from(number).is_ok());
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u32 = 6_000_000;

    fn geometry() -> Geometry {
        let zones =
            [Zone { cylinders: 3, sectors_per_track: 7 }, Zone { cylinders: 2, sectors_per_track: 5 }];
        Geometry::new(&zones, 2, PERIOD, 900_000, 1_100_000).unwrap()
    }

    #[test]
    fn sectors_are_numbered_by_track_then_head_then_cylinder_then_zone() {
        let geometry = geometry();
        assert_eq!(geometry.sectors(), 3 * 2 * 7 + 2 * 2 * 5);
        let at = |sector| {
            let place = geometry.locate(sector);
            (place.zone, place.cylinder, place.head, place.sector)
        };
        assert_eq!([at(6), at(7), at(14), at(41)], [(0, 0, 0, 6), (0, 0, 1, 0), (0, 1, 0, 0), (0, 2, 1, 6)]);
        assert_eq!([at(42), at(47), at(61)], [(1, 3, 0, 0), (1, 3, 1, 0), (1, 4, 1, 4)]);
    }

    #[test]
    fn a_transfer_of_any_length_ends_where_and_when_the_sector_behind_it_is_reached() {
        let geometry = geometry();
        for first in 0..geometry.sectors() {
            for end in first + 1..geometry.sectors() {
                let start = geometry.locate(first);
                let behind = geometry.locate(end);
                let nanos = geometry.transfer(start, end - first).nanos;
                let switch = match behind {
                    Place { sector: 1.., .. } => 0,
                    Place { head: 0, .. } => 1_100_000,
                    Place { .. } => 900_000,
                };
                let angle = (u64::from(start.angle) + nanos + switch) % u64::from(PERIOD);
                assert_eq!(angle, u64::from(behind.angle), "{first}..{end}");
            }
        }
    }

    #[test]
    fn as_many_sectors_have_passed_as_a_transfer_of_that_time_is_long() {
        let geometry = geometry();
        let place = geometry.locate(3);
        for count in 1..geometry.sectors() - 3 {
            let nanos = geometry.transfer(place, count).nanos;
            assert_eq!(geometry.passed(place, nanos + 1, 1_000.min(geometry.sectors() - 3)), count);
            assert_eq!(geometry.passed(place, nanos - 1, geometry.sectors() - 3), count - 1);
        }
    }

    #[test]
    fn nothing_without_sectors_or_beyond_their_numbers_is_a_geometry() {
        let new = |cylinders, sectors_per_track| {
            Geometry::new(&[Zone { cylinders, sectors_per_track }], 4, PERIOD, 1, 1).is_some()
        };
        assert_eq!([new(0, 9), new(9, 0), new(u32::MAX, 9), new(1, u32::MAX)], [false; 4]);
    }
}
