//! `weir grants RECORDING...`: what volumes were let do, and when, by the recordings of any number of
//! gateways.
//!
//! Gateways of one array are processes of their own, each with a recording of its own. Whether together they
//! ever had more at the array than they should is seen only when what all of them were granted is put in the
//! order of its time. The instants of one machine can be compared; those of several cannot.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use weir_engine::{Entry, Event, Grant, GrantedBy, Input};
use weir_model::{Instant, Iops, VolumeId};
use weir_recording::{ReadError, Reader};

use crate::answer::{Form, json_line};
use crate::failure::Failure;
use crate::say;
use crate::verbs::replay::decisions::recordings;

/// Volumes of all recordings at a time: a file that says more was made up, and is not to take all memory.
const MOST_VOLUMES: usize = 1 << 20;

/// Which recordings, and what to hold them against.
#[derive(Args, Debug)]
pub(crate) struct GrantsArguments {
    /// Recordings of `weir record`, or directories of its --out; all of one machine
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Print no list. Check instead that the bounds of all volumes never add up to more than this number of
    /// requests; if they do, the exit status is 1
    #[arg(long)]
    total: Option<NonZeroU32>,
    #[command(flatten)]
    form: Form,
}

/// A bound that was granted, as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    at_s: f64,
    recording: String,
    volume: u32,
    concurrency: u32,
    max_iops: Option<f64>,
    max_bandwidth_bytes_per_s: Option<u64>,
    by: &'a str,
}

/// The sum that there ever was.
#[derive(Serialize)]
struct Sum {
    highest_requests: u64,
    total_requests: u32,
    changes: u64,
}

/// Something that a recording says about what its volumes may do.
#[derive(Clone, Debug)]
struct Change {
    at: Instant,
    /// Which of the recordings.
    recording: usize,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Granted(VolumeId, Grant, GrantedBy),
    Removed(VolumeId),
    /// A lease is over: from then on nothing goes to the device with what was granted, however late the
    /// gateway comes to say so. What each volume falls back to; one that is not here, to one request.
    Lapsed(BTreeMap<VolumeId, u32>),
    /// The recording ends, and with it what its volumes may do.
    Ended,
}

/// Lists them, or checks their sum.
///
/// # Errors
/// If a file cannot be read as a recording, or the sum is above the total.
pub(crate) fn grants(arguments: &GrantsArguments) -> Result<(), Failure> {
    let mut files = Vec::new();
    for path in &arguments.paths {
        files.extend(recordings("RECORDING", path)?);
    }
    let changes = Merged::open(&files)?;
    match arguments.total {
        None => list(&files, changes, arguments.form),
        Some(total) => {
            let sum = check(changes, total)?;
            arguments.form.print(&sum, |Sum { highest_requests, total_requests, changes }| {
                format!(
                    "the bounds of all volumes never add up to more than {highest_requests} requests, of \
                     {total_requests} ({changes} changes)"
                )
            })
        }
    }
}

/// The changes of all recordings in the order of their time; of one instant, in the order of the recordings.
/// One entry of each is in memory, as a recording may be longer than that.
struct Merged {
    recordings: Vec<Recorded>,
    /// The next change of each.
    heads: Vec<Option<Change>>,
}

impl Merged {
    fn open(files: &[PathBuf]) -> Result<Self, ReadError> {
        let mut recordings = Vec::new();
        let mut heads = Vec::new();
        for (recording, file) in files.iter().enumerate() {
            let mut recorded = Recorded::open(file, recording)?;
            heads.push(recorded.next_change()?);
            recordings.push(recorded);
        }
        Ok(Self { recordings, heads })
    }
}

impl Iterator for Merged {
    type Item = Result<Change, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let heads = self.heads.iter_mut().zip(&mut self.recordings);
        let ahead = heads.filter_map(|(head, recorded)| Some((head.as_ref()?.at, head, recorded)));
        let (_, head, recorded) = ahead.min_by_key(|(at, ..)| *at)?;
        match recorded.next_change() {
            Ok(next) => std::mem::replace(head, next).map(Ok),
            Err(error) => {
                self.heads.clear();
                Some(Err(error))
            }
        }
    }
}

/// The changes of a recording, in the order of their time.
struct Recorded {
    reader: Reader,
    recording: usize,
    /// Read, and not yet handed out.
    ahead: VecDeque<Change>,
    last: Instant,
    /// When the lease is over.
    until: Option<Instant>,
    fallback: BTreeMap<VolumeId, u32>,
    has_ended: bool,
}

impl Recorded {
    fn open(file: &Path, recording: usize) -> Result<Self, ReadError> {
        Ok(Self {
            reader: Reader::open(file)?,
            recording,
            ahead: VecDeque::new(),
            last: Instant::ORIGIN,
            until: None,
            fallback: BTreeMap::new(),
            has_ended: false,
        })
    }

    fn next_change(&mut self) -> Result<Option<Change>, ReadError> {
        while self.ahead.is_empty() && !self.has_ended {
            match self.reader.next_entry()? {
                Some((at, entry)) => self.take(at, entry),
                None => {
                    self.has_ended = true;
                    self.push(self.last, What::Ended);
                }
            }
        }
        Ok(self.ahead.pop_front())
    }

    fn take(&mut self, at: Instant, entry: Entry) {
        self.last = at;
        if let Some(over) = self.until.take_if(|until| *until <= at) {
            self.push(over, What::Lapsed(self.fallback.clone()));
        }
        match entry {
            Entry::Applied { input, .. } => self.take_input(at, input),
            Entry::Reported(Event::Granted { volume, grant, by }) => {
                self.push(at, What::Granted(volume, grant, by));
            }
            _ => {}
        }
    }

    fn take_input(&mut self, at: Instant, input: Input) {
        match input {
            Input::Grants(grants) => {
                self.until = Some(grants.until).filter(|until| *until > at).or(self.until);
            }
            Input::SetFallback(volumes) => {
                self.fallback =
                    volumes.into_iter().map(|(id, grant)| (id, grant.concurrency.get())).collect();
            }
            Input::RemoveVolume { id } => self.push(at, What::Removed(id)),
            _ => {}
        }
    }

    fn push(&mut self, at: Instant, what: What) {
        self.ahead.push_back(Change { at, recording: self.recording, what });
    }
}

/// As CSV or as JSON, a line for each change.
fn list(files: &[PathBuf], changes: Merged, form: Form) -> Result<(), Failure> {
    let mut out = say::out();
    if !form.json {
        writeln!(out, "at_s,recording,volume,concurrency,max_iops,max_bandwidth_bytes_per_s,by")?;
    }
    for change in changes {
        let Change { at, recording, what: What::Granted(volume, grant, by) } = change? else { continue };
        let at = at.since(Instant::ORIGIN).as_secs_f64();
        let iops = grant.max_iops.map(|limit| Iops::from(limit).get());
        let bandwidth = grant.max_bandwidth.map(|limit| limit.get());
        let by = match by {
            GrantedBy::Law => "law",
            GrantedBy::Controller => "controller",
            GrantedBy::Fallback => "fallback",
        };
        let (file, concurrency) = (files[recording].display(), grant.concurrency);
        if form.json {
            let line = Line {
                at_s: at,
                recording: file.to_string(),
                volume: volume.0,
                concurrency: concurrency.get(),
                max_iops: iops,
                max_bandwidth_bytes_per_s: bandwidth,
                by,
            };
            writeln!(out, "{}", json_line(&line)?)?;
            continue;
        }
        let iops = iops.map_or(String::new(), |limit| limit.to_string());
        let bandwidth = bandwidth.map_or(String::new(), |limit| limit.to_string());
        writeln!(out, "{at:.6},{file},{},{concurrency},{iops},{bandwidth},{by}", volume.0)?;
    }
    Ok(())
}

/// The highest sum that there ever was, against what it may be. What changes at one instant counts when all
/// of it has.
fn check(
    changes: impl Iterator<Item = Result<Change, ReadError>>,
    total: NonZeroU32,
) -> Result<Sum, Failure> {
    let mut bounds = Bounds::default();
    let (mut highest, mut number, mut now) = (0, 0_u64, Instant::ORIGIN);
    for change in changes {
        let change = change?;
        if change.at > now {
            highest = highest.max(bounds.sum_within(now, total)?);
            now = change.at;
        }
        bounds.take(change)?;
        number += 1;
    }
    highest = highest.max(bounds.sum_within(now, total)?);
    Ok(Sum { highest_requests: highest, total_requests: total.get(), changes: number })
}

/// What is in force, by recording and volume.
#[derive(Default)]
struct Bounds(BTreeMap<(usize, VolumeId), u32>);

impl Bounds {
    fn take(&mut self, Change { recording, what, .. }: Change) -> Result<(), Failure> {
        match what {
            What::Granted(volume, grant, _) => {
                self.0.insert((recording, volume), grant.concurrency.get());
            }
            What::Removed(volume) => drop(self.0.remove(&(recording, volume))),
            What::Lapsed(fallback) => {
                for ((_, volume), bound) in self.0.iter_mut().filter(|((of, _), _)| *of == recording) {
                    *bound = fallback.get(volume).copied().unwrap_or(1);
                }
            }
            What::Ended => self.0.retain(|(of, _), _| *of != recording),
        }
        if self.0.len() <= MOST_VOLUMES {
            return Ok(());
        }
        Err(Failure::Runtime(anyhow!(
            "the recordings make no sense: found more than {MOST_VOLUMES} volumes at a time; accepted: no more"
        )))
    }

    fn sum_within(&self, at: Instant, total: NonZeroU32) -> Result<u64, Failure> {
        let sum = self.0.values().map(|bound| u64::from(*bound)).sum(); // of a million, far below 2^64
        if sum <= u64::from(total.get()) {
            return Ok(sum);
        }
        let at = at.since(Instant::ORIGIN).as_secs_f64();
        Err(Failure::Runtime(anyhow!(
            "{at:.6} s after the start of the machine the bounds of all volumes add up to {sum} requests; \
             accepted: at most {total}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(millis: u64, recording: usize, what: What) -> Change {
        Change { at: Instant::from_nanos(millis * 1_000_000), recording, what }
    }

    const fn granted(concurrency: u32) -> What {
        let concurrency = NonZeroU32::new(concurrency).unwrap();
        let grant = Grant { concurrency, max_iops: None, max_bandwidth: None };
        What::Granted(VolumeId(0), grant, GrantedBy::Law)
    }

    fn exceeds(changes: &[Change], total: u32) -> bool {
        check(changes.iter().cloned().map(Ok), NonZeroU32::new(total).unwrap()).is_err()
    }

    #[test]
    fn a_cut_makes_room_from_the_same_instant_on_and_a_moment_earlier_does_not() {
        let moved = |cut, raise| {
            let mut changes = [
                change(0, 0, granted(6)),
                change(0, 1, granted(4)),
                change(cut, 0, granted(4)),
                change(raise, 1, granted(6)),
            ];
            changes.sort_by_key(|change| change.at);
            changes
        };
        assert!(!exceeds(&moved(10, 10), 10));
        assert!(!exceeds(&moved(10, 11), 10));
        assert!(exceeds(&moved(11, 10), 10));
    }

    #[test]
    fn what_was_granted_ends_with_its_lease_however_late_the_gateway_says_so() {
        let lapsed = |fallback: u32| {
            let fallback = BTreeMap::from([(VolumeId(0), fallback)]);
            [change(0, 0, granted(6)), change(5, 0, What::Lapsed(fallback)), change(6, 1, granted(6))]
        };
        assert!(!exceeds(&lapsed(4), 10));
        assert!(exceeds(&lapsed(5), 10));
    }

    #[test]
    fn what_a_recording_granted_ends_with_it_and_with_its_volume() {
        let of = |what| [change(0, 0, granted(6)), change(1, 0, what), change(2, 1, granted(6))];
        assert!(!exceeds(&of(What::Ended), 10));
        assert!(!exceeds(&of(What::Removed(VolumeId(0))), 10));
        assert!(exceeds(&of(granted(5)), 10));
    }
    #[test]
    fn sums_beyond_any_number_of_requests_are_refused_and_do_not_overflow() {
        let many: Vec<_> = (0..5).map(|recording| change(0, recording, granted(u32::MAX))).collect();
        assert!(exceeds(&many, u32::MAX));
    }
}
