//! Joins a pool that is a port of an array to the controller of that array.

use weir_clock::Clock;
use weir_cluster::{CheckedSpec, Client, LinkState, Told};
use weir_gateway::{Port, PortTerms};
use weir_leases::Terms;

/// Begins to connect, and goes on for as long as the future that it returns is polled: what was seen goes up,
/// what was decided comes down.
pub(crate) fn link(
    pool: String,
    spec: CheckedSpec,
    volumes: Vec<String>,
    port: Port,
) -> impl Future<Output = ()> {
    let peer = spec.controller().to_owned();
    let client = Client::start(spec, Clock::new(), volumes);
    carry(pool, peer, client, port)
}

async fn carry(pool: String, peer: String, mut client: Client, mut port: Port) {
    loop {
        tokio::select! {
            told = client.next() => match told {
                Told::Terms(terms) => {
                    if port.apply(terms_of(&terms)).await {
                        client.applied(terms).await;
                    }
                }
                Told::Link(state) => log(&pool, &peer, &state),
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

/// By the field `peer` the log limits lines that a peer can cause.
fn log(pool: &str, peer: &str, state: &LinkState) {
    match state {
        LinkState::Connecting => {}
        LinkState::Connected => tracing::info!(peer, pool, "the controller has accepted this gateway"),
        LinkState::Lost { why } => {
            tracing::warn!(
                peer,
                pool,
                why,
                "no controller: what was granted holds until its lease is over, then a fixed part"
            );
        }
    }
}
