//! What sysfs says about block devices. Source: Documentation/block/stat.rst and Documentation/ABI/stable/
//! sysfs-block of the Linux kernel.

use weir_throttle::{BlockCounters, DeviceNumber};

use super::Unfit;

/// A device's number, as in the file `dev`: `253:3`.
///
/// # Errors
/// If it is none.
pub fn number(text: &str) -> Result<DeviceNumber, Unfit> {
    let parts = text.trim().split_once(':');
    let number = parts.and_then(|(major, minor)| {
        Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
    });
    number.ok_or_else(|| Unfit::new(text, "MAJOR:MINOR"))
}

/// The file `stat`. Also says how many requests of any kind the device is working on. The counters lack
/// [`BlockCounters::reads_in_flight`], which is in another file.
///
/// # Errors
/// If one of the first nine fields is missing or no number. Later kernels append fields.
pub fn stat(text: &str) -> Result<(BlockCounters, u64), Unfit> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
    let mut next = || fields.next().flatten();
    let read = || -> Option<_> {
        let (reads, _merged, _sectors, millis) = (next()?, next()?, next()?, next()?);
        let (_writes, _merged, sectors_written, _millis, in_flight) =
            (next()?, next()?, next()?, next()?, next()?);
        // The kernel prints 32 bits here. One that prints more has the same lower bits.
        let read_millis = u32::try_from(millis & u64::from(u32::MAX)).ok()?;
        Some((BlockCounters { reads, read_millis, sectors_written, reads_in_flight: 0 }, in_flight))
    };
    let mut read = read;
    read().ok_or_else(|| Unfit::new(text, "the counters of a block device, at least nine numbers"))
}

/// What a device has done since the kernel knows it. The kernel's counters begin anew at their end.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Reads that are done.
    pub reads: u64,
    /// What they read, in sectors of 512 bytes, whatever the sectors of the device.
    pub sectors_read: u64,
    /// Writes that are done.
    pub writes: u64,
    /// What they wrote, in sectors of 512 bytes.
    pub sectors_written: u64,
    /// For how many milliseconds the device had something to do.
    pub busy_millis: u64,
}

/// The totals in the file `stat`.
///
/// # Errors
/// If one of the first ten fields is missing or no number. Later kernels append fields.
pub fn totals(text: &str) -> Result<Totals, Unfit> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
    let mut next = || fields.next().flatten();
    let mut read = || -> Option<_> {
        let (reads, _merged, sectors_read, _millis) = (next()?, next()?, next()?, next()?);
        let (writes, _merged, sectors_written, _millis) = (next()?, next()?, next()?, next()?);
        let (_in_flight, busy_millis) = (next()?, next()?);
        Some(Totals { reads, sectors_read, writes, sectors_written, busy_millis })
    };
    read().ok_or_else(|| Unfit::new(text, "the counters of a block device, at least ten numbers"))
}

/// The reads in the file `inflight`: its first number of two.
///
/// # Errors
/// If these are not two numbers.
pub fn reads_in_flight(text: &str) -> Result<u32, Unfit> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse::<u32>());
    match (fields.next(), fields.next(), fields.next()) {
        (Some(Ok(reads)), Some(Ok(_writes)), None) => Ok(reads),
        _ => Err(Unfit::new(text, "the numbers of reads and writes in flight")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_old_and_new_kernels() {
        let old = "    446  216  21952  252  71  50  968  26  3  256  279\n";
        let counters =
            BlockCounters { reads: 446, read_millis: 252, sectors_written: 968, reads_in_flight: 0 };
        assert_eq!(stat(old), Ok((counters, 3)));
        assert_eq!(stat(&format!("{} 0 0 0 0 5 6\n", old.trim_end())), Ok((counters, 3)));
        let wrapped = stat("1 0 0 4294967301 0 0 0 0 0").unwrap().0;
        assert_eq!(wrapped.read_millis, 5);
        assert_eq!(reads_in_flight("       7        9\n"), Ok(7));
    }

    #[test]
    fn the_totals_of_both_directions_are_told_apart() {
        let text = "    446  216  21952  252  71  50  968  26  3  256  279\n";
        let read =
            Totals { reads: 446, sectors_read: 21952, writes: 71, sectors_written: 968, busy_millis: 256 };
        assert_eq!(totals(text), Ok(read));
        for text in ["", "1 2 3 4 5 6 7 8 9", "1 2 3 4 5 6 7 8 9 x", "-1 2 3 4 5 6 7 8 9 10"] {
            assert!(totals(text).is_err(), "{text}");
        }
    }

    #[test]
    fn odd_counters_are_refused() {
        for text in
            ["", "1 2 3", "a b c d e f g h i", "1 2 3 4 5 6 7 8 -1", "99999999999999999999 0 0 0 0 0 0 0 0"]
        {
            assert!(stat(text).is_err(), "{text}");
        }
        for text in ["", "1", "1 2 3", "-1 0", "99999999999 0"] {
            assert!(reads_in_flight(text).is_err(), "{text}");
        }
        for text in ["", "8", "8:", ":1", "8:1:2", "-8:1", "x:y"] {
            assert!(number(text).is_err(), "{text}");
        }
        assert_eq!(number("253:3\n"), Ok(DeviceNumber { major: 253, minor: 3 }));
    }
}
