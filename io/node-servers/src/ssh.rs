//! `sshd` for the current user, with keys, configuration and known hosts of its own.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::process::Process;
use crate::write;

/// Where Debian has it, which is not in the path of a user.
const PROGRAM: &str = "/usr/sbin/sshd";

/// Starts `sshd` with its files in `folder`, and writes a program `ssh` there that can reach it.
pub(crate) fn start(folder: &Path) -> Result<(Process, u16), String> {
    for program in [PROGRAM, "/usr/bin/ssh", "/usr/bin/ssh-keygen"] {
        if !Path::new(program).exists() {
            return Err(format!("no {program}; `scripts/setup test` installs it"));
        }
    }
    let path = folder.display();
    for key in ["host_key", "key"] {
        let made = Command::new("/usr/bin/ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(folder.join(key))
            .status();
        assert!(made.expect("ssh-keygen starts").success(), "ssh-keygen makes keys");
    }
    // sshd cannot choose a port itself.
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = listener.local_addr().expect("a socket has an address").port();
    drop(listener);
    let public = |key: &str| {
        std::fs::read_to_string(folder.join(format!("{key}.pub"))).expect("ssh-keygen has written it")
    };
    write(&folder.join("authorized_keys"), &public("key"), 0o600);
    write(&folder.join("known_hosts"), &format!("[127.0.0.1]:{port} {}", public("host_key")), 0o600);
    let sshd = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {path}/host_key\nPidFile none\n\
         AuthorizedKeysFile {path}/authorized_keys\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\n"
    );
    write(&folder.join("sshd_config"), &sshd, 0o600);
    let ssh = format!(
        "IdentityFile {path}/key\nIdentitiesOnly yes\nIdentityAgent none\n\
         UserKnownHostsFile {path}/known_hosts\nGlobalKnownHostsFile none\nStrictHostKeyChecking yes\n"
    );
    write(&folder.join("ssh_config"), &ssh, 0o600);
    let program = format!("#!/bin/sh\nexec /usr/bin/ssh -F '{path}/ssh_config' \"$@\"\n");
    write(&folder.join("ssh"), &program, 0o700);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", include_str!("sshd.sh"), PROGRAM]).arg(folder.join("sshd_config"));
    let listens = move |line: &str| line.starts_with("Server listening on ").then_some(port);
    Ok(Process::start(&mut command, listens))
}
