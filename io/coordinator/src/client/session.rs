//! A transfer's stream to the coordinator, opened again if it breaks.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use weir_model::{Instant, Span};
use weir_node::ObjectName;

use super::{Client, ClientError};
use crate::proto::from_client::Message as Said;
use crate::proto::to_client::Message;
use crate::proto::{Ask, FromClient, ToClient};

/// How many messages wait for the stream to take them.
const OUTBOX: usize = 64;
/// How long the client waits before it tries again to reach the coordinator.
const AGAIN: Duration = Duration::from_secs(1);
/// For how long it tries. The coordinator forgets a transfer that only this run can continue after as long.
const TRIES_FOR: Span = Span::from_secs(600);

/// A transfer's stream.
pub(super) struct Session {
    client: Client,
    ask: Ask,
    outbox: mpsc::Sender<FromClient>,
    inbox: Streaming<ToClient>,
}

impl Session {
    /// Asks for a transfer. A client that has never met the coordinator says at once that nobody is there,
    /// as a wrong address would have it wait in vain. One that has met it holds on, as in
    /// [`Session::reopen`]: the coordinator may be starting again.
    pub(super) async fn open(client: Client, ask: Ask) -> Result<Self, ClientError> {
        let (outbox, inbox) = match stream(&client, &ask).await {
            Err(ClientError::Unreachable { .. }) if client.has_met() => stream_again(&client, &ask).await?,
            answer => answer?,
        };
        client.meet();
        Ok(Self { client, ask, outbox, inbox })
    }

    /// The next message; `None` if the stream is broken. The caller may drop the future and call again.
    pub(super) async fn next(&mut self) -> Option<Message> {
        loop {
            match self.inbox.message().await {
                Ok(Some(ToClient { message: Some(message) })) => return Some(message),
                Ok(Some(ToClient { message: None })) => {} // a later version's
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// The name of the transfer's object.
    pub(super) fn name(&self) -> Option<ObjectName> {
        self.ask.name.parse().ok()
    }

    /// Tells the coordinator something. If the stream is broken, [`Session::next`] says so.
    pub(super) async fn say(&self, said: Said) {
        let _ = self.outbox.send(FromClient { message: Some(said) }).await;
    }

    /// Asks again, until there is a stream.
    ///
    /// # Errors
    /// If there is none within ten minutes.
    pub(super) async fn reopen(&mut self) -> Result<(), ClientError> {
        (self.outbox, self.inbox) = stream_again(&self.client, &self.ask).await?;
        Ok(())
    }
}

/// Both directions of a stream.
type Stream = (mpsc::Sender<FromClient>, Streaming<ToClient>);

/// A stream to a coordinator that may be away for a while.
async fn stream_again(client: &Client, ask: &Ask) -> Result<Stream, ClientError> {
    let since: Instant = client.clock.now();
    loop {
        sleep(AGAIN).await;
        match stream(client, ask).await {
            Ok(stream) => return Ok(stream),
            Err(error) if client.clock.now().saturating_since(since) > TRIES_FOR => return Err(error),
            Err(_) => {}
        }
    }
}

async fn stream(client: &Client, ask: &Ask) -> Result<Stream, ClientError> {
    let (outbox, messages) = mpsc::channel(OUTBOX);
    let first = FromClient { message: Some(Said::Ask(ask.clone())) };
    outbox.try_send(first).expect("it is empty");
    let answer = client.coordinator.clone().transfer(ReceiverStream::new(messages)).await;
    Ok((outbox, client.answered(answer)?))
}
