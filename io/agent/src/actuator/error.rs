//! What can go wrong between the agent and the kernel, in words that say what to do.

use std::fmt;

use rustix::io::Errno;

use super::wire::Refusal;

/// Why the agent could not do to the kernel's queues and tables what it wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ActuatorError {
    /// Somebody has set the root queue of an interface.
    ForeignRoot {
        /// The interface.
        interface: String,
        /// The kind of its root queue.
        kind: String,
        /// The number of the root queue, as `tc` shows it before the colon.
        handle: u16,
    },
    /// Another agent works in this network namespace.
    OtherAgent {
        /// The netlink port of its table. As a rule that is its process.
        port: u32,
    },
    /// A table has our name and belongs to no process.
    ForeignTable,
    /// The kernel does not let this process do it.
    NotPermitted {
        /// What was not permitted.
        what: String,
    },
    /// The kernel lacks what is needed.
    Missing {
        /// What could not be done.
        what: String,
        /// The kernel module that does it.
        module: &'static str,
    },
    /// The kernel refused it for another reason.
    Refused(Refusal),
}

impl fmt::Display for ActuatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForeignRoot { interface, kind, handle } => write!(
                f,
                "{interface}: somebody has set its root queue, `{kind} {handle:x}:`; accepted is one that the \
                 kernel has made (mq, fq, fq_codel, pfifo_fast or noqueue, with the handle `0:`); remove yours \
                 with `tc qdisc del dev {interface} root`, or let the initiators log in through another \
                 interface"
            ),
            Self::OtherAgent { port } => write!(
                f,
                "another agent delays packets in this network namespace (process {port}); stop it first"
            ),
            Self::ForeignTable => write!(
                f,
                "there is a table `{table}` of nftables that belongs to no process, so it is not the agent's; \
                 remove it with `nft delete table {table}`",
                table = "inet weir_throttle"
            ),
            Self::NotPermitted { what } => write!(
                f,
                "{what}: not permitted; CAP_NET_ADMIN is missing (run as root, or give it to the service with \
                 `AmbientCapabilities=CAP_NET_ADMIN`)"
            ),
            Self::Missing { what, module } => write!(
                f,
                "{what}: the kernel cannot do this; load the module with `modprobe {module}`, or install a \
                 kernel that has it"
            ),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for ActuatorError {}

impl From<Refusal> for ActuatorError {
    fn from(refusal: Refusal) -> Self {
        let unknown = [Errno::NOENT, Errno::OPNOTSUPP, Errno::PROTONOSUPPORT, Errno::AFNOSUPPORT];
        match refusal {
            Refusal { what, errno: Errno::PERM | Errno::ACCESS, .. } => Self::NotPermitted { what },
            Refusal { what, errno, needs: Some(module), .. } if unknown.contains(&errno) => {
                Self::Missing { what, module }
            }
            refusal => Self::Refused(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(errno: Errno, needs: Option<&'static str>) -> Refusal {
        Refusal { what: "eth0: add the root queue".to_owned(), errno, said: String::new(), needs }
    }

    #[test]
    fn a_refusal_says_which_capability_or_module_is_missing() {
        let said = |errno, needs| ActuatorError::from(refusal(errno, needs)).to_string();
        assert!(said(Errno::PERM, Some("sch_htb")).contains("CAP_NET_ADMIN"));
        assert!(said(Errno::NOENT, Some("sch_htb")).contains("modprobe sch_htb"));
        let other = said(Errno::NOENT, None);
        assert!(other.starts_with("eth0: add the root queue: ") && !other.contains("modprobe"), "{other}");
    }

    #[test]
    fn a_foreign_root_is_named_with_what_to_do() {
        let foreign = ActuatorError::ForeignRoot {
            interface: "eth0".to_owned(),
            kind: "tbf".to_owned(),
            handle: 0x8001,
        };
        let said = foreign.to_string();
        for part in
            ["eth0", "`tbf 8001:`", "mq, fq,", "tc qdisc del dev eth0 root", "through another interface"]
        {
            assert!(said.contains(part), "{said}");
        }
    }
}
