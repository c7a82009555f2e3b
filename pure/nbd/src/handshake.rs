//! The server's side of the handshake: fixed newstyle, as a state machine that takes bytes.
//!
//! A parser that waits for a whole option in one read fails on the first client that sends it byte by byte. A
//! parser that buffers as much as a client announces lets a client exhaust the memory. This machine collects
//! one *unit* at a time: the client's flags, an option's header, or an option's data. It knows the bound of a
//! unit before it stores its first byte. It skips data that it does not need, and never stores them.
//!
//! `options.rs` knows what each option means, and `answers.rs` how an answer is written.

mod answers;
mod options;

use std::mem;

use crate::fields::Fields;
use crate::wire::{self, client_flag, handshake_flag, option};
use crate::{CloseReason, Exports, Session};

/// What a client may cost before it has chosen an export. The driver, which has the clock, decides how long
/// the client may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandshakeLimits {
    /// How many options a client may send; one more closes the connection.
    pub max_options: u32,
    /// Bytes of an option's data that are stored; a longer one is answered with `NBD_REP_ERR_TOO_BIG`.
    pub max_option_length: u32,
    /// Bytes of an option's data that are skipped; a longer one closes the connection.
    pub max_skipped_length: u32,
    /// Bytes of answers that may wait to be sent. With more, no option is answered until they have been
    /// taken.
    pub max_output_length: usize,
}

/// The defaults:
///
/// - 4,096 options, because `qemu-nbd --list` asks twice about each export;
/// - 8 KiB of stored data, for the longest name and 2,000 information requests or a few hundred queries;
/// - 64 KiB of skipped data;
/// - 64 KiB of answers.
impl Default for HandshakeLimits {
    fn default() -> Self {
        Self {
            max_options: 4096,
            max_option_length: 8 << 10,
            max_skipped_length: 64 << 10,
            max_output_length: 64 << 10,
        }
    }
}

/// The handshake of one connection.
///
/// It stores at most one option's data, and the input that waits until the driver takes the output. Its
/// output is at most [`HandshakeLimits::max_output_length`] bytes plus one answer; the longest answer is the
/// list of all exports.
#[derive(Debug)]
pub struct ServerHandshake {
    limits: HandshakeLimits,
    state: State,
    /// What has been collected of the unit that `state` waits for.
    unit: Vec<u8>,
    /// Input that came while too much output was waiting.
    backlog: Vec<u8>,
    output: Vec<u8>,
    options_seen: u32,
    fixed_newstyle: bool,
    no_zeroes: bool,
    structured_replies: bool,
    /// The export for which the client chose `base:allocation`, by the name that it used.
    context_export: Option<String>,
}

/// How the handshake stands after an input. In all cases, the driver first sends what
/// [`ServerHandshake::take_output`] gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Handshaking {
    /// Send the output, read more, and hand it in.
    NeedMore,
    /// Send the output, then call [`ServerHandshake::handle_input`] again, without new input. The client sent
    /// options faster than it takes the answers, and the rest of its options waits in the handshake.
    Drain,
    /// Send the output; the transmission phase has begun.
    Ready {
        /// What was agreed on.
        session: Session,
        /// Bytes that already belong to the transmission phase.
        rest: Vec<u8>,
    },
    /// Send the output (it may hold a last answer), then close.
    Closed(CloseReason),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    ClientFlags,
    OptionHeader,
    OptionData {
        option: u32,
        length: u32,
    },
    /// `left` bytes of an option's data are skipped; then it is answered with `answer`, without data.
    Skip {
        option: u32,
        left: u32,
        answer: u32,
    },
    Over,
}

/// What a unit led to.
enum Step {
    Continue,
    Enter(Session),
    Close(CloseReason),
}

impl ServerHandshake {
    /// The handshake of a new connection. Its output already has the greeting.
    pub fn new(limits: HandshakeLimits) -> Self {
        let mut output = Vec::with_capacity(wire::GREETING_LENGTH);
        output.extend_from_slice(&wire::NBD_MAGIC.to_be_bytes());
        output.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
        output.extend_from_slice(&(handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES).to_be_bytes());
        Self {
            limits,
            state: State::ClientFlags,
            unit: Vec::new(),
            backlog: Vec::new(),
            output,
            options_seen: 0,
            fixed_newstyle: false,
            no_zeroes: false,
            structured_replies: false,
            context_export: None,
        }
    }

    /// Takes any number of bytes that the client sent, and answers the options that are complete.
    ///
    /// # Panics
    /// If the handshake is over: after [`Handshaking::Ready`] or [`Handshaking::Closed`].
    pub fn handle_input(&mut self, input: &[u8], exports: &dyn Exports) -> Handshaking {
        assert_ne!(self.state, State::Over, "the handshake is over");
        if self.backlog.is_empty() {
            return self.run(input, exports);
        }
        let mut waiting = mem::take(&mut self.backlog);
        waiting.extend_from_slice(input);
        self.run(&waiting, exports)
    }

    /// The bytes to send; empty if there are none.
    pub fn take_output(&mut self) -> Vec<u8> {
        mem::take(&mut self.output)
    }

    fn run(&mut self, mut input: &[u8], exports: &dyn Exports) -> Handshaking {
        loop {
            if self.output.len() > self.limits.max_output_length {
                self.backlog = input.to_vec();
                return Handshaking::Drain;
            }
            if !self.collect(&mut input) {
                return Handshaking::NeedMore;
            }
            match self.step(exports) {
                Step::Continue => {}
                Step::Enter(session) => {
                    self.state = State::Over;
                    return Handshaking::Ready { session, rest: input.to_vec() };
                }
                Step::Close(reason) => {
                    self.state = State::Over;
                    return Handshaking::Closed(reason);
                }
            }
        }
    }

    /// Moves input to the unit. Returns whether the unit is complete.
    #[expect(clippy::unreachable, reason = "handle_input is refused once the handshake is over")]
    fn collect(&mut self, input: &mut &[u8]) -> bool {
        let wanted = match self.state {
            State::ClientFlags => 4,
            State::OptionHeader => wire::OPTION_HEADER_LENGTH,
            State::OptionData { length, .. } => length as usize,
            State::Skip { ref mut left, .. } => return skip(left, input),
            State::Over => unreachable!("no step is taken after the last"),
        };
        let missing = wanted - self.unit.len();
        let (taken, rest) = input.split_at(missing.min(input.len()));
        self.unit.extend_from_slice(taken);
        *input = rest;
        taken.len() == missing
    }

    /// Handles the unit that is complete and chooses the next one.
    #[expect(clippy::unreachable, reason = "handle_input is refused once the handshake is over")]
    fn step(&mut self, exports: &dyn Exports) -> Step {
        let unit = mem::take(&mut self.unit);
        match mem::replace(&mut self.state, State::OptionHeader) {
            State::ClientFlags => self.client_flags(&unit),
            State::OptionHeader => self.option_header(&unit),
            State::OptionData { option, .. } => self.answer_option(option, &unit, exports),
            State::Skip { option, answer, .. } => {
                answers::push(&mut self.output, option, answer, &[]);
                if option == option::ABORT { Step::Close(CloseReason::Aborted) } else { Step::Continue }
            }
            State::Over => unreachable!("no step is taken after the last"),
        }
    }

    #[expect(clippy::expect_used, reason = "a unit gets here once collect has all four of its bytes")]
    fn client_flags(&mut self, unit: &[u8]) -> Step {
        let flags = Fields::new(unit).u32().expect("the unit is complete");
        if flags & !(client_flag::FIXED_NEWSTYLE | client_flag::NO_ZEROES) != 0 {
            return Step::Close(CloseReason::UnknownClientFlags(flags));
        }
        self.fixed_newstyle = flags & client_flag::FIXED_NEWSTYLE != 0;
        self.no_zeroes = flags & client_flag::NO_ZEROES != 0;
        Step::Continue
    }

    #[expect(clippy::unreachable, reason = "a unit gets here once collect has all sixteen of its bytes")]
    fn option_header(&mut self, unit: &[u8]) -> Step {
        let mut fields = Fields::new(unit);
        let (Some(magic), Some(option), Some(length)) = (fields.u64(), fields.u32(), fields.u32()) else {
            unreachable!("the unit is complete")
        };
        if magic != wire::OPTION_MAGIC {
            return Step::Close(CloseReason::BadOptionMagic(magic));
        }
        if self.options_seen == self.limits.max_options {
            return Step::Close(CloseReason::TooManyOptions);
        }
        self.options_seen += 1;
        if !self.fixed_newstyle && option != option::EXPORT_NAME {
            return Step::Close(CloseReason::NotFixedNewstyle(option));
        }
        if length > options::longest(option, &self.limits) {
            return Step::Close(CloseReason::OptionTooLong { option, length });
        }
        if option == option::SET_META_CONTEXT {
            // It "replaces all previously-set metadata contexts (including when this command fails)".
            self.context_export = None;
        }
        self.state = match options::answer_without_data(option, length, &self.limits) {
            Some(answer) => State::Skip { option, left: length, answer },
            None => State::OptionData { option, length },
        };
        Step::Continue
    }
}

/// Drops up to `left` bytes of input. Returns whether none are left to drop.
fn skip(left: &mut u32, input: &mut &[u8]) -> bool {
    let skipped = u32::try_from(input.len()).unwrap_or(u32::MAX).min(*left);
    *left -= skipped;
    *input = input.get(skipped as usize..).unwrap_or_default();
    *left == 0
}

#[cfg(test)]
mod props;
#[cfg(test)]
mod tests;
