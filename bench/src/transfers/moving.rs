//! `weir put` and `weir get` beside the tools that people use otherwise, in turn.
//!
//! Before each measurement the disk has written what it had to: a rival that does not flush leaves that to
//! the next one. The source is in the page cache. Time is that of the whole command, with its start.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;

use super::MIB;
use super::s3::key;
use super::site::{Direction, Place, Site, run, warm};
use crate::bed::TestBed;
use crate::effort::Effort;
use crate::progress::Progress;
use crate::report::{Bar, Figure, Row, Unit};
use crate::statistics::median;

/// The least rate, as a share of the first rival's.
const RATE: Bar = Bar::AtLeast(0.9);

/// One object that is moved again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub(super) direction: Direction,
    pub(super) place: Place,
    /// How many MiB it has.
    pub(super) mib: u32,
}

/// What moves it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mover {
    Weir,
    /// `cp`, which leaves the data in the page cache.
    Cp,
    /// `cp`, and then a flush of the file and of its folder, as weir does it.
    CpAndSync,
    /// `aws s3 cp`.
    Aws,
}

/// The seconds of each mover in a round, in the order of [`Moving::movers`].
type Round = Vec<f64>;

impl Moving {
    /// Its name, such as `transfers-put-local-1024m`.
    pub(super) fn name(self) -> String {
        let direction = match self.direction {
            Direction::Put => "put",
            Direction::Get => "get",
        };
        let place = match self.place {
            Place::Local => "local",
            Place::S3 => "s3",
        };
        format!("transfers-{direction}-{place}-{}m", self.mib)
    }

    /// weir, then its rivals. The bar is for the first of them.
    const fn movers(self) -> &'static [Mover] {
        match self.place {
            Place::Local => &[Mover::Weir, Mover::Cp, Mover::CpAndSync],
            Place::S3 => &[Mover::Weir, Mover::Aws],
        }
    }

    /// Measures it.
    ///
    /// # Errors
    /// If a command fails.
    pub(super) fn measure(
        self,
        bed: &TestBed,
        effort: Effort,
        progress: &mut Progress,
    ) -> anyhow::Result<Vec<Row>> {
        let name = self.name();
        let site = match Site::start(bed, &name, self.place)? {
            Ok(site) => site,
            Err(why) => {
                progress.advance(effort.rounds, &format!("{name}: left out: {why}"));
                return Ok(Vec::new());
            }
        };
        let source = bed.file_of(&format!("transfers-{}m.img", self.mib), self.bytes())?;
        let job = Job { moving: self, site: &site, source };
        job.prepare()?;
        let movers = self.movers();
        let mut rounds: Vec<Round> = Vec::new();
        for number in 0..effort.rounds as usize {
            let mut round = vec![f64::NAN; movers.len()];
            for turn in 0..movers.len() {
                let at = (number + turn) % movers.len();
                round[at] = job.time(movers[at])?;
            }
            let times: Vec<_> =
                movers.iter().zip(&round).map(|(mover, s)| format!("{} {s:.3} s", mover.name())).collect();
            let of = effort.rounds;
            progress.advance(1, &format!("{name}, round {} of {of}: {}", number + 1, times.join(", ")));
            rounds.push(round);
        }
        Ok(self.rows(&rounds))
    }

    fn bytes(self) -> u64 {
        u64::from(self.mib) * MIB
    }

    #[allow(clippy::cast_precision_loss)] // far below 2^53 bytes
    fn rows(self, rounds: &[Round]) -> Vec<Row> {
        let megabytes = self.bytes() as f64 / 1e6;
        let rate = |of: usize| {
            let value = median(rounds.iter().map(|round| megabytes / round[of]));
            Figure { value, unit: Unit::MegabytesASecond }
        };
        let row = |(at, rival): (usize, &Mover)| Row {
            case: self.name(),
            what: format!("rate; other: {}", rival.name()),
            weir: rate(0),
            other: Some(rate(at)),
            compared: Some(Figure {
                value: median(rounds.iter().map(|round| round[at] / round[0])),
                unit: Unit::Ratio,
            }),
            bar: (at == 1).then_some(RATE),
        };
        self.movers().iter().enumerate().skip(1).map(row).collect()
    }
}

impl Mover {
    const fn name(self) -> &'static str {
        match self {
            Self::Weir => "weir",
            Self::Cp => "cp",
            Self::CpAndSync => "cp and sync",
            Self::Aws => "aws s3 cp",
        }
    }
}

/// A case that runs.
struct Job<'s> {
    moving: Moving,
    site: &'s Site,
    /// The file that is put, and that the object to get is made of.
    source: PathBuf,
}

/// The object that is got.
const STORED: &str = "stored";
/// What is made in each measurement, and removed after it.
const MADE: &str = "made";

impl Job<'_> {
    /// Stores what is to be got.
    fn prepare(&self) -> anyhow::Result<()> {
        match self.moving.direction {
            Direction::Put => Ok(()),
            Direction::Get => run(&mut self.site.weir("put", &[path(&self.source)?, "--name", STORED])),
        }
    }

    /// How many seconds a mover takes.
    fn time(&self, mover: Mover) -> anyhow::Result<f64> {
        let from = self.from();
        if let Some(from) = &from {
            warm(from, self.moving.bytes())?;
        }
        rustix::fs::sync();
        let mut command = self.command(mover)?;
        let began = Instant::now();
        run(&mut command)?;
        let took = began.elapsed().as_secs_f64();
        self.clean(mover)?;
        Ok(took)
    }

    /// The file that is read, if it is one.
    fn from(&self) -> Option<PathBuf> {
        match (self.moving.direction, self.moving.place) {
            (Direction::Put, _) => Some(self.source.clone()),
            (Direction::Get, Place::Local) => Some(self.site.object(STORED)),
            (Direction::Get, Place::S3) => None,
        }
    }

    /// The file that is made, if it is one.
    fn to(&self, mover: Mover) -> PathBuf {
        match (self.moving.direction, mover) {
            (Direction::Put, Mover::Weir) => self.site.object(MADE),
            _ => self.site.folder().join(MADE),
        }
    }

    fn command(&self, mover: Mover) -> anyhow::Result<Command> {
        let to = self.to(mover);
        match (mover, self.moving.direction) {
            (Mover::Weir, Direction::Put) => {
                Ok(self.site.weir("put", &[path(&self.source)?, "--name", MADE]))
            }
            (Mover::Weir, Direction::Get) => Ok(self.site.weir("get", &[STORED, "--output", path(&to)?])),
            (Mover::Aws, direction) => {
                let s3 = self.site.s3().context("the case has a server of S3")?;
                let mut command = s3.aws(|program| self.site.client(program));
                match direction {
                    Direction::Put => command.arg(&self.source).arg(key(MADE)),
                    Direction::Get => command.arg(key(STORED)).arg(&to),
                };
                Ok(command)
            }
            (Mover::Cp | Mover::CpAndSync, _) => {
                let from = self.from().context("cp reads a file")?;
                // `sync` of coreutils flushes the named files, and a folder itself.
                let script = match mover {
                    Mover::CpAndSync => r#"cp "$0" "$1" && sync "$1" "$2""#,
                    _ => r#"cp "$0" "$1""#,
                };
                let mut command = Command::new("sh");
                command.args(["-c", script]).args([&from, &to]).arg(self.site.folder());
                Ok(command)
            }
        }
    }

    /// Removes what a mover has made. aws replaces its object the next time.
    fn clean(&self, mover: Mover) -> anyhow::Result<()> {
        match (mover, self.moving.direction) {
            (Mover::Weir, Direction::Put) => run(&mut self.site.weir("rm", &[MADE])),
            (Mover::Aws, Direction::Put) => Ok(()),
            _ => {
                let made = self.to(mover);
                fs::remove_file(&made).with_context(|| made.display().to_string())
            }
        }
    }
}

fn path(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("{}: its path is no UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: Moving = Moving { direction: Direction::Put, place: Place::Local, mib: 100 };

    #[test]
    fn the_bar_is_for_cp_and_the_ratio_is_the_median_of_the_rounds() {
        let rows = LOCAL.rows(&[vec![1.0, 0.8, 2.0], vec![1.0, 0.9, 2.2], vec![2.0, 2.0, 4.2]]);
        let compared = |row: &Row| row.compared.map(|figure| (figure.value * 1e3).round());
        assert_eq!([compared(&rows[0]), compared(&rows[1])], [Some(900.0), Some(2_100.0)]);
        assert_eq!([rows[0].met(), rows[1].met()], [Some(true), None]);
        assert_eq!((rows[0].weir.value.round(), rows.len()), (105.0, 2));
    }
}
