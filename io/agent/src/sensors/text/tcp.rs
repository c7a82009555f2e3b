//! What the kernel counts of TCP, from `/proc/PID/net/snmp`. Source: RFC 4022, and `tcp_set_state` and
//! `tcp_create_openreq_child` of the Linux kernel.

use super::Unfit;

/// Counters that are the same as before only if no connection has been established or has ended since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Openings {
    /// Connections that this host has begun.
    pub active: u64,
    /// Connections that others have begun.
    pub passive: u64,
    /// Connections that are established.
    pub established: u64,
}

/// The counters of the file `snmp`: a line `Tcp:` with names, and one with values.
///
/// # Errors
/// If one of the three is missing or no number.
pub fn openings(text: &str) -> Result<Openings, Unfit> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let value = |wanted: &str| {
        let mut columns = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
        columns.find(|(name, _)| *name == wanted)?.1.parse().ok()
    };
    let openings = || {
        Some(Openings {
            active: value("ActiveOpens")?,
            passive: value("PassiveOpens")?,
            established: value("CurrEstab")?,
        })
    };
    openings().ok_or_else(|| Unfit::new(text, "two lines \"Tcp:\" with ActiveOpens, PassiveOpens, CurrEstab"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_found_by_their_names() {
        let text = "Ip: Forwarding\nIp: 1\nTcp: MaxConn ActiveOpens PassiveOpens CurrEstab InSegs\nTcp: -1 3 4 2 9\n";
        assert_eq!(openings(text), Ok(Openings { active: 3, passive: 4, established: 2 }));
    }

    #[test]
    fn odd_counters_are_refused() {
        for text in ["", "Tcp: ActiveOpens PassiveOpens CurrEstab\n", "Tcp: ActiveOpens\nTcp: 1\n"] {
            assert!(openings(text).is_err(), "{text}");
        }
        assert!(openings("Tcp: ActiveOpens PassiveOpens CurrEstab\nTcp: 1 -2 3\n").is_err());
    }
}
