//! The cores of the server and of its client.
//!
//! Without this, the kernel moves both about, and now and then puts both on one core. That costs more than
//! the differences that the bars are about. Each server has exactly one core, so a server with many threads
//! gets no more of the machine than a server with one thread.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use anyhow::Context;

/// A core for the server and one for the client; none if the machine has only one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cores {
    pair: Option<(u32, u32)>,
}

/// The two ends of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Server,
    Client,
}

impl Cores {
    /// The first two cores that this process may use.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub(super) fn find() -> anyhow::Result<Self> {
        const FILE: &str = "/proc/self/status";
        let status = fs::read_to_string(FILE).context(FILE)?;
        Ok(Self::of(&status))
    }

    fn of(status: &str) -> Self {
        let list =
            status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
        let allowed = cores_in(list);
        Self { pair: allowed.first().copied().zip(allowed.get(1).copied()) }
    }

    /// A command that runs `program` on the core of its end.
    pub(super) fn command(self, end: End, program: impl AsRef<OsStr>) -> Command {
        let Some((server, client)) = self.pair else { return Command::new(program) };
        let core = match end {
            End::Server => server,
            End::Client => client,
        };
        let mut command = Command::new("taskset");
        command.arg("--cpu-list").arg(core.to_string()).arg(program);
        command
    }

    /// Whether both ends have a core of their own.
    pub(super) const fn pinned(self) -> bool {
        self.pair.is_some()
    }
}

/// The numbers in a list such as `0-3,8`.
fn cores_in(list: &str) -> Vec<u32> {
    let mut cores = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cores.extend(first..=last);
        }
    }
    cores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_allowed_cores_are_taken() {
        let of = |list: &str| Cores::of(&format!("Name:\tx\nCpus_allowed_list:\t{list}\n")).pair;
        assert_eq!(of("0-3,8"), Some((0, 1)));
        assert_eq!(of("2,5-6"), Some((2, 5)));
        assert_eq!(of("7"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn each_end_runs_on_its_core() {
        let line = |pair, end| {
            let command = Cores { pair }.command(end, "fio");
            let words = [command.get_program()].into_iter().chain(command.get_args());
            words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line(Some((2, 5)), End::Server), "taskset --cpu-list 2 fio");
        assert_eq!(line(Some((2, 5)), End::Client), "taskset --cpu-list 5 fio");
        assert_eq!(line(None, End::Client), "fio");
    }
}
