//! Client programs with a time limit. The message of a failure has their output.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, Transcript};

/// Debian's own interpreter. It has the module `nbd`; other interpreters in the path may not have it.
const PYTHON: &str = "/usr/bin/python3";

/// The beginning of every script.
const PRELUDE: &str = include_str!("prelude.py");

/// A program to run.
pub(crate) struct Program {
    name: String,
    command: Command,
}

/// A running program. Killed when dropped.
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

    /// Adds an argument.
    pub(crate) fn arg(mut self, arg: impl Display) -> Self {
        self.command.arg(arg.to_string());
        self
    }

    /// Adds arguments that are separated by spaces.
    pub(crate) fn args(mut self, args: &str) -> Self {
        self.command.args(args.split_whitespace());
        self
    }

    /// The directory in which it runs, and where its files go.
    pub(crate) fn directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// What it reads from standard input.
    pub(crate) fn reading(mut self, file: &Path) -> Self {
        self.command.stdin(std::fs::File::open(file).expect("the test has made it"));
        self
    }

    /// Makes it possible to type into the program.
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

    /// Runs the program to its end, whatever its exit code.
    pub(crate) fn outcome(self) -> Outcome {
        self.start().wait()
    }

    /// Runs the program, which must succeed. Returns its standard output.
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

    /// Waits for its end; it must have succeeded. Returns its standard output.
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

    /// Ends its standard input.
    pub(crate) fn end_input(&mut self) {
        drop(self.typed.take());
    }

    /// Waits until the program has written a whole line with `text` in it, and returns the line.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let found = self.out.wait_for(0, text);
        found.unwrap_or_else(|| panic!("{}: ended before it said {text:?}\n{}", self.name, self.log.text()))
    }

    /// Sends it a signal.
    pub(crate) fn signal(&mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// How many bytes it has read from files, or written to them if that is more; `None` if it has ended.
    pub(crate) fn bytes_moved(&mut self) -> Option<u64> {
        if !self.is_running() {
            return None;
        }
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.child.id())).ok()?;
        let of =
            |key: &str| -> Option<u64> { io.lines().find_map(|line| line.strip_prefix(key)?.parse().ok()) };
        of("rchar: ").max(of("wchar: "))
    }

    /// Its standard error so far.
    pub(crate) fn logged(&self) -> String {
        self.log.text()
    }

    /// Waits until it has logged a whole line with `text` in it.
    pub(crate) fn wait_for_log(&self, text: &str) {
        let found = self.log.wait_for(0, text);
        assert!(found.is_some(), "{}: ended before it logged {text:?}\n{}", self.name, self.log.text());
    }

    /// Kills it with SIGKILL, and waits for its end.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill(); // it may have ended just now
        let _ = self.child.wait();
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

/// Runs a script with libnbd, as `nbdsh` would. The script gets `uri`; `prelude.py` shows what it can use.
pub(crate) fn python(uri: &str, script: &str) -> String {
    Program::new(PYTHON).arg("-c").arg(format!("{PRELUDE}\n{script}")).arg(uri).run()
}
