//! What objects there are, and their removal.

use anyhow::anyhow;
use clap::Args;
use weir_coordinator::proto::Object;

use super::name;
use crate::answer::Form;
use crate::failure::Failure;
use crate::say;
use crate::terminal::printable;
use crate::transfers::shapes::{self, Objects};
use crate::transfers::{CoordinatorArgument, failure, text};

/// Which objects.
#[derive(Args, Debug)]
pub(crate) struct ListArguments {
    /// Only those whose names begin with this
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    coordinator: CoordinatorArgument,
}

/// Which object.
#[derive(Args, Debug)]
pub(crate) struct StatArguments {
    /// Its name
    name: String,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    coordinator: CoordinatorArgument,
}

/// Which objects.
#[derive(Args, Debug)]
pub(crate) struct RemoveArguments {
    /// Their names
    #[arg(required = true)]
    names: Vec<String>,
    #[command(flatten)]
    coordinator: CoordinatorArgument,
}

/// Prints the objects.
///
/// # Errors
/// If the coordinator does not answer.
pub(crate) async fn list(arguments: ListArguments) -> Result<(), Failure> {
    let objects = arguments.coordinator.client()?.objects(&arguments.prefix).await.map_err(failure)?;
    arguments.form.print(&Objects::of(&objects), |_| shown(&objects))
}

fn shown(objects: &[Object]) -> String {
    let head = ["object", "size", "stored", "replicas", "on"];
    let rows = objects.iter().map(|object| {
        let (good, nodes) = (good(object), object.replicas.iter().map(told).collect::<Vec<_>>());
        vec![
            object.name.clone(),
            text::size(object.bytes),
            text::time(object.stored_ms),
            format!("{good} of {}", object.replicas_wanted),
            nodes.join(", "),
        ]
    });
    text::table(&head, &[1], &[2, 4], rows)
}

/// Prints an object and its replicas.
///
/// # Errors
/// If there is none, or the coordinator does not answer.
pub(crate) async fn stat(arguments: StatArguments) -> Result<(), Failure> {
    let name = name(&arguments.name)?;
    let object = arguments.coordinator.client()?.object(name.as_str()).await.map_err(failure)?;
    arguments.form.print(&shapes::Object::from(&object), |_| shown_whole(&object))
}

fn shown_whole(object: &Object) -> String {
    let mut lines = format!(
        "  object  {}\n    size  {} B ({})\n  BLAKE3  {}\n  stored  {}\nreplicas  {} good of {}\n",
        object.name,
        object.bytes,
        text::size(object.bytes),
        text::hexadecimal(&object.checksum),
        text::time(object.stored_ms),
        good(object),
        object.replicas_wanted,
    );
    for replica in &object.replicas {
        let verified = match replica.verified_ms {
            0 => "never verified".to_owned(),
            at => format!("verified {}", text::time(at)),
        };
        let state = if replica.is_good { "good" } else { "bad" };
        let stored = text::time(replica.stored_ms);
        lines += &format!("          {}: {state}, stored {stored}, {verified}\n", replica.node);
    }
    lines
}

/// Removes objects.
///
/// # Errors
/// If there is no object of one of the names, or the coordinator does not answer. The names before it are
/// removed.
pub(crate) async fn remove(arguments: RemoveArguments) -> Result<(), Failure> {
    let client = arguments.coordinator.client()?;
    let names = arguments.names.iter().map(|text| name(text)).collect::<Result<Vec<_>, _>>()?;
    let mut is_pending = false;
    for name in names {
        let pending = client.remove(name.as_str()).await.map_err(failure)?;
        if !pending.is_empty() {
            is_pending = true;
            let nodes = pending.join(", ");
            say::on_stderr(printable(&format!(
                "weir: {name} is removed, but not yet from {nodes}: it is tried again"
            )));
        }
    }
    match is_pending {
        true => {
            Err(Failure::Runtime(anyhow!("some replicas are yet to be removed; the coordinator goes on")))
        }
        false => Ok(()),
    }
}

fn good(object: &Object) -> usize {
    object.replicas.iter().filter(|replica| replica.is_good).count()
}

fn told(replica: &weir_coordinator::proto::Replica) -> String {
    if replica.is_good { replica.node.clone() } else { format!("{} (bad)", replica.node) }
}
