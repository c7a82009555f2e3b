//! Joins a leased pool to the controller of its array.

use weir_clock::Clock;
use weir_cluster::{Business, CheckedSpec, Client, LinkState, Told};
use weir_gateway::{LeaseTerms, LeasedPool};
use weir_leases::Terms;

/// Begins to connect, and goes on for as long as the future that it returns is polled. The controller is told
/// what the pool saw, and the pool what the controller granted.
pub(crate) fn link(
    name: String,
    spec: CheckedSpec,
    volumes: Vec<String>,
    pool: LeasedPool,
) -> impl Future<Output = ()> {
    let peer = spec.controller().to_owned();
    let client = Client::start(spec, Clock::new(), Business::Leases(volumes));
    carry(name, peer, client, pool)
}

/// What follows if the controller is lost.
const LOST: &str = "no controller: what was granted holds until its lease is over, then a fixed part";

async fn carry(name: String, peer: String, mut client: Client, mut pool: LeasedPool) {
    loop {
        tokio::select! {
            told = client.next() => match told {
                Told::Terms(terms) => {
                    if pool.apply(terms_of(&terms)).await {
                        client.applied(terms).await;
                    }
                }
                Told::Others(_) => {} // a controller of promises has refused this gateway
                Told::Link(state) => log_link(&name, &peer, &state, LOST),
            },
            seen = pool.next_observation() => match seen {
                Some(seen) => client.report(seen).await,
                None => return,
            },
        }
    }
}

fn terms_of(terms: &Terms) -> LeaseTerms {
    LeaseTerms { until: terms.until, volumes: terms.volumes.clone(), after: terms.after.clone() }
}

/// Logs the state of a link, with what follows if it is lost. By the field `peer` the log limits lines that a
/// peer can cause.
pub(crate) fn log_link(pool: &str, peer: &str, state: &LinkState, lost: &str) {
    match state {
        LinkState::Connecting => {}
        LinkState::Connected => tracing::info!(peer, pool, "the controller has accepted this gateway"),
        LinkState::Lost { why } => {
            tracing::warn!(peer, pool, why, "{lost}");
        }
    }
}
