//! Gateways that lie about themselves: two of one name, and one that invents volumes.

use tokio::runtime::{Builder, Runtime};
use weir_clock::Clock;
use weir_cluster::{Business, Client, ClientSpec, LinkState, Tls, TlsFiles, Told};
use weir_control::PortObservation;
use weir_model::Span;

use crate::gateways::{Array, Controller, Gateway, TOTAL, wait_until_shared_out};
use crate::harness::{Running, Scene, status, wait_until};

/// The number of requests that the controller counts as held.
fn held(controller: &Controller<'_>) -> u64 {
    status(&controller.server)["held"].as_u64().unwrap()
}

#[test]
fn a_second_gateway_of_one_name_disturbs_neither_the_first_nor_the_sum() {
    let array = Array::new("127.0.7.6");
    let controller = array.controller();
    let [first, other] = ["a", "b"].map(|name| Gateway::start(&controller, name));
    let mut loads = [first.load(), other.load()];
    wait_until_shared_out(&controller);
    let second = Gateway::start(&controller, "a");
    second.server.wait_for_log(0, "gateway a is connected already, from 127.0.");
    wait_until("what the second does without being asked is counted", || {
        status(&controller.server)["gateways"]
            .as_array()
            .unwrap()
            .iter()
            .any(|found| found["name"] == "a (another run)" && found["held"] == 2)
    });
    wait_until("all of it fits into the total again", || held(&controller) <= TOTAL);
    controller.server.wait_for_log(0, "refused: gateway a is connected already, from 127.0.");
    for gateway in [&first, &other] {
        ["v", "w"].iter().for_each(|volume| gateway.serve(volume));
        assert!(gateway.complaints().is_empty(), "{:?}", gateway.complaints());
    }
    ["v", "w"].iter().for_each(|volume| second.serve(volume));
    assert_eq!(second.bounds(), 2, "one for each volume");
    assert_eq!(second.complaints().len(), 1, "{:?}", second.complaints());
    let log = controller.server.logged_since(0);
    let refusals: Vec<_> = log.lines().filter(|line| line.contains("refused: ")).collect();
    assert!(refusals.iter().all(|line| line.contains("peer=\"127.0.")), "both peers are named: {refusals:?}");
    assert!(controller.held("a").is_some() && controller.held("b").is_some());
    assert!(loads.as_flattened_mut().iter_mut().all(Running::is_running), "clients were never disturbed");
}

#[test]
fn a_gateway_that_was_killed_is_accepted_at_once_when_it_comes_back() {
    let array = Array::new("127.0.7.7");
    let controller = array.controller();
    let [a, b] = ["a", "b"].map(|name| Gateway::start(&controller, name));
    let _loads = [a.load(), b.load()];
    wait_until_shared_out(&controller);
    b.server.kill();
    wait_until("its connection is seen to be gone", || controller.held("b").is_none());
    let b = Gateway::start(&controller, "b");
    let _load = b.load();
    wait_until("it has more than what is always left for it", || b.bounds() > 4);
    assert!(b.complaints().is_empty(), "nobody had its place: {:?}", b.complaints());
}

/// A gateway with a good certificate that sends what this test wants.
struct Liar {
    runtime: Runtime,
    spec: ClientSpec,
    _scene: Scene,
}

impl Liar {
    fn new(array: &Array, controller: &Controller<'_>, gateway: &str) -> Self {
        let scene = Scene::new();
        array.authority.issue(&scene, gateway);
        let files = TlsFiles {
            authority: scene.file("ca.pem"),
            certificate: scene.file("certificate.pem"),
            key: scene.file("key.pem"),
        };
        let spec = ClientSpec {
            gateway: gateway.to_owned(),
            controller: controller.server.tcp.clone(),
            tls: Tls::read(files).unwrap(),
            interval: Span::from_millis(500),
        };
        Self { runtime: Builder::new_current_thread().enable_all().build().unwrap(), spec, _scene: scene }
    }

    /// Connects, and reports about `volumes` unknown volumes. Returns why the controller sends it away.
    fn invents(&self, round: usize, volumes: usize) -> String {
        self.runtime.block_on(async {
            let checked = self.spec.clone().check().unwrap();
            let mut client = Client::start(checked, Clock::new(), Business::Leases(vec!["v".to_owned()]));
            loop {
                match client.next().await {
                    Told::Link(LinkState::Connected) => {
                        let name = |n| (format!("invented-{round}-{n}"), PortObservation::default());
                        client.report((0..volumes).map(name).collect()).await;
                    }
                    Told::Link(LinkState::Lost { why }) => return why,
                    Told::Link(LinkState::Connecting) => {}
                    Told::Others(_) => {}
                    Told::Terms(terms) => client.applied(terms).await,
                }
            }
        })
    }
}

#[test]
fn a_gateway_that_invents_volumes_takes_neither_memory_nor_log_nor_anothers_part() {
    let array = Array::new("127.0.7.8");
    let controller = array.controller();
    let good = Gateway::start(&controller, "a");
    let mut load = good.load();
    let liar = Liar::new(&array, &controller, "b");
    liar.invents(0, 10_000);
    let (resident, lines) = (controller.server.resident_kib(), controller.server.log_length());
    for round in 1..=10 {
        let why = liar.invents(round, 10_000);
        assert!(why.contains("gateway b serves 10000 volumes; accepted: at most 4"), "{why}");
    }
    let (now, logged) = (controller.server.resident_kib(), controller.server.log_length() - lines);
    assert!(now < resident + 32 * 1024, "{resident} KiB, then {now} KiB");
    assert!(logged < 100, "{logged} lines for 100,000 invented names");
    assert!(!controller.server.logged_since(0).contains("invented-"), "nothing is said of single names");
    wait_until("the other has all but the part of the liar", || controller.held("a") == Some(TOTAL - 4));
    assert!(load.iter_mut().all(Running::is_running));
}
