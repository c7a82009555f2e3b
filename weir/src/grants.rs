//! `weir grants RECORDING...`: what volumes were let do, and when, by the recordings of any number of gateways.
//!
//! Gateways of one array are processes of their own, each with a recording of its own. Whether together they ever had more
//! at the array than they should is seen only when what all of them were granted is put in the order of its time. The
//! instants of one machine can be compared; those of several cannot.

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use weir_engine::{Entry, Event, Grant, GrantedBy};
use weir_model::{Instant, VolumeId};
use weir_recording::Reader;

use crate::decisions::recordings;
use crate::failure::Failure;

/// Which recordings, and what to hold them against.
#[derive(Args, Debug)]
pub(crate) struct GrantsArguments {
    /// Recordings of `weir record`, or directories of its --out; all of one machine
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Print no list, but check that the bounds of all volumes never add up to more than so many requests; if they do,
    /// the exit status is 1
    #[arg(long)]
    total: Option<NonZeroU32>,
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
    /// A lease is over: from then on nothing goes to the device with what was granted, however late the gateway comes to say so. What
    /// each volume falls back to; one that is not here, to one request.
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
    let mut changes = Vec::new();
    for (recording, file) in files.iter().enumerate() {
        read(file, recording, &mut changes).map_err(|error| Failure::Runtime(error.into()))?;
    }
    changes.sort_by_key(|change| change.at);
    match arguments.total {
        None => Ok(list(&files, &changes)?),
        Some(total) => check(&changes, total),
    }
}

fn read(file: &Path, recording: usize, changes: &mut Vec<Change>) -> Result<(), weir_recording::ReadError> {
    let mut reader = Reader::open(file)?;
    let (mut last, mut until, mut fallback) = (Instant::ORIGIN, None, BTreeMap::new());
    while let Some((at, entry)) = reader.next_entry()? {
        last = at;
        if let Some(over) = until.take_if(|until| *until <= at) {
            changes.push(Change { at: over, recording, what: What::Lapsed(fallback.clone()) });
        }
        let what = match entry {
            Entry::Granted { grants, .. } => {
                until = Some(grants.until).filter(|until| *until > at).or(until);
                continue;
            }
            Entry::FallbackSet { volumes } => {
                fallback = volumes.into_iter().map(|(id, grant)| (id, grant.concurrency.get())).collect();
                continue;
            }
            Entry::Reported(Event::Granted { volume, grant, by }) => What::Granted(volume, grant, by),
            Entry::VolumeRemoved { id } => What::Removed(id),
            _ => continue,
        };
        changes.push(Change { at, recording, what });
    }
    changes.push(Change { at: last, recording, what: What::Ended });
    Ok(())
}

/// As CSV, a line for each change.
fn list(files: &[PathBuf], changes: &[Change]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "at_s,recording,volume,concurrency,max_iops,max_bandwidth_bytes_per_s,by")?;
    for Change { at, recording, what } in changes {
        let What::Granted(volume, grant, by) = what else { continue };
        let at = at.since(Instant::ORIGIN).as_secs_f64();
        let iops = grant.max_iops.map_or(String::new(), |limit| limit.get().to_string());
        let bandwidth = grant.max_bandwidth.map_or(String::new(), |limit| limit.get().to_string());
        let by = match by {
            GrantedBy::Law => "law",
            GrantedBy::Controller => "controller",
            GrantedBy::Fallback => "fallback",
        };
        let (file, concurrency) = (files[*recording].display(), grant.concurrency);
        writeln!(out, "{at:.6},{file},{},{concurrency},{iops},{bandwidth},{by}", volume.0)?;
    }
    Ok(())
}

/// The highest sum that there ever was, against what it may be.
fn check(changes: &[Change], total: NonZeroU32) -> Result<(), Failure> {
    let mut bounds: BTreeMap<(usize, VolumeId), u32> = BTreeMap::new();
    let mut highest = 0;
    for now in changes.chunk_by(|one, next| one.at == next.at) {
        for Change { recording, what, .. } in now {
            match what {
                What::Granted(volume, grant, _) => {
                    bounds.insert((*recording, *volume), grant.concurrency.get());
                }
                What::Removed(volume) => drop(bounds.remove(&(*recording, *volume))),
                What::Lapsed(fallback) => {
                    for ((_, volume), bound) in bounds.iter_mut().filter(|((of, _), _)| of == recording) {
                        *bound = fallback.get(volume).copied().unwrap_or(1);
                    }
                }
                What::Ended => bounds.retain(|(of, _), _| of != recording),
            }
        }
        let sum: u64 = bounds.values().copied().map(u64::from).sum();
        if sum > u64::from(total.get()) {
            let at = now[0].at.since(Instant::ORIGIN).as_secs_f64();
            return Err(Failure::Runtime(anyhow!(
                "{at:.6} s after the start of the machine the bounds of all volumes add up to {sum} requests; \
                 accepted: at most {total}"
            )));
        }
        highest = highest.max(sum);
    }
    let number = changes.len();
    writeln!(
        std::io::stdout(),
        "the bounds of all volumes never add up to more than {highest} requests, of {total} ({number} changes)"
    )?;
    Ok(())
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
        check(changes, NonZeroU32::new(total).unwrap()).is_err()
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
}
