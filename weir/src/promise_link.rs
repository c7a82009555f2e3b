//! Joins a pool under the law of promises to the controller of its array, which joins it to the other
//! gateways.

use weir_clock::Clock;
use weir_cluster::{Business, CheckedSpec, Client, Told};
use weir_gateway::SharedPool;

use crate::lease_link::log_link;

/// Begins to connect, and goes on for as long as the future that it returns is polled. The controller is told
/// how the pool's promises stand, and the pool how those of all other gateways do.
pub(crate) async fn link(name: String, spec: CheckedSpec, mut pool: SharedPool) {
    const LOST: &str = "no controller: what volumes without a promise may have stays as it is, until the \
        other gateways are heard of again";
    let peer = spec.controller().to_owned();
    let mut client = Client::start(spec, Clock::new(), Business::Promises);
    loop {
        tokio::select! {
            told = client.next() => match told {
                Told::Others(others) => pool.hear(others),
                Told::Terms(_) => {} // a controller of leases has refused this gateway
                Told::Link(state) => log_link(&name, &peer, &state, LOST),
            },
            standing = pool.next_standing() => match standing {
                Some(standing) => client.stand(standing).await,
                None => return,
            },
        }
    }
}
