//! Replicas compared with what was stored, and written anew.

use std::io::Write;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use weir_coordinator::proto::Object;
use weir_coordinator::{Client, ClientError};
use weir_node::ObjectName;

use super::name;
use crate::answer::{Form, json_line};
use crate::failure::Failure;
use crate::say;
use crate::terminal::printable;
use crate::transfers::asked::AskedArguments;
use crate::transfers::bars::Bars;
use crate::transfers::{CoordinatorArgument, failure};

/// Which object.
#[derive(Args, Debug)]
pub(crate) struct RepairArguments {
    /// The object
    name: String,
    #[command(flatten)]
    asked: AskedArguments,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    coordinator: CoordinatorArgument,
}

/// Reads each replica whole, and says of each whether it is good.
///
/// # Errors
/// If one is not good, or could not be read.
pub(crate) async fn verify(arguments: RepairArguments) -> Result<(), Failure> {
    let RepairArguments { name: named, asked, form, coordinator } = arguments;
    let (named, client) = (name(&named)?, coordinator.client()?);
    let Checked { object, unread } = checked(&client, &named, &asked, form).await?;
    let bad = object.replicas.iter().filter(|replica| !replica.is_good).count();
    match bad {
        0 => unread.map_or(Ok(()), |error| Err(failure(error))),
        _ => Err(Failure::Runtime(anyhow!(
            "{named}: {bad} of {} replicas are bad; weir repair {named} writes them anew",
            object.replicas.len()
        ))),
    }
}

/// Reads each replica whole, removes those that are bad, and writes as many as are missing.
///
/// # Errors
/// If no replica is good, or one could not be written.
pub(crate) async fn repair(arguments: RepairArguments) -> Result<(), Failure> {
    let RepairArguments { name: named, asked, form, coordinator } = arguments;
    let (named, client) = (name(&named)?, coordinator.client()?);
    let Checked { object, unread } = checked(&client, &named, &asked, form).await?;
    let (good, bad): (Vec<_>, Vec<_>) = object.replicas.iter().partition(|replica| replica.is_good);
    if good.is_empty() {
        return Err(Failure::Runtime(anyhow!("{named}: no replica is good; nothing was changed")));
    }
    if let Some(error) = unread {
        // What could not be read may be the only other good one.
        return Err(failure(error));
    }
    for replica in &bad {
        client.drop_replica(named.as_str(), &replica.node).await.map_err(failure)?;
    }
    let missing = (object.replicas_wanted as usize).saturating_sub(good.len());
    for number in 1..=missing {
        let mut bars = Bars::new();
        let watched = bars.watched(&format!("{named} (replica {number} of {missing} missing)"));
        let written = client.replicate(&named, &asked.asked(), watched).await;
        bars.finish().await;
        let node = &written.map_err(failure)?.node;
        match form.json {
            true => Said { object: named.as_str(), node, verdict: "written", why: None }.say(form)?,
            false => {
                let line = format!("{named}: a replica is written on {node}");
                writeln!(say::out(), "{}", printable(&line))?;
            }
        }
    }
    if bad.is_empty() && missing == 0 && !form.json {
        writeln!(say::out(), "{}", printable(&format!("{named}: nothing to repair")))?;
    }
    Ok(())
}

/// What became of a replica; as JSON, a line.
#[derive(Serialize)]
struct Said<'a> {
    object: &'a str,
    node: &'a str,
    /// `good`, `bad`, `cannot be read` or `written`.
    verdict: &'a str,
    why: Option<String>,
}

impl Said<'_> {
    fn say(&self, form: Form) -> Result<(), Failure> {
        let Self { object, node, verdict, why } = self;
        let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let line = match form.json {
            true => json_line(self)?,
            false => printable(&format!("{object} on {node}: {verdict}{why}")),
        };
        Ok(writeln!(say::out(), "{line}")?)
    }
}

/// An object whose replicas were read.
struct Checked {
    object: Object,
    /// Why a replica could not be read that may be good.
    unread: Option<ClientError>,
}

/// The object, after each of its replicas was read.
async fn checked(
    client: &Client,
    name: &ObjectName,
    asked: &AskedArguments,
    form: Form,
) -> Result<Checked, Failure> {
    let mut failed = Vec::new();
    let object = client.object(name.as_str()).await.map_err(failure)?;
    for replica in &object.replicas {
        let mut bars = Bars::new();
        let watched = bars.watched(&format!("{name} on {}", replica.node));
        let found = client.check(name, &replica.node, &asked.asked(), watched).await;
        bars.finish().await;
        let is_same = |found: &weir_coordinator::Stored| {
            found.bytes == object.bytes && found.checksum.as_slice() == object.checksum
        };
        let (verdict, why) = match found {
            Ok(found) if is_same(&found) => ("good", None),
            Ok(_) => ("bad", Some("it is not what was stored".to_owned())),
            Err(error @ ClientError::Refused { .. }) => {
                let why = error.to_string();
                failed.push((&replica.node, error));
                ("cannot be read", Some(why))
            }
            Err(error) => return Err(failure(error)),
        };
        Said { object: name.as_str(), node: &replica.node, verdict, why }.say(form)?;
    }
    let known = client.object(name.as_str()).await.map_err(failure)?;
    let may_be_good =
        |node: &str| known.replicas.iter().any(|replica| replica.node == node && replica.is_good);
    let unread = failed.into_iter().find(|(node, _)| may_be_good(node)).map(|(_, error)| error);
    Ok(Checked { object: known, unread })
}
