//! The cost of a packet-delay agent with 1,000 sessions on 50 resources: compares the benchmark of `io/agent`
//! with the bars.

use anyhow::Context;

use super::bed::{TestBed, cargo, output_of};
use super::cores::End;
use super::report::{Bar, Figure, Row, Unit};

/// The name for `--only`.
pub(super) const NAME: &str = "agent-1000-sessions";

/// The most of a core that it may take.
const PERCENT_OF_A_CORE: Bar = Bar::AtMost(1.0);
/// The most memory that it may take.
const MEMORY: Bar = Bar::AtMost(32.0 * 1024.0);

/// Builds and runs the benchmark, which needs root. Without root there are no figures.
///
/// # Errors
/// If it cannot be built or run.
pub(super) fn measure(bed: &TestBed) -> anyhow::Result<Vec<Row>> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("{NAME}: left out, because only root may have a network of its own");
        return Ok(Vec::new());
    }
    let arguments = ["bench", "--package", "weir-agent", "--bench", "agent"];
    let what = format!("cargo {}", arguments.join(" "));
    eprintln!("{NAME}: building and running the benchmark of weir-agent, about a minute");
    output_of(cargo().args(arguments).arg("--no-run"), &format!("{what} --no-run"))?;
    let mut pinned = bed.cores().command(End::Server, cargo().get_program());
    rows(&output_of(pinned.args(arguments), &what)?)
}

/// The figures of the benchmark's last line, such as `cpu_ms_per_s=7.2 resident_kib=8052`.
fn rows(said: &str) -> anyhow::Result<Vec<Row>> {
    let last = said.lines().last().unwrap_or_default();
    let figure = |name: &str| {
        let words = last.split(' ').filter_map(|word| word.split_once('='));
        let mut found = words.filter(|(key, _)| *key == name);
        let value = found.next().and_then(|(_, value)| value.parse::<f64>().ok());
        value.with_context(|| format!("{NAME}: its last line, {last:?}, has no {name}"))
    };
    let row = |what: &str, value, unit, bar| {
        Row::alone(NAME.to_owned(), what.to_owned(), Figure { value, unit }, Some(bar))
    };
    Ok(vec![
        row("CPU, of a core", figure("cpu_ms_per_s")? / 10.0, Unit::Percent, PERCENT_OF_A_CORE),
        row("memory", figure("resident_kib")?, Unit::Kibibytes, MEMORY),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundredth_of_a_core_is_ten_milliseconds_a_second() {
        let judged = |line: &str| rows(line).unwrap().iter().map(Row::met).collect::<Vec<_>>();
        assert_eq!(judged("a\ncpu_ms_per_s=9.9 resident_kib=8052"), [Some(true), Some(true)]);
        assert_eq!(judged("cpu_ms_per_s=10.1 resident_kib=33000\n"), [Some(false), Some(false)]);
        assert!(rows("no netlink").is_err());
    }
}
