//! Client programs, with a limit on their time and their output in the message of a failure.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, Transcript};

/// Debian's own interpreter: it has the module `nbd`, others in the path may not.
const PYTHON: &str = "/usr/bin/python3";

/// What every script starts with.
const PRELUDE: &str = include_str!("prelude.py");

/// A program that is to be run.
pub(crate) struct Program {
    name: String,
    command: Command,
}

/// A program that runs. Killed when dropped.
pub(crate) struct Running {
    name: String,
    child: Child,
    typed: Option<ChildStdin>,
    out: Transcript,
    log: Transcript,
}

/// How a program ended.
pub(crate) struct Outcome {
    /// Its exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// Its standard output.
    pub(crate) out: String,
    /// Its standard error.
    pub(crate) log: String,
}

impl Program {
    /// A program of the path.
    pub(crate) fn new(name: &str) -> Self {
        let mut command = Command::new(name);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { name: name.to_owned(), command }
    }

    /// The binary under test.
    pub(crate) fn weir() -> Self {
        Self::new(env!("CARGO_BIN_EXE_weir"))
    }

    /// One argument more.
    pub(crate) fn arg(mut self, arg: impl Display) -> Self {
        self.command.arg(arg.to_string());
        self
    }

    /// Arguments, separated by spaces.
    pub(crate) fn args(mut self, args: &str) -> Self {
        self.command.args(args.split_whitespace());
        self
    }

    /// Where it runs, and leaves what it leaves.
    pub(crate) fn directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Something will be typed into it.
    pub(crate) fn typed_to(mut self) -> Self {
        self.command.stdin(Stdio::piped());
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// If there is no such program.
    pub(crate) fn start(mut self) -> Running {
        let mut child = match self.command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                panic!("{}: missing; install it: make setup", self.name)
            }
            Err(error) => panic!("{}: {error}", self.name),
        };
        let out = Transcript::of(child.stdout.take().expect("piped"));
        let log = Transcript::of(child.stderr.take().expect("piped"));
        Running { name: format!("{:?}", self.command), typed: child.stdin.take(), child, out, log }
    }

    /// Runs it to its end, however it ends.
    pub(crate) fn outcome(self) -> Outcome {
        self.start().wait()
    }

    /// Runs it, and expects that it succeeds. Returns its standard output.
    pub(crate) fn run(self) -> String {
        self.start().succeed()
    }
}

impl Running {
    /// Waits for its end.
    ///
    /// # Panics
    /// If it takes too long.
    pub(crate) fn wait(mut self) -> Outcome {
        let pid = Pid::from_child(&self.child);
        let (ended, end) = channel();
        thread::scope(|scope| {
            scope.spawn(|| ended.send(self.child.wait()));
            if matches!(end.recv_timeout(PATIENCE), Err(RecvTimeoutError::Timeout)) {
                let _ = kill_process(pid, Signal::KILL);
                panic!("{}: takes too long\n{}\n{}", self.name, self.out.text(), self.log.text());
            }
        });
        let code = self.child.wait().expect("a child can be waited for").code();
        Outcome { code, out: self.out.to_end(), log: self.log.to_end() }
    }

    /// Waits for its end, and expects that it succeeded. Returns its standard output.
    pub(crate) fn succeed(self) -> String {
        let name = self.name.clone();
        let Outcome { code, out, log } = self.wait();
        assert!(!log.contains("No module named 'nbd'"), "python3-libnbd: missing; install it: make setup");
        assert_eq!(code, Some(0), "{name}\n{out}\n{log}");
        out
    }

    /// Types a line into it.
    pub(crate) fn type_line(&mut self, line: &str) {
        let typed = self.typed.as_mut().expect("it was started to be typed to");
        writeln!(typed, "{line}").expect("it reads what is typed");
    }

    /// Waits until it says something, in a line that it has finished.
    pub(crate) fn wait_for(&self, text: &str) {
        let found = self.out.wait_for(0, text);
        assert!(found.is_some(), "{}: ended before it said {text:?}\n{}", self.name, self.log.text());
    }

    /// Sends it a signal.
    pub(crate) fn signal(&mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a script with libnbd, as `nbdsh` would, that is given `uri`. See `prelude.py` for what it can use.
pub(crate) fn python(uri: &str, script: &str) -> String {
    Program::new(PYTHON).arg("-c").arg(format!("{PRELUDE}\n{script}")).arg(uri).run()
}
