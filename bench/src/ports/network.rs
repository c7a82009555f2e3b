//! Four network namespaces, each joined to the machine by a link of its own: hosts that share nothing but the
//! array.

use std::process::Command;

use anyhow::Context;

use super::super::bed::output_of;

/// How many hosts there are.
pub(super) const HOSTS: usize = 4;

/// The namespaces and their links, until dropped.
#[derive(Debug)]
pub(super) struct Network;

impl Network {
    /// Makes the namespaces. Namespaces that an earlier run left behind are removed first.
    ///
    /// # Errors
    /// If this process lacks the permission, or iproute2 is missing.
    pub(super) fn make() -> anyhow::Result<Self> {
        remove_all();
        let network = Self;
        for host in 0..HOSTS {
            let (namespace, near, far) = (namespace(host), near_end(host), far_end(host));
            let (near_address, far_address) = (array_address(host), host_address(host));
            ip(&format!("netns add {namespace}"))
                .context("network namespaces need root (CAP_SYS_ADMIN and CAP_NET_ADMIN)")?;
            ip(&format!("link add {near} type veth peer name {far} netns {namespace}"))?;
            ip(&format!("address add {near_address}/24 dev {near}"))?;
            ip(&format!("link set {near} up"))?;
            ip(&format!("-n {namespace} address add {far_address}/24 dev {far}"))?;
            ip(&format!("-n {namespace} link set {far} up"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
        }
        Ok(network)
    }

    /// Cuts the link of a host, or joins it again.
    ///
    /// # Errors
    /// If iproute2 fails.
    pub(super) fn set_link(&self, host: usize, up: bool) -> anyhow::Result<()> {
        ip(&format!("link set {} {}", near_end(host), if up { "up" } else { "down" }))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        remove_all();
    }
}

/// A command that runs in the namespace of a host.
pub(super) fn on_host(host: usize, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &namespace(host), program]);
    command
}

/// The address of the machine on the link of a host. The array and the controller listen there.
pub(super) fn array_address(host: usize) -> String {
    format!("10.213.{host}.1")
}

/// The address of a host.
pub(super) fn host_address(host: usize) -> String {
    format!("10.213.{host}.2")
}

fn namespace(host: usize) -> String {
    format!("weir-port-{host}")
}

fn near_end(host: usize) -> String {
    format!("weir-near-{host}")
}

fn far_end(host: usize) -> String {
    format!("weir-far-{host}")
}

fn remove_all() {
    for host in 0..HOSTS {
        // The links go with their namespace. It exists only if a run has left it behind.
        let _ = Command::new("ip").args(["netns", "delete", &namespace(host)]).output();
    }
}

fn ip(arguments: &str) -> anyhow::Result<()> {
    let mut command = Command::new("ip");
    command.args(arguments.split_whitespace());
    output_of(&mut command, &format!("ip {arguments}")).map(drop)
}
