//! Objects stored, read, and taken over from a node.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use weir_clock::Clock;
use weir_coordinator::{ClientError, Stored, Target, What};
use weir_node::ObjectName;

use super::name;
use crate::answer::{Form, json_line};
use crate::failure::Failure;
use crate::say;
use crate::terminal::printable;
use crate::transfers::asked::AskedArguments;
use crate::transfers::bars::Bars;
use crate::transfers::shapes::Moved;
use crate::transfers::{CoordinatorArgument, failure, text};

/// What is put.
#[derive(Args, Debug)]
pub(crate) struct PutArguments {
    /// The file; - for standard input
    file: PathBuf,
    /// The name of the object [default: the file's name without its folders]
    #[arg(long)]
    name: Option<String>,
    /// How many replicas, each in another failure domain
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    replicas: u32,
    #[command(flatten)]
    asked: AskedArguments,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    coordinator: CoordinatorArgument,
}

/// What is got.
#[derive(Args, Debug)]
pub(crate) struct GetArguments {
    /// The object
    name: String,
    /// The new file, or - for standard output [default: the object's name without its folders]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    asked: AskedArguments,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    coordinator: CoordinatorArgument,
}

/// What is taken over.
#[derive(Args, Debug)]
pub(crate) struct ImportArguments {
    /// The node
    node: String,
    /// The path of the file on it, which becomes the object's name
    path: String,
    #[command(flatten)]
    asked: AskedArguments,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    coordinator: CoordinatorArgument,
}

/// Stores an object.
///
/// # Errors
/// If a replica could not be stored. Those that could be stay.
pub(crate) async fn put(arguments: PutArguments) -> Result<(), Failure> {
    let PutArguments { file, name: named, replicas, asked, form, coordinator } = arguments;
    let is_pipe = file.as_os_str() == "-";
    let named = match (named, is_pipe) {
        (Some(named), _) => name(&named)?,
        (None, true) => {
            return Err(Failure::usage("--name: found nothing; accepted: the name of the object"));
        }
        (None, false) => name(&file_name(&file)?)?,
    };
    let client = coordinator.client()?;
    let mut bars = Bars::new();
    let watched = (1..=replicas).map(|replica| match replicas {
        1 => bars.watched(named.as_str()),
        _ => bars.watched(&format!("{named} ({replica} of {replicas})")),
    });
    let watched = watched.collect();
    let clock = Clock::new();
    let since = clock.now();
    let what = if is_pipe { What::Stdin } else { What::File(file) };
    let results = client.put(&named, &what, &asked.asked(), watched).await;
    bars.finish().await;
    let passed = clock.now().saturating_since(since);
    let (mut stored, mut failed) = (0, Vec::<ClientError>::new());
    // Nothing was begun if the file itself cannot be read.
    for result in results.map_err(Failure::usage)? {
        match result {
            Ok(one) => {
                stored += 1;
                say_stored(form, &named, "stored on", &one, passed)?;
            }
            // What is wrong with all replicas is said once.
            Err(error) if failed.iter().any(|other| other.to_string() == error.to_string()) => {}
            Err(error) => failed.push(error),
        }
    }
    // A replica that an earlier run has stored is no failure of this one.
    let was_there = |error: &ClientError| {
        matches!(error, ClientError::Refused { refusal: weir_coordinator::proto::Refusal::Exists, .. })
    };
    if stored > 0 && failed.iter().any(was_there) {
        failed.retain(|error| !was_there(error));
        // That run may have stored fewer than this one asks for.
        let there = client.object(named.as_str()).await.map_err(failure)?.replicas.len();
        if failed.is_empty() && there < replicas as usize {
            return Err(Failure::Runtime(anyhow!(
                "{named}: {there} of {replicas} replicas stored; weir repair {named} writes the others"
            )));
        }
    }
    let Some(first) = failed.pop() else { return Ok(()) };
    for error in failed {
        say::on_stderr(format_args!("weir: {}", printable(&error.to_string())));
    }
    match stored {
        0 => Err(failure(first)),
        _ => Err(Failure::Runtime(anyhow!(
            "{named}: {stored} of {replicas} replicas stored: {first}; weir repair {named} writes the others"
        ))),
    }
}

/// Reads an object.
///
/// # Errors
/// If it could not be read as it was stored. Then there is no file of that name.
pub(crate) async fn get(arguments: GetArguments) -> Result<(), Failure> {
    let GetArguments { name: named, output, asked, form, coordinator } = arguments;
    let named = name(&named)?;
    let last = || PathBuf::from(named.as_str().rsplit('/').next().unwrap_or_default());
    let target = match output.unwrap_or_else(last) {
        path if path.as_os_str() == "-" => Target::Stdout,
        path => Target::File(path),
    };
    let is_stdout = target == Target::Stdout;
    let client = coordinator.client()?;
    let mut bars = Bars::new();
    let watched = bars.watched(named.as_str());
    let clock = Clock::new();
    let since = clock.now();
    let got = client.get(&named, target, &asked.asked(), watched).await;
    bars.finish().await;
    let got = got.map_err(failure)?;
    match is_stdout {
        true => Ok(()),
        false => say_stored(form, &named, "read from", &got, clock.now().saturating_since(since)),
    }
}

/// Makes an object of a file that a node has already.
///
/// # Errors
/// If there is no such file, or an object of its name.
pub(crate) async fn import(arguments: ImportArguments) -> Result<(), Failure> {
    let ImportArguments { node, path, asked, form, coordinator } = arguments;
    let path = name(&path)?;
    let client = coordinator.client()?;
    let mut bars = Bars::new();
    let watched = bars.watched(path.as_str());
    let clock = Clock::new();
    let since = clock.now();
    let imported = client.import(&node, &path, &asked.asked(), watched).await;
    bars.finish().await;
    say_stored(form, &path, "imported from", &imported.map_err(failure)?, clock.now().saturating_since(since))
}

/// One line for each transfer, also as JSON: a replica may be stored when another one fails.
fn say_stored(
    form: Form,
    name: &ObjectName,
    how: &str,
    stored: &Stored,
    passed: weir_model::Span,
) -> Result<(), Failure> {
    let ms = passed.as_nanos() / 1_000_000;
    let moved = Moved {
        object: name.to_string(),
        node: stored.node.clone(),
        bytes: stored.bytes,
        blake3: text::hexadecimal(&stored.checksum),
        took_ms: ms,
        bytes_per_s: text::rate_of(stored.bytes, ms),
    };
    if form.json {
        return Ok(writeln!(say::out(), "{}", json_line(&moved)?)?);
    }
    let line = format!(
        "{name}: {} {how} {} in {} ({}), BLAKE3 {}",
        text::size(moved.bytes),
        moved.node,
        text::length(ms),
        text::rate(moved.bytes_per_s),
        moved.blake3,
    );
    Ok(writeln!(say::out(), "{}", printable(&line))?)
}

fn file_name(path: &Path) -> Result<String, Failure> {
    let name = path.file_name().and_then(std::ffi::OsStr::to_str).map(str::to_owned);
    name.ok_or_else(|| {
        Failure::usage(format!("{}: found no name that is text; accepted: --name NAME", path.display()))
    })
}
