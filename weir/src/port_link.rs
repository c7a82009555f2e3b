//! Joins a pool that is a port of an array to the controller of that array.

use weir_clock::Clock;
use weir_cluster::{Client, ClientSpec, ClusterError, LinkState, Told};
use weir_controller::Terms;
use weir_gateway::{Port, PortTerms};

/// Begins to connect, and goes on for as long as the future that it returns is polled: what was seen goes up, what was
/// decided comes down.
///
/// # Errors
/// If the controller's address is none, or the certificate is of no use.
pub(crate) fn link(
    pool: String,
    spec: ClientSpec,
    volumes: Vec<String>,
    port: Port,
) -> Result<impl Future<Output = ()>, ClusterError> {
    let client = Client::start(spec, Clock::new(), volumes)?;
    Ok(carry(pool, client, port))
}

async fn carry(pool: String, mut client: Client, mut port: Port) {
    loop {
        tokio::select! {
            told = client.next() => match told {
                Told::Terms(terms) => {
                    if port.apply(terms_of(&terms)).await {
                        client.applied(terms).await;
                    }
                }
                Told::Link(state) => log(&pool, &state),
            },
            seen = port.next_observation() => match seen {
                Some(seen) => client.report(seen).await,
                None => return,
            },
        }
    }
}

fn terms_of(terms: &Terms) -> PortTerms {
    PortTerms { until: terms.until, volumes: terms.volumes.clone(), after: terms.after.clone() }
}

fn log(pool: &str, state: &LinkState) {
    match state {
        LinkState::Connecting => {}
        LinkState::Connected => tracing::info!(pool, "the controller has accepted this gateway"),
        LinkState::Lost { why } => {
            tracing::warn!(
                pool,
                why,
                "no controller: what was granted holds until its lease is over, then a fixed part"
            );
        }
    }
}
