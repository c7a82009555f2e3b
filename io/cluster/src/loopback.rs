//! Both sides on the loopback interface, with real certificates.

mod certificates;
mod imposters;
mod promises;

use std::net::SocketAddr;
use std::num::NonZeroU32;

use certificates::Authority;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use weir_clock::Clock;
use weir_control::{PortObservation, TotalConcurrency};
use weir_leases::{ArrayStatus, Controller, ControllerConfig, Terms, VolumeConfig};
use weir_model::Span;

use crate::{Array, Business, Client, ClientSpec, LinkState, Server, Told};

const INTERVAL: Span = Span::from_millis(500);
const TOTAL: u32 = 20;

/// A controller of two gateways and one volume.
async fn serve(authority: &Authority, address: &str) -> Server {
    let config = ControllerConfig {
        total: TotalConcurrency::Fixed(NonZeroU32::new(TOTAL).unwrap()),
        interval: INTERVAL,
        gateways: vec!["gateway1".to_owned(), "gateway2".to_owned()],
    };
    let clock = Clock::new();
    let controller = Controller::new(clock.now(), config, [("oltp".to_owned(), VolumeConfig::default())]);
    let listener = TcpListener::bind(address).await.unwrap();
    let array = Array::Leases(Box::new(controller));
    Server::start(listener, &authority.issue("127.0.0.1"), clock, array).unwrap()
}

/// A gateway that shows the certificate of `owner`.
fn connect(authority: &Authority, gateway: &str, owner: &str, controller: SocketAddr) -> Client {
    start(spec(authority, gateway, owner, controller))
}

fn start(spec: ClientSpec) -> Client {
    Client::start(spec.check().unwrap(), Clock::new(), Business::Leases(volumes()))
}

fn spec(authority: &Authority, gateway: &str, owner: &str, controller: SocketAddr) -> ClientSpec {
    ClientSpec {
        gateway: gateway.to_owned(),
        controller: controller.to_string(),
        tls: authority.issue(owner),
        interval: INTERVAL,
    }
}

fn volumes() -> Vec<String> {
    vec!["oltp".to_owned()]
}

/// The reason for which the link was lost.
async fn refusal(client: &mut Client) -> String {
    loop {
        if let Told::Link(LinkState::Lost { why }) = client.next().await {
            return why;
        }
    }
}

/// Puts terms in force, and reports in between, until the awaited terms come.
async fn obey(client: &mut Client, awaited: impl Fn(&Terms) -> bool) -> Terms {
    let mut bound = NonZeroU32::MIN;
    loop {
        if let Told::Terms(terms) = client.next().await {
            bound = terms.volumes["oltp"].concurrency;
            client.applied(terms.clone()).await;
            if awaited(&terms) {
                return terms;
            }
        }
        let seen = PortObservation {
            over: INTERVAL,
            at_device: f64::from(bound.get()),
            outstanding: 50.0,
            bound: Some(bound),
            ..PortObservation::default()
        };
        client.report(vec![("oltp".to_owned(), seen)]).await;
    }
}

async fn link(client: &mut Client, awaited: impl Fn(&LinkState) -> bool) {
    loop {
        match client.next().await {
            Told::Link(state) if awaited(&state) => return,
            Told::Link(_) | Told::Others(_) => {}
            Told::Terms(terms) => client.applied(terms).await,
        }
    }
}

fn requests(terms: &Terms) -> u32 {
    terms.volumes["oltp"].concurrency.get()
}

async fn status(server: &Server) -> ArrayStatus {
    let ask = |now, array: &mut Array| match array {
        Array::Leases(controller) => controller.status(now),
        Array::Promises(_) => panic!("a controller of leases"),
    };
    server.ask(ask).await
}

#[tokio::test]
async fn a_gateway_gets_its_part_and_the_other_ones_part_stays_free() {
    let authority = Authority::new();
    let server = serve(&authority, "127.0.0.1:0").await;
    let mut client = connect(&authority, "gateway1", "gateway1", server.address());
    let terms = obey(&mut client, |terms| requests(terms) > 1).await;
    assert_eq!(terms.fallback["oltp"].concurrency.get(), TOTAL / 4);
    assert!(requests(&terms) <= TOTAL - TOTAL / 4);
    let status = status(&server).await;
    assert!(status.gateways[0].connected && !status.gateways[1].connected);
}

#[tokio::test]
async fn who_was_signed_by_somebody_else_is_refused_by_both_sides() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let server = serve(&ours, "127.0.0.1:0").await;
    let mut client = connect(&theirs, "gateway1", "gateway1", server.address());
    let why = refusal(&mut client).await;
    assert!(why.contains(&server.address().to_string()) && why.contains("invalid peer certificate"), "{why}");
    // Even a gateway that trusts the controller.
    let mut client = connect(&theirs.trusting(&ours), "gateway1", "gateway1", server.address());
    refusal(&mut client).await;
    assert!(!status(&server).await.gateways[0].connected);
}

#[tokio::test]
async fn a_gateway_that_says_it_is_another_is_refused_by_name() {
    let authority = Authority::new();
    let server = serve(&authority, "127.0.0.1:0").await;
    let mut client = connect(&authority, "gateway1", "gateway2", server.address());
    let why = refusal(&mut client).await;
    assert!(why.contains("gateway \"gateway1\" is not the owner of its certificate"), "{why}");
    let mut client = connect(&authority, "gateway3", "gateway3", server.address());
    let why = refusal(&mut client).await;
    assert!(
        why.ends_with("gateway3 is not configured at this controller; accepted: gateway1, gateway2"),
        "{why}"
    );
}

#[tokio::test]
async fn a_controller_whose_certificate_names_another_is_refused() {
    let authority = Authority::new();
    let server = serve(&authority, "127.0.0.1:0").await;
    let address = format!("localhost:{}", server.address().port());
    let spec =
        ClientSpec { controller: address, ..spec(&authority, "gateway1", "gateway1", server.address()) };
    let mut client = start(spec);
    let why = refusal(&mut client).await;
    assert!(why.contains("not valid for name \"localhost\""), "{why}");
}

#[tokio::test]
async fn a_connection_that_is_cut_is_made_again() {
    let authority = Authority::new();
    let server = serve(&authority, "127.0.0.1:0").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (cut, mut is_cut) = mpsc::channel::<()>(1);
    let controller = server.address();
    tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let mut far = TcpStream::connect(controller).await.unwrap();
            tokio::select! {
                _ = copy_bidirectional(&mut near, &mut far) => {}
                _ = is_cut.recv() => {}
            }
        }
    });
    let mut client = connect(&authority, "gateway1", "gateway1", address);
    let before = obey(&mut client, |terms| requests(terms) > 1).await;
    cut.send(()).await.unwrap();
    link(&mut client, |state| matches!(state, LinkState::Lost { .. })).await;
    link(&mut client, |state| *state == LinkState::Connected).await;
    let after = obey(&mut client, |_| true).await;
    assert!(requests(&after) >= requests(&before).min(5), "{after:?}");
}

#[tokio::test]
async fn a_controller_that_starts_anew_takes_up_what_its_gateways_hold() {
    let authority = Authority::new();
    let server = serve(&authority, "127.0.0.1:0").await;
    let address = server.address();
    let clock = Clock::new();
    let mut client = start(spec(&authority, "gateway1", "gateway1", address));
    let held = obey(&mut client, |terms| requests(terms) > 1).await;
    server.stop().await;
    link(&mut client, |state| matches!(state, LinkState::Lost { .. })).await;
    let server = serve(&authority, &address.to_string()).await;
    link(&mut client, |state| *state == LinkState::Connected).await;
    let known = status(&server).await.gateways[0].volumes[0].1.concurrency.get();
    let least = if clock.now() < held.until { requests(&held) } else { requests(&held).min(TOTAL / 4) };
    assert!(known >= least, "{known} of {least}");
}
