//! Asks each `weir node agent` every second what its device has done.
//!
//! A sensor may be away, slow or another program. Each has a task of its own and one question at a time,
//! which ends after a second or 64 KiB. What it answers is a message to the desk like any other. Without a
//! good answer, the desk finds the sensor stale by itself.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::WeakSender;
use tokio::time::{MissedTickBehavior, interval, timeout};
use weir_api::get_over;
use weir_transfer::{NodeIndex, SAMPLE};

use super::desk_thread::Work;
use crate::sensor::SensorUrl;
use crate::sensor::page::{self, Device};

/// How long a sensor may take from the connection to the last byte.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest answer that is read, in bytes: the state of some 90 devices.
const LONGEST_ANSWER: usize = 64 << 10;

/// The most characters of a reason.
const MOST_TOLD: usize = 300;

/// How many names of hosts are looked up at a time. A lookup takes a thread, and as long as the name servers
/// let it wait.
static LOOKUPS: Semaphore = Semaphore::const_new(8);

/// Asks a sensor each second until the desk has stopped, and tells the desk.
pub(super) async fn ask_each_second(url: SensorUrl, node: NodeIndex, desk: WeakSender<Work>) {
    let mut seconds = interval(SAMPLE.into());
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        seconds.tick().await;
        let answer = ask(&url).await.map_err(|why| one_line(&why));
        let Some(desk) = desk.upgrade() else { return };
        let work: Work = Box::new(move |desk, now, _| desk.sensed(now, node, answer));
        if desk.send(work).await.is_err() {
            return;
        }
    }
}

/// What the device has done, or why nobody knows.
async fn ask(url: &SensorUrl) -> Result<Device, String> {
    let addresses = addresses(url.authority()).await?;
    let asked = async {
        let connected = TcpStream::connect(&*addresses).await;
        let stream = connected.map_err(|error| format!("no connection: {error}"))?;
        get_over(stream, url.authority(), url.path(), LONGEST_ANSWER).await
    };
    let text =
        timeout(ANSWER_TIMEOUT, asked).await.unwrap_or_else(|_| Err("no answer within 1 s".to_owned()))?;
    page::device(&text, url.choice()).map_err(|error| error.to_string())
}

/// The addresses of a host. The lookup is not in the time of the answer: its thread would stay behind.
async fn addresses(authority: &str) -> Result<Vec<SocketAddr>, String> {
    if let Ok(address) = authority.parse() {
        return Ok(vec![address]);
    }
    let _one = LOOKUPS.acquire().await.map_err(|error| error.to_string())?;
    let found = lookup_host(authority).await.map_err(|error| format!("no address: {error}"))?;
    Ok(found.collect())
}

/// A reason in one short line: a part of it may be the sensor's own words.
fn one_line(why: &str) -> String {
    why.chars().map(|c| if c.is_control() { '?' } else { c }).take(MOST_TOLD).collect()
}

#[cfg(test)]
mod tests;
