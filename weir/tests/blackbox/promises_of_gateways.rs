//! One array behind two gateways under the law of promises, seen from outside: the promise is behind one, and
//! the volume that hinders it behind the other.

use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Authority, Outcome, Program, Running, Scene, Server, get, status, wait_until};

/// 4 servers of 1 ms. With 32 requests of the hog waiting, a request of the database takes 9 ms.
const ARRAY: &str = "[pool.p]\ncontrol = \"none\"\n\
    [volume.db]\npool = \"p\"\nbackend = \"station:s\"\nsize = \"16MiB\"\n\
    [volume.hog]\npool = \"p\"\nbackend = \"station:s\"\nsize = \"16MiB\"\n\
    [station.s]\nservers = 4\nservice_time = \"1ms\"\n";

/// A process, and its file.
struct Part {
    scene: Scene,
    server: Server,
}

/// The file of a controller with these addresses for gateways and for its status.
fn controller_file(scene: &Scene, tls: &str, [listen, status]: [&str; 2]) -> PathBuf {
    let text = format!(
        "[controller]\nlisten = \"{listen}\"\nstatus = \"{status}\"\n{tls}[gateway.a]\n[gateway.b]\n\
         [pool.p]\ncontrol = \"promise\"\n"
    );
    scene.write("controller.toml", &text)
}

/// A gateway that serves one volume of the array.
fn gateway(authority: &Authority, name: &str, controller: &Server, array: &Server, volume: &str) -> Part {
    let scene = Scene::new();
    let tls = authority.issue(&scene, name);
    let upstream = array.tcp_uri(volume.split_once('\n').map_or(volume, |(name, _)| name));
    let (of, promise) = volume.split_once('\n').unwrap_or((volume, ""));
    let text = format!(
        "[cluster]\nname = \"{name}\"\n{tls}[pool.p]\ncontroller = \"{}\"\n\
         [volume.{of}]\npool = \"p\"\nbackend = \"{upstream}\"\n{promise}\n",
        controller.tcp
    );
    let server = Server::start(&scene.configure_controlled(&text));
    Part { scene, server }
}

fn load(gateway: &Part, volume: &str, depth: u32) -> Running {
    let load = Program::weir().arg("load").arg(gateway.server.uri(volume));
    load.args(&format!("--reads 100 --depth {depth} --duration 5m")).start()
}

fn background(gateway: &Part) -> Value {
    status(&gateway.server)["pools"][0]["background"].clone()
}

fn most(gateway: &Part) -> Option<u64> {
    background(gateway)["most"].as_u64()
}

#[test]
fn a_promise_behind_one_gateway_bounds_the_hog_behind_the_other_and_without_a_controller_the_bound_stays() {
    let (authority, host) = (Authority::new(), "127.0.9.1");
    let array_scene = Scene::new();
    let array = array_scene.serve(ARRAY);
    let scene = Scene::new();
    let tls = authority.issue(&scene, host);
    let any = format!("{host}:0");
    let of_controller = Server::controller(&controller_file(&scene, &tls, [&any, &any]));
    // Its file then has the ports that it got, for whoever asks it and for a controller that takes over.
    let told = of_controller.metrics.replace("http://", "").replace("/v1/status", "");
    let file = controller_file(&scene, &tls, [&of_controller.tcp, &told]);
    let promised = "db\ntarget = { latency = \"3ms\" }";
    let a = gateway(&authority, "a", &of_controller, &array, promised);
    let b = gateway(&authority, "b", &of_controller, &array, "hog");
    let loads = [load(&a, "db", 2), load(&b, "hog", 32)];
    wait_until("the hog has a bound because of a volume of the other gateway", || {
        let background = background(&b);
        let worst = &background["worst_off"];
        let is_elsewhere = worst["percent"].is_number() && worst["volume"].is_null();
        is_elsewhere && background["has_lost_others"] == false && most(&b).is_some_and(|most| most < 16)
    });
    wait_until("the gateway says that a volume of another one is worst off", || {
        let shown = Program::weir().args("status --server").arg(b.scene.control()).run();
        shown.contains("a volume of another gateway, at ")
    });
    wait_until("the controller says how the promises of each gateway stand", || {
        let shown = Program::weir().args("status --server").arg(file.display()).run();
        let is_of_promises = shown.contains("each gateway hears how the promises of the others stand");
        is_of_promises && shown.contains("of its limit") && shown.contains("nothing is promised")
    });
    let explain = Program::weir().args("explain volume db --server").arg(file.display());
    let Outcome { code, log, .. } = explain.outcome();
    assert_ne!(code, Some(0));
    assert!(log.contains("ask its gateway, which keeps the promises of its own volumes"), "{log}");
    let Outcome { code, log, .. } = Program::weir().args("why db --server").arg(file.display()).outcome();
    assert_ne!(code, Some(0));
    assert!(log.contains("a controller sees no requests; accepted: to ask a gateway"), "{log}");

    of_controller.kill();
    wait_until("each gateway knows that it is alone", || {
        [&a, &b].into_iter().all(|gateway| background(gateway)["has_lost_others"] == true)
    });
    let bound = most(&b).expect("it has a bound");
    let lost = get(&b.server.metrics);
    assert!(lost.contains("weir_pool_other_gateways_lost{pool=\"p\"} 1"), "{lost}");
    assert!(bound < 32, "{bound}");
    let of_controller = Server::controller(&file);
    wait_until("the gateways hear of each other again", || {
        [&a, &b].into_iter().all(|gateway| background(gateway)["has_lost_others"] == false)
    });
    assert!(most(&b).is_some_and(|most| most < 32), "the hog is not let go by a controller that starts anew");
    drop(loads);
    [a.server, b.server, of_controller, array].into_iter().for_each(Server::stop);
}
