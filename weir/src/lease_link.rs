//! Joins a leased pool to the controller of its array.

use weir_clock::Clock;
use weir_cluster::{CheckedSpec, Client, LinkState, Told};
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
    let client = Client::start(spec, Clock::new(), volumes);
    carry(name, peer, client, pool)
}

async fn carry(name: String, peer: String, mut client: Client, mut pool: LeasedPool) {
    loop {
        tokio::select! {
            told = client.next() => match told {
                Told::Terms(terms) => {
                    if pool.apply(terms_of(&terms)).await {
                        client.applied(terms).await;
                    }
                }
                Told::Link(state) => log(&name, &peer, &state),
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
