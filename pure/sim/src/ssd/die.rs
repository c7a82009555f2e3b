//! One die: until when it is busy, and the work that it still has to do beside reads.

/// The times of operations, in ns, and the sizes of blocks and of the cache in programming units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) read: u64,
    pub(super) program: u64,
    pub(super) erase: u64,
    pub(super) units_per_block: u32,
    /// How many programming units of the write cache each die has.
    pub(super) cached_units: u64,
}

/// A die.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Die {
    /// When its last operation ends or has ended.
    free: u64,
    /// Its work beside reads: units in the cache to program, units to copy, and blocks to erase.
    units: u64,
    copies: u64,
    erases: u64,
    /// Units programmed since it last had to erase a block.
    filled: u32,
}

impl Die {
    /// A page is asked for at `now`. Returns when it has been read.
    pub(super) fn read(&mut self, now: u64, times: &Times) -> u64 {
        self.catch_up(now, times);
        self.free = self.free.max(now) + times.read;
        self.free
    }

    /// A unit is to be programmed, and `copies` units to be copied. Returns when there is room for the unit
    /// in the cache.
    pub(super) fn program(&mut self, now: u64, copies: u64, collects: bool, times: &Times) -> u64 {
        self.catch_up(now, times);
        self.units += 1;
        self.copies += copies;
        self.filled += 1 + u32::try_from(copies).unwrap_or(u32::MAX);
        if self.filled >= times.units_per_block {
            self.filled -= times.units_per_block;
            self.erases += u64::from(collects);
        }
        let Some(over) = self.units.checked_sub(times.cached_units + 1) else { return now };
        // There is room once the unit is programmed that lies as many places ahead as the cache holds, with
        // the copies and erases for it. Reads that come until then push that back, but the waiting write does
        // not see that any more.
        let rest = self.copies * times.copy() + self.erases * times.erase;
        let share = u128::from(rest) * u128::from(over + 1) / u128::from(self.units);
        self.free.max(now) + (over + 1) * times.program + u64::try_from(share).unwrap_or(u64::MAX)
    }

    /// Does its work until `now`. Erases go first; copies take turns with the units in the cache, in
    /// proportion.
    fn catch_up(&mut self, now: u64, times: &Times) {
        while self.free < now {
            if self.erases > 0 {
                self.erases -= 1;
                self.free += times.erase;
            } else if self.copies > 0 && self.copies >= self.units {
                self.copies -= 1;
                self.free += times.copy();
            } else if self.units > 0 {
                self.units -= 1;
                self.free += times.program;
            } else if self.copies > 0 {
                self.copies -= 1;
                self.free += times.copy();
            } else {
                self.free = now;
            }
        }
    }
}

impl Times {
    /// The time to move a unit to another block of the die. The pages of all planes are read at once.
    fn copy(&self) -> u64 {
        self.read + self.program
    }
}
