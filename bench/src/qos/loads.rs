//! What victims and hogs send, as arguments of `weir load`; and how they are started and read.

use std::time::Duration;

use super::super::bed::TestBed;
use super::super::clients::{LoadReport, Running, Second, read_seconds, read_weir_load};
use super::super::cores::End;

/// The time until rates and depth have settled. It is not judged.
pub(super) const SETTLING: Duration = Duration::from_secs(2);

/// A volume to be protected.
#[derive(Debug)]
pub(super) struct Victim {
    pub(super) arguments: &'static [&'static str],
    /// The request rate up to which it is promised something: twice what it offers in any window, because
    /// arrivals vary. Flushes count as requests.
    pub(super) up_to_iops: u32,
}

/// A neighbour that sends as fast as it can.
#[derive(Debug)]
pub(super) struct Hog {
    /// Its clients; all have requests of one size.
    pub(super) streams: &'static [&'static [&'static str]],
}

pub(super) const READS: Victim = Victim { arguments: &["--rate=500iops", "--seed=2"], up_to_iops: 1000 };

pub(super) const STATION_READS: Victim =
    Victim { arguments: &["--rate=200iops", "--seed=2"], up_to_iops: 400 };

pub(super) const MIXED: Victim =
    Victim { arguments: &["--rate=500iops", "--reads=70", "--seed=2"], up_to_iops: 1000 };

/// As a database's log: each write is followed by a flush.
pub(super) const SYNCS: Victim =
    Victim { arguments: &["--rate=200iops", "--reads=0", "--flush-every=1", "--seed=2"], up_to_iops: 800 };

/// 2,000 reads a second for 50 ms, and none for 150 ms.
pub(super) const BURSTS: Victim =
    Victim { arguments: &["--rate=500iops", "--arrivals=bursts", "--seed=2"], up_to_iops: 4000 };

pub(super) const RANDOM_READS: Hog = Hog { streams: &[&["--depth=128", "--reads=100", "--size=4KiB"]] };

pub(super) const LARGE_WRITES: Hog = Hog { streams: &[&["--depth=128", "--reads=0", "--size=128KiB"]] };

/// A file copy: the first half of the volume is read in order, and the second is written.
pub(super) const COPY: Hog = Hog {
    streams: &[
        &["--depth=32", "--reads=100", "--size=128KiB", "--pattern=sequential", "--length=512MiB"],
        &["--depth=32", "--reads=0", "--size=128KiB", "--pattern=sequential", "--offset=512MiB"],
    ],
};

/// Both at work.
#[derive(Debug)]
pub(super) struct Clients {
    victim: Running,
    hog: Vec<Running>,
}

/// What they report.
#[derive(Debug)]
pub(super) struct Reports {
    pub(super) victim: LoadReport,
    pub(super) victim_seconds: Vec<Second>,
    /// `None` if there was no hog. The rate is of all its clients; the latencies are of the first.
    pub(super) hog: Option<LoadReport>,
    pub(super) hog_seconds: Vec<Vec<Second>>,
}

impl Clients {
    /// Starts the hog, if there is one, and then the victim, at these URIs. Both settle before they count.
    ///
    /// # Errors
    /// If there is no such program.
    pub(super) fn start(
        bed: &TestBed,
        victim: (&Victim, &str),
        hog: Option<(&Hog, &str)>,
        duration: Duration,
    ) -> anyhow::Result<Self> {
        let start = |uri: &str, arguments: &[&str]| {
            let mut command = bed.cores().command(End::Client, bed.weir());
            command.args(["load", uri, "--json"]).args(arguments);
            command.arg(format!("--warm-up={}ms", SETTLING.as_millis()));
            command.arg(format!("--duration={}ms", duration.as_millis()));
            Running::start(&mut command)
        };
        let streams = hog.iter().flat_map(|(hog, uri)| hog.streams.iter().map(move |stream| (stream, uri)));
        let hog = streams.map(|(stream, uri)| start(uri, stream)).collect::<anyhow::Result<_>>()?;
        Ok(Self { victim: start(victim.1, victim.0.arguments)?, hog })
    }

    /// Waits for their end.
    ///
    /// # Errors
    /// If one fails.
    pub(super) fn finish(self) -> anyhow::Result<Reports> {
        let victim = self.victim.finish()?;
        let hog = self.hog.into_iter().map(Running::finish).collect::<anyhow::Result<Vec<_>>>()?;
        let hogs = hog.iter().map(|said| read_weir_load(said)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Reports {
            victim: read_weir_load(&victim)?,
            victim_seconds: read_seconds(&victim)?,
            hog: together(&hogs),
            hog_seconds: hog.iter().map(|said| read_seconds(said)).collect::<anyhow::Result<_>>()?,
        })
    }
}

fn together(reports: &[LoadReport]) -> Option<LoadReport> {
    let first = *reports.first()?;
    Some(LoadReport { iops: reports.iter().map(|report| report.iops).sum(), ..first })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_hog_is_that_of_all_its_clients() {
        let report = |iops| LoadReport { iops, mean_us: 1.0, p50_us: 1.0, p99_us: 1.0 };
        assert!((together(&[report(100.0), report(50.0)]).unwrap().iops - 150.0).abs() < 1e-9);
        assert!(together(&[]).is_none());
    }
}
