//! What clients learn before they ask for data: `nbdinfo`.

use serde_json::Value;

use crate::harness::{Outcome, Program, RawClient, Scene};

fn nbdinfo(args: &str, uri: &str) -> Value {
    let out = Program::new("nbdinfo").args(args).arg("--json").arg(uri).run();
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// A volume on a file, and one in memory.
fn two_volumes(scene: &Scene) -> String {
    let backend = scene.backend("db.img");
    format!(
        "[pool.p]
        [volume.db]\npool = \"p\"\nbackend = \"{backend}\"\nsize = \"5MiB\"\ndescription = \"the database\"
        [volume.scratch]\npool = \"p\"\nbackend = \"memory\"\nsize = \"1000001B\"\n"
    )
}

#[test]
fn nbdinfo_lists_every_export_with_its_size_flags_contexts_and_block_sizes() {
    let scene = Scene::new();
    let server = scene.serve(&two_volumes(&scene));
    for uri in [server.uri(""), server.tcp_uri("")] {
        let listed = nbdinfo("--list", &uri);
        assert_eq!(listed["protocol"], "newstyle-fixed");
        let exports = listed["exports"].as_array().unwrap();
        let of = |key: &str| exports.iter().map(|export| export[key].clone()).collect::<Vec<_>>();
        assert_eq!(of("export-name"), ["db", "scratch"]);
        assert_eq!(of("export-size"), [5 << 20, 1_000_001]);
        assert_eq!(of("description"), [Value::from("the database"), Value::Null]);
        for export in exports {
            assert_eq!(export["contexts"], serde_json::json!(["base:allocation"]));
            for can in ["flush", "fua", "trim", "zero", "fast_zero", "cache", "df", "multi_conn"] {
                let key =
                    if can == "multi_conn" { "can_multi_conn".to_owned() } else { format!("can_{can}") };
                assert_eq!(export[&key], true, "{key}");
            }
            assert_eq!(export["is_read_only"], false);
            assert_eq!(export["block_size_minimum"], 1);
            assert_eq!(export["block_size_maximum"], 32 << 20);
            let preferred = export["block_size_preferred"].as_u64().unwrap();
            assert!(preferred.is_power_of_two() && preferred >= 512, "{preferred}");
        }
    }
}

#[test]
fn nbdinfo_tells_one_export_over_tcp_and_over_a_unix_socket() {
    let scene = Scene::new();
    let server = scene.serve(&two_volumes(&scene));
    for uri in [server.uri("db"), server.tcp_uri("db")] {
        assert_eq!(nbdinfo("", &uri)["exports"][0]["export-size"], 5 << 20);
        assert_eq!(Program::new("nbdinfo").arg("--size").arg(uri).run().trim(), (5 << 20).to_string());
    }
}

#[test]
fn an_unknown_export_is_refused_by_name() {
    let scene = Scene::new();
    let server = scene.serve(&two_volumes(&scene));
    for (uri, named) in [(server.uri("nosuch"), "export: nosuch"), (server.tcp_uri(""), "the default export")]
    {
        let Outcome { code, log, .. } = Program::new("nbdinfo").arg(uri).outcome();
        assert_ne!(code, Some(0));
        assert!(log.contains(&format!("No such file or directory for {named}")), "{log}");
    }
}

#[test]
fn nbdinfo_map_shows_data_where_it_was_written_and_holes_elsewhere() {
    let scene = Scene::new();
    let server = scene.serve(&two_volumes(&scene));
    RawClient::connect(&server, "db").write(1 << 20, &vec![7; 1 << 20]);
    let map = nbdinfo("--map", &server.uri("db"));
    let extents: Vec<_> = map
        .as_array()
        .unwrap()
        .iter()
        .map(|extent| {
            (
                extent["offset"].as_u64().unwrap(),
                extent["length"].as_u64().unwrap(),
                extent["type"].as_u64().unwrap(),
            )
        })
        .collect();
    const HOLE_AND_ZERO: u64 = 3;
    assert_eq!(
        extents,
        [(0, 1 << 20, HOLE_AND_ZERO), (1 << 20, 1 << 20, 0), (2 << 20, 3 << 20, HOLE_AND_ZERO)]
    );
}
