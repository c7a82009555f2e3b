//! One array behind two gateways and a controller, seen from outside: the bounds of each gateway, also if a
//! process is killed or lies.
//!
//! Each test has its controller at a loopback address of its own. There no other test takes the port of a
//! controller that was killed.

use serde_json::Value;

use crate::harness::{Authority, Outcome, Program, Running, Scene, Server, get, status, wait_until};

/// The gateways' requests at the array, together. While a gateway is away, it keeps half of an equal share,
/// which is 4.
pub(crate) const TOTAL: u64 = 16;
pub(crate) const STATIC_PART: u64 = 4;

/// The volumes ask for more than the stations can do, so that all of the total is shared out.
const VOLUMES: &str = "[volume.v]\npool = \"p\"\ntarget = { iops = 90000 }\npriority = 4\n\
    [volume.w]\npool = \"p\"\ntarget = { iops = 90000 }\n";

/// An array, and the authority that its processes trust.
pub(crate) struct Array {
    /// The controller's scene.
    scene: Scene,
    pub(crate) authority: Authority,
    host: &'static str,
}

/// A running controller, and its array.
pub(crate) struct Controller<'a> {
    array: &'a Array,
    pub(crate) server: Server,
}

/// A running gateway.
pub(crate) struct Gateway {
    scene: Scene,
    pub(crate) server: Server,
}

impl Array {
    pub(crate) fn new(host: &'static str) -> Self {
        Self { scene: Scene::new(), authority: Authority::new(), host }
    }

    /// Starts a first controller. Its file then has the ports that it got, for a controller that takes over.
    pub(crate) fn controller(&self) -> Controller<'_> {
        let (tls, host, control) =
            (self.authority.issue(&self.scene, self.host), self.host, self.scene.control());
        let own = format!(
            "[controller]\nlisten = \"{host}:0\"\nstatus = \"{host}:0\"\ncontrol = \"{control}\"\n{tls}\
             [gateway.a]\n[gateway.b]\n[pool.p]\ntotal_concurrency = {TOTAL}\ncontrol_interval = \"500ms\"\n",
        );
        let text = format!("{own}{VOLUMES}");
        self.scene.write("controller.toml", &text);
        let controller = self.controller_again();
        let any = format!("{host}:0");
        let listen = text.replacen(&any, &controller.server.tcp, 1);
        let status = controller.server.metrics.replace("http://", "").replace("/v1/status", "");
        self.scene.write("controller.toml", listen.replacen(&any, &status, 1));
        controller
    }

    /// Starts a controller with the file of the previous one.
    fn controller_again(&self) -> Controller<'_> {
        Controller { array: self, server: Server::controller(&self.scene.file("controller.toml")) }
    }

    /// The file of the controller, for a command line.
    fn file(&self) -> String {
        self.scene.text("controller.toml")
    }
}

impl Controller<'_> {
    /// The controller's status. Checks that the gateways' bounds are within the total.
    fn status(&self) -> Value {
        let status = status(&self.server);
        if let Some(held) = status["held"].as_u64() {
            assert!(held <= TOTAL, "gateways may hold {held} of {TOTAL}");
        }
        status
    }

    /// How many requests a gateway may hold, if it is connected.
    pub(crate) fn held(&self, gateway: &str) -> Option<u64> {
        let status = self.status();
        let gateways = status["gateways"].as_array().unwrap();
        let found = gateways.iter().find(|found| found["name"] == gateway).unwrap();
        (found["connected"] == true).then(|| found["held"].as_u64().unwrap())
    }

    fn desired(&self, volume: &str) -> Value {
        let status = self.status();
        let volumes = status["volumes"].as_array().unwrap();
        volumes.iter().find(|found| found["name"] == volume).unwrap()["sharing"]["desired"].clone()
    }

    /// Waits until `is_so` holds for the last control interval of a volume.
    fn wait_for_an_interval(&self, volume: &str, what: &str, is_so: impl Fn(&Value) -> bool) {
        let url = self.server.metrics.replace("/v1/status", &format!("/v1/volumes/{volume}/intervals"));
        wait_until(what, || {
            let explained: Value = serde_json::from_str(&get(&url)).unwrap();
            self.status();
            explained["intervals"].as_array().unwrap().last().is_some_and(&is_so)
        });
    }

    fn set(&self, words: &str) -> Outcome {
        let control = self.array.scene.control();
        Program::weir().arg("set").args(words).arg("--server").arg(control).outcome()
    }
}

impl Gateway {
    pub(crate) fn start(controller: &Controller<'_>, name: &str) -> Self {
        Self::showing(&controller.array.authority, name, controller, name)
    }

    /// A gateway with a certificate of this authority for the name `certified`.
    fn showing(authority: &Authority, certified: &str, controller: &Controller<'_>, name: &str) -> Self {
        let scene = Scene::new();
        let tls = authority.issue(&scene, certified);
        Self::with(scene, &tls, controller, name)
    }

    /// A gateway with these certificates, which are in its scene.
    fn with(scene: Scene, tls: &str, controller: &Controller<'_>, name: &str) -> Self {
        let file = scene.configure(&Self::text(tls, controller, name));
        Self { server: Server::start(&file), scene }
    }

    /// A gateway whose decisions are recorded.
    fn recorded(controller: &Controller<'_>, name: &str) -> Self {
        let scene = Scene::new();
        let tls = controller.array.authority.issue(&scene, name);
        let text = Self::text(&tls, controller, name);
        let server = Server::record(&scene.configure(&text), &scene.file("recorded"));
        Self { scene, server }
    }

    fn text(tls: &str, controller: &Controller<'_>, name: &str) -> String {
        let volume =
            |name| format!("[volume.{name}]\npool = \"p\"\nbackend = \"station:s\"\nsize = \"16MiB\"\n");
        format!(
            "[cluster]\nname = \"{name}\"\n{tls}[pool.p]\ncontrol = \"maestro\"\ncontrol_interval = \"500ms\"\n\
             controller = \"{}\"\n[station.s]\nservers = 4\nservice_time = \"500us\"\n{}{}",
            controller.server.tcp,
            volume("v"),
            volume("w")
        )
    }

    /// Clients of both volumes, for longer than any test takes.
    pub(crate) fn load(&self) -> [Running; 2] {
        ["v", "w"].map(|volume| {
            let load = Program::weir().arg("load").arg(self.server.uri(volume));
            load.args("--reads 60 --connections 2 --depth 8 --duration 5m").start()
        })
    }

    /// Checks that requests to a volume are answered.
    pub(crate) fn serve(&self, volume: &str) {
        let load = Program::weir().arg("load").arg(self.server.uri(volume));
        load.args("--reads 60 --depth 8 --requests 300").run();
    }

    /// The sum of its volumes' bounds: how many requests they may have at the array.
    pub(crate) fn bounds(&self) -> u64 {
        let status = status(&self.server);
        let volumes = status["pools"][0]["volumes"].as_array().unwrap();
        let grants = volumes.iter().flat_map(|volume| volume["sharing"]["effective"].as_array().unwrap());
        grants.map(|grant| grant["concurrency"].as_u64().unwrap()).sum()
    }

    /// The lines of its log which say that it has no controller.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.server.logged_since(0);
        log.lines().filter(|line| line.contains("no controller")).map(str::to_owned).collect()
    }
}

/// Waits until the gateways hold all of the total. Each asks for more than there is. So each gets its whole
/// part, and shares what the others leave.
pub(crate) fn wait_until_shared_out(controller: &Controller<'_>) {
    wait_until("all of the total is shared out", || controller.status()["held"] == TOTAL);
}

#[test]
fn what_a_controller_grants_is_what_its_gateways_obey() {
    let array = Array::new("127.0.7.1");
    let controller = array.controller();
    let gateways = ["a", "b"].map(|name| Gateway::recorded(&controller, name));
    let loads = gateways.each_ref().map(Gateway::load);
    wait_until_shared_out(&controller);
    controller.wait_for_an_interval("v", "it was measured", |last| last["achieved"].is_object());
    let Outcome { code, out, log } = controller.set("volume v target.p95=900us priority=8");
    assert_eq!((code, log.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("is in force within 500ms, until ") && out.contains("controller.toml"), "{out}");
    assert_eq!(controller.desired("v")["priority"], 8.0);
    controller.wait_for_an_interval("v", "a percentile is measured through both gateways", |last| {
        last["priority"] == 8.0 && last["target"]["metric"] == "p95" && last["achieved"].is_object()
    });
    let explained = Program::weir().args("explain volume v --server").arg(array.file()).run();
    assert!(explained.contains("its share is dealt out to its ports"), "{explained}");
    assert!(explained.contains("p95 900 us") && explained.contains(" + b "), "{explained}");
    let told = Program::weir().args("status --server").arg(array.file()).run();
    assert!(told.contains("pool p: at most 16 requests at the array"), "{told}");
    drop(loads);
    let recordings = gateways.each_ref().map(|gateway| gateway.scene.text("recorded"));
    let scenes = gateways.map(|Gateway { scene, server }| {
        server.stop();
        scene
    });
    let [a, b] = &recordings;
    let check = Program::weir().args("grants --total").arg(TOTAL).arg(a).arg(b);
    let Outcome { code, out, log } = check.outcome();
    assert_eq!(code, Some(0), "{out}{log}");
    for recording in recordings {
        let list = Program::weir().arg("grants").arg(&recording).run();
        assert!(
            list.lines().any(|line| line.ends_with(",controller")),
            "nothing was granted:
{list}"
        );
        let out = Program::weir().args("replay --decisions").arg(recording).run();
        assert!(out.trim_end().ends_with("all decided identically"), "{out}");
    }
    drop(scenes);
    controller.server.stop();
}

#[test]
fn what_cannot_be_set_at_a_controller_is_refused_in_one_line_and_changes_nothing() {
    let array = Array::new("127.0.7.2");
    let controller = array.controller();
    let before = ["v", "w"].map(|volume| controller.desired(volume));
    for (words, expected) in [
        ("volume v priority=0", "volume.v.priority: found 0; accepted: a number above zero"),
        ("volume v target.latency=0s", "volume.v.target.latency: found \"0s\"; accepted: a duration"),
        ("volume v priority=2 max_concurrency=1", "volume.v.max_concurrency: found 1; accepted: at least 2"),
        ("volume x priority=2", "volume.x: found no such volume; accepted: \"v\", \"w\""),
        (
            "pool p total_concurrency=7",
            "pool.p.total_concurrency: found 7 requests for 2 volumes at 2 gateways",
        ),
        ("pool p control_interval=1s", "pool.p.control_interval: found a key that cannot be changed"),
    ] {
        let Outcome { code, out, log } = controller.set(words);
        assert_eq!((code, out.as_str()), (Some(64), ""), "{words}: {log}");
        assert!(log.starts_with(expected) && log.lines().count() == 1, "{words}: {log}");
        assert_eq!(["v", "w"].map(|volume| controller.desired(volume)), before, "{words}");
        assert_eq!(controller.status()["sharing"]["total_concurrency"], TOTAL, "{words}");
    }
}

#[test]
fn clients_are_served_without_a_controller_and_another_one_takes_up() {
    let array = Array::new("127.0.7.3");
    let controller = array.controller();
    let gateways = ["a", "b"].map(|name| Gateway::start(&controller, name));
    let mut loads = gateways.each_ref().map(Gateway::load);
    wait_until_shared_out(&controller);
    controller.server.kill();
    for gateway in &gateways {
        wait_until("the static part is in force", || gateway.bounds() == STATIC_PART);
        ["v", "w"].iter().for_each(|volume| gateway.serve(volume));
        gateway.server.wait_for_log(0, "Connection refused");
        let complaints = gateway.complaints();
        assert!(complaints.len() <= 3, "not one for each attempt: {complaints:?}");
    }
    let controller = array.controller_again();
    wait_until_shared_out(&controller);
    for gateway in &gateways {
        wait_until("it is granted again", || gateway.bounds() > STATIC_PART);
    }
    assert!(loads.as_flattened_mut().iter_mut().all(Running::is_running), "clients were never disturbed");
    controller.wait_for_an_interval("v", "it was measured", |last| last["achieved"].is_object());
}

#[test]
fn what_a_lost_gateway_had_goes_to_the_other_but_for_its_static_part() {
    let array = Array::new("127.0.7.4");
    let controller = array.controller();
    let [a, b] = ["a", "b"].map(|name| Gateway::start(&controller, name));
    let _loads = [a.load(), b.load()];
    wait_until("both have more than what they fall back to", || {
        ["a", "b"].iter().all(|gateway| controller.held(gateway).is_some_and(|held| held > STATIC_PART))
    });
    assert!(a.bounds() < TOTAL - STATIC_PART);
    b.server.kill();
    wait_until("the other has the rest", || controller.held("a") == Some(TOTAL - STATIC_PART));
    wait_until("and is told so", || a.bounds() == TOTAL - STATIC_PART);
    assert_eq!(controller.held("b"), None);
    let b = Gateway::start(&controller, "b");
    let _load = b.load();
    wait_until("it has its part again", || b.bounds() > STATIC_PART);
}

#[test]
fn who_is_not_known_or_not_trusted_is_refused_in_one_line_and_serves_with_the_least() {
    let array = Array::new("127.0.7.5");
    let controller = array.controller();
    let unknown = Gateway::start(&controller, "c");
    let untrusted = Gateway::showing(&Authority::new().trusting(&array.authority), "a", &controller, "a");
    let untrusting = Gateway::showing(&Authority::new(), "b", &controller, "b");
    let imposter = Gateway::showing(&array.authority, "a", &controller, "b");
    for (gateway, why) in [
        (&unknown, "gateway c is not configured at this controller; accepted: a, b"),
        (&untrusted, "does not trust its certificate"),
        (&imposter, "is not the owner of its certificate"),
        (&untrusting, "invalid peer certificate"),
    ] {
        gateway.server.wait_for_log(0, "no controller");
        ["v", "w"].iter().for_each(|volume| gateway.serve(volume));
        assert_eq!(gateway.bounds(), 2, "one for each volume");
        let complaints = gateway.complaints();
        let is_clear = complaints.len() == 1 && complaints[0].contains(why);
        assert!(is_clear && complaints[0].contains(&controller.server.tcp), "{complaints:?}");
    }
    assert!(controller.held("a").is_none() && controller.held("b").is_none());
    assert!(controller.server.logged_since(0).contains("refused: "));
}

#[test]
fn a_certificate_that_has_expired_is_refused_in_one_line_and_its_gateway_serves_with_the_least() {
    let array = Array::new("127.0.7.9");
    let controller = array.controller();
    let scene = Scene::new();
    let tls = array.authority.issue_expired(&scene, "a");
    let of_gateway = Gateway::with(scene, &tls, &controller, "a");
    let accepted = Gateway::start(&controller, "b");
    accepted.server.wait_for_log(0, "the controller has accepted this gateway");
    controller.server.kill();
    array.authority.issue_expired(&array.scene, array.host);
    let controller = array.controller_again();
    accepted.server.wait_for_log(0, "certificate expired");
    let of_controller = Gateway::start(&controller, "a");
    for (gateway, why) in
        [(&of_gateway, "does not trust its certificate"), (&of_controller, "certificate expired")]
    {
        gateway.server.wait_for_log(0, why);
        ["v", "w"].iter().for_each(|volume| gateway.serve(volume));
        assert_eq!(gateway.bounds(), 2, "one for each volume");
    }
    assert!(controller.held("a").is_none() && controller.held("b").is_none());
}
