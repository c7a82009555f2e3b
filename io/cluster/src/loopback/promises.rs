//! Gateways of a pool under the law of promises, which hear of each other by their controller.

use tokio::net::TcpListener;
use weir_clock::Clock;
use weir_control::Standing;
use weir_leases::Messenger;

use super::certificates::Authority;
use super::{refusal, serve, spec, volumes};
use crate::{Array, Business, Client, Server, Told};

async fn serve_promises(authority: &Authority) -> Server {
    let clock = Clock::new();
    let messenger = Messenger::new(clock.now(), ["gateway1", "gateway2"].map(str::to_owned));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Server::start(listener, &authority.issue("127.0.0.1"), clock, Array::Promises(messenger)).unwrap()
}

fn client(authority: &Authority, gateway: &str, server: &Server, business: Business) -> Client {
    let spec = spec(authority, gateway, gateway, server.address());
    Client::start(spec.check().unwrap(), Clock::new(), business)
}

fn cut(cuts: u32) -> Standing {
    Standing { is_promised: true, is_there: true, cuts, ..Standing::default() }
}

#[tokio::test]
async fn what_a_gateway_says_of_its_promises_is_what_the_other_one_hears() {
    let authority = Authority::new();
    let server = serve_promises(&authority).await;
    let [mut one, mut two] =
        ["gateway1", "gateway2"].map(|name| client(&authority, name, &server, Business::Promises));
    let (mut heard_by_one, mut heard_by_two) = (None, None);
    while (heard_by_one, heard_by_two) != (Some(cut(2)), Some(cut(1))) {
        // A word before the stream is open is lost.
        one.stand(cut(1)).await;
        two.stand(cut(2)).await;
        tokio::select! {
            told = one.next() => if let Told::Others(others) = told { heard_by_one = Some(others) },
            told = two.next() => if let Told::Others(others) = told { heard_by_two = Some(others) },
        }
    }
}

#[tokio::test]
async fn gateways_and_controllers_of_different_laws_refuse_each_other_by_name() {
    let authority = Authority::new();
    let server = serve_promises(&authority).await;
    let mut client_of_leases = client(&authority, "gateway1", &server, Business::Leases(volumes()));
    let why = refusal(&mut client_of_leases).await;
    let said = "gateway gateway1 has control = \"maestro\" in this pool; accepted: control = \"promise\"";
    assert!(why.contains(said), "{why}");
    let server = serve(&authority, "127.0.0.1:0").await;
    let mut client_of_promises = client(&authority, "gateway1", &server, Business::Promises);
    let why = refusal(&mut client_of_promises).await;
    let said = "gateway gateway1 has control = \"promise\" in this pool; accepted: control = \"maestro\"";
    assert!(why.contains(said), "{why}");
}
