//! A gateway with a good certificate that floods its controller, until it is killed. The benchmark
//! `hostile-controller` runs it; it is no part of weir.
//!
//! ```text
//! flooding_gateway CONTROLLER NAME CA CERTIFICATE KEY
//! ```
//!
//! One stream is accepted, and reports volumes that no file has, other ones each time, in 8,000
//! messages a second. The other streams claim the same name, and far too many volumes; the controller
//! refuses each of them, and they come again as fast as the client lets them.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::interval;
use weir_clock::Clock;
use weir_cluster::{Business, CheckedSpec, Client, ClientSpec, Tls, TlsFiles};
use weir_control::PortObservation;
use weir_model::Span;

/// Streams that are refused.
const REFUSED: usize = 24;
/// The volumes that each of these claims.
const TOO_MANY: usize = 1_000;
/// The volumes that the accepted stream invents in each message: few enough for the controller not to refuse
/// it.
const INVENTED: usize = 2;
/// How often the accepted stream sends, and how many messages each time.
const PACE: Duration = Duration::from_millis(1);
const AT_ONCE: u64 = 8;
/// The controller's shortest control interval, so that refused streams come back soon.
const INTERVAL: Span = Span::from_millis(500);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [controller, gateway, authority, certificate, key] = arguments.as_slice() else {
        return Err("usage: flooding_gateway CONTROLLER NAME CA CERTIFICATE KEY".into());
    };
    let files = TlsFiles {
        authority: PathBuf::from(authority),
        certificate: PathBuf::from(certificate),
        key: PathBuf::from(key),
    };
    let spec = ClientSpec {
        gateway: gateway.clone(),
        controller: controller.clone(),
        tls: Tls::read(files)?,
        interval: INTERVAL,
    }
    .check()?;
    let mut streams = JoinSet::new();
    streams.spawn(invent(spec.clone()));
    (0..REFUSED).for_each(|_| drop(streams.spawn(claim_too_much(spec.clone()))));
    streams.join_all().await;
    Ok(())
}

/// Reports invented volumes, some thousand times a second; the client connects by itself.
async fn invent(spec: CheckedSpec) {
    let client = Client::start(spec, Clock::new(), Business::Leases(vec!["good".to_owned()]));
    let mut pace = interval(PACE);
    for message in 0_u64.. {
        if message.is_multiple_of(AT_ONCE) {
            pace.tick().await;
        }
        let invented = |n| (format!("invented-{message}-{n}"), PortObservation::default());
        client.report((0..INVENTED).map(invented).collect()).await;
    }
}

/// Connects again and again, each time with more volumes than a gateway may have.
async fn claim_too_much(spec: CheckedSpec) {
    let volumes: Vec<_> = (0..TOO_MANY).map(|n| format!("claimed-{n}")).collect();
    let mut client = Client::start(spec, Clock::new(), Business::Leases(volumes));
    loop {
        client.next().await;
    }
}
