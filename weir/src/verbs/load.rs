//! `weir load URI`: puts a load on an NBD server, and prints rates and latencies.

use std::num::NonZeroU64;

use bytesize::ByteSize;
use clap::{Args, ValueEnum};
use weir_load::{Arrival, LoadSpec, Pace, Pattern, Target, Until};
use weir_model::{Iops, Span};

use crate::answer::Form;
use crate::config::units;
use crate::failure::Failure;
use crate::say;

/// The load.
#[derive(Args, Debug)]
pub(crate) struct LoadArguments {
    /// The export: nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH
    target: Target,
    /// Requests a second over all connections (open loop), such as 500iops; without it, each reply brings the
    /// next request (closed loop)
    #[arg(long, value_parser = iops)]
    rate: Option<Iops>,
    /// How the requests of an open loop are spread
    #[arg(long, value_enum, default_value = "poisson")]
    arrivals: ArrivalArgument,
    /// Connections
    #[arg(long, default_value_t = 1)]
    connections: u32,
    /// Requests outstanding on each connection: always this many in a closed loop, at most this many in an
    /// open one [default: 32 closed, 1024 open]
    #[arg(long)]
    depth: Option<u32>,
    /// Reads in a hundred requests; the rest are writes
    #[arg(long, default_value_t = 100, value_name = "PERCENT")]
    reads: u8,
    /// Bytes of each request
    #[arg(long, default_value = "4KiB", value_parser = size)]
    size: ByteSize,
    /// The blocks that requests go to
    #[arg(long, value_enum, default_value = "random")]
    pattern: PatternArgument,
    /// First byte of the range that is used
    #[arg(long, default_value = "0B", value_parser = size)]
    offset: ByteSize,
    /// Bytes of the range that is used [default: to the end of the export]
    #[arg(long, value_parser = size)]
    length: Option<ByteSize>,
    /// Send a flush after this number of writes of a connection
    #[arg(long, value_name = "WRITES")]
    flush_every: Option<NonZeroU64>,
    /// How long to measure
    #[arg(long, default_value = "10s", value_parser = span)]
    duration: Span,
    /// How many requests to measure, instead of how long
    #[arg(long, conflicts_with = "duration")]
    requests: Option<u64>,
    /// How long to load the server before the measurement starts
    #[arg(long, default_value = "0s", value_parser = span)]
    warm_up: Span,
    /// Seed of the random numbers: equal seeds give equal requests and equal arrivals
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ask for structured replies
    #[arg(long)]
    structured: bool,
    #[command(flatten)]
    form: Form,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum ArrivalArgument {
    /// At random instants, like requests of many independent users
    Poisson,
    /// At random instants of 50 ms, then none for 150 ms, and so on
    Bursts,
    /// At equal intervals
    Constant,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum PatternArgument {
    /// To any block, all with the same probability
    Random,
    /// To one block after the other
    Sequential,
}

/// Runs the load. Ctrl-C ends it early, with a report of the measurements so far.
///
/// # Errors
/// If there is no such server, or it breaks the connection or the protocol.
pub(crate) async fn load(arguments: LoadArguments) -> Result<(), Failure> {
    let form = arguments.form;
    let spec = arguments.into_spec()?;
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await // no way to be told: go on to the end
        }
    };
    let progress = |interval: &weir_load::Interval| {
        if !form.json {
            say::on_stderr(format_args!(
                "{:>5.0} s  offered {:>8}  completed {:>8}  errors {}  mean {}",
                interval.t_s,
                interval.offered,
                interval.completed,
                interval.errors,
                interval.mean_us.map_or("-".to_owned(), weir_table::latency),
            ));
        }
    };
    let report = weir_load::run(&spec, interrupted, progress).await?;
    form.print(&report, ToString::to_string)
}

impl LoadArguments {
    fn into_spec(self) -> Result<LoadSpec, Failure> {
        let arrivals = match self.arrivals {
            ArrivalArgument::Poisson => Arrival::Poisson,
            ArrivalArgument::Bursts => Arrival::Bursts,
            ArrivalArgument::Constant => Arrival::Constant,
        };
        let (pace, usual_depth) =
            self.rate.map_or((Pace::Closed, 32), |rate| (Pace::Open { rate, arrivals }, 1024));
        let spec = LoadSpec {
            connections: self.connections,
            pace,
            depth: self.depth.unwrap_or(usual_depth),
            read_percent: self.reads,
            block_bytes: u32::try_from(self.size.as_u64()).unwrap_or(u32::MAX),
            offset: self.offset.as_u64(),
            length: self.length.map(|length| length.as_u64()),
            pattern: match self.pattern {
                PatternArgument::Random => Pattern::Random,
                PatternArgument::Sequential => Pattern::Sequential,
            },
            seed: self.seed,
            until: self.requests.map_or(Until::Elapsed(self.duration), Until::Requests),
            warm_up: self.warm_up,
            flush_every: self.flush_every,
            structured_replies: self.structured,
            ..LoadSpec::new(self.target)
        };
        spec.check().map_err(|error| Failure::usage(format!("weir load: {error}")))?;
        Ok(spec)
    }
}

fn span(text: &str) -> Result<Span, String> {
    units::read_span(text).ok_or_else(|| "accepted: a duration such as 10s or 500ms".to_owned())
}

fn size(text: &str) -> Result<ByteSize, String> {
    units::read_size(text).ok_or_else(|| "accepted: a size such as 4KiB".to_owned())
}

fn iops(text: &str) -> Result<Iops, String> {
    units::read_iops(text).ok_or_else(|| "accepted: a rate such as 500iops".to_owned())
}
