//! The metrics of the manual: the page of operation has each served metric, and only those; alerts use no
//! others.

use std::collections::BTreeMap;

use crate::harness::{Program, Scene, Server, blocks, get, page, wait_until};

const PAGE: &str = "operating.md";

/// A configuration with every law, every kind of target and every limit.
const ALL: &str = "[pool.promised]\ncontrol = \"facade\"\n[pool.plain]\ncontrol = \"none\"\n\
    [pool.shared]\ncontrol = \"maestro\"\ntotal_concurrency = 16\ncontrol_interval = \"50ms\"\n\
    [pool.strained]\ncontrol = \"promise\"\n[station.s]\nservers = 1\nservice_time = \"5ms\"\n\
    [volume.strained]\npool = \"strained\"\nbackend = \"station:s\"\nsize = \"1MiB\"\n\
    target = { latency = \"1ms\" }\n\
    [volume.hog]\npool = \"strained\"\nbackend = \"station:s\"\nsize = \"1MiB\"\n\
    [pool.ordered]\ncontrol = \"promise\"\n[station.o]\nservers = 1\nservice_time = \"2ms\"\n\
    [volume.urgent]\npool = \"ordered\"\nbackend = \"station:o\"\nsize = \"1MiB\"\n\
    target = { latency = \"20ms\" }\n\
    [volume.patient]\npool = \"ordered\"\nbackend = \"station:o\"\nsize = \"1MiB\"\n\
    target = { latency = \"10s\" }\n\
    [pool.scarce]\ncontrol = \"promise\"\n[station.r]\nservers = 1\nservice_time = \"2ms\"\n\
    [volume.one]\npool = \"scarce\"\nbackend = \"station:r\"\nsize = \"1MiB\"\ntarget = { iops = 400 }\n\
    [volume.two]\npool = \"scarce\"\nbackend = \"station:r\"\nsize = \"1MiB\"\ntarget = { iops = 300 }\n\
    [pool.guarded]\ncontrol = \"pid\"\nthreshold = \"15ms\"\n\
    [volume.guarded]\npool = \"guarded\"\nbackend = \"memory\"\nsize = \"1MiB\"\n\
    [volume.slo]\npool = \"promised\"\nbackend = \"memory\"\nsize = \"1MiB\"\n\
    slo = [{ up_to = \"100000iops\", read = \"1s\", write = \"1s\" }]\n\
    [volume.plain]\npool = \"plain\"\nbackend = \"memory\"\nsize = \"1MiB\"\n\
    [volume.latency]\npool = \"shared\"\nbackend = \"memory\"\nsize = \"1MiB\"\ntarget = { latency = \"1s\" }\n\
    max_iops = \"100000iops\"\nmax_bandwidth = \"1GiB/s\"\n\
    [volume.throughput]\npool = \"shared\"\nbackend = \"memory\"\nsize = \"1MiB\"\ntarget = { throughput = \"1MiB/s\" }\n\
    [volume.rate]\npool = \"shared\"\nbackend = \"memory\"\nsize = \"1MiB\"\ntarget = { iops = 9 }\n";

/// A metric, by the name that a query uses.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Metric {
    kind: String,
    /// The names of its labels.
    labels: String,
}

/// Labels of a series.
type Labels = BTreeMap<String, String>;

/// The result of one scrape.
struct Scrape {
    metrics: BTreeMap<String, Metric>,
    series: Vec<(String, Labels)>,
}

/// A scrape of a server with everything, made when each metric has a value.
fn scrape() -> Scrape {
    let scene = Scene::new();
    let server = scene.serve(ALL);
    let load = |(volume, depth)| {
        let load = Program::weir().arg("load").arg(server.uri(volume)).arg("--depth").arg(depth);
        load.args("--reads 50 --duration 5m").start()
    };
    let loads = [
        ("slo", "1"),
        ("latency", "1"),
        ("strained", "1"),
        ("hog", "1"),
        ("urgent", "1"),
        ("patient", "64"),
        ("one", "8"),
        ("two", "16"),
    ];
    let _loads = loads.map(load);
    let mut scrape = read(&server);
    wait_until("each metric has a sample", || {
        scrape = read(&server);
        scrape.metrics.keys().all(|name| has(&scrape, name, &Labels::new()))
    });
    scrape
}

/// Whether there is a series of this metric, and with these labels.
fn has(scrape: &Scrape, name: &str, labels: &Labels) -> bool {
    let parts = [name.to_owned(), format!("{name}_bucket")];
    scrape.series.iter().any(|(series, found)| {
        parts.contains(series) && labels.iter().all(|(label, value)| found.get(label) == Some(value))
    })
}

fn read(server: &Server) -> Scrape {
    let text = get(&server.metrics);
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let series: Vec<_> = samples.map(|line| selector(line.rsplit_once(' ').expect("a value").0)).collect();
    let mut metrics = BTreeMap::new();
    for (family, kind) in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')) {
        let name = if kind == "counter" { format!("{family}_total") } else { family.to_owned() };
        let part = if kind == "histogram" { format!("{family}_count") } else { name.clone() };
        let labels = series.iter().find(|(series, _)| *series == part).map(|(_, labels)| labels);
        let labels = labels.map(|labels| labels.keys().cloned().collect::<Vec<_>>().join(", "));
        metrics.insert(name, Metric { kind: kind.to_owned(), labels: labels.unwrap_or_default() });
    }
    Scrape { metrics, series }
}

/// A name and the labels behind it, such as `weir_pool_queued{pool="p"}`; with `=~`, the first of the values.
fn selector(text: &str) -> (String, Labels) {
    let (name, labels) = text.split_once('{').unwrap_or((text, "}"));
    let labels = labels.split_once('}').expect("labels have an end").0;
    let label = |label: &str| {
        let (label, value) = label.split_once('=').expect("a label has a value");
        let value = value.trim_start_matches('~').trim_matches('"').split('|').next().unwrap_or_default();
        (label.to_owned(), value.to_owned())
    };
    (name.to_owned(), labels.split(',').filter(|label| !label.is_empty()).map(label).collect())
}

#[test]
fn the_page_of_operation_lists_every_metric_that_is_served_and_no_other() {
    let text = page(PAGE);
    let rows = text.lines().filter(|line| line.starts_with("| `weir_"));
    let row = |line: &str| {
        let cells: Vec<_> = line.split('|').map(|cell| cell.trim().replace('`', "")).collect();
        let [_, name, kind, labels, ..] = &*cells else {
            panic!("a row has a name, a type and labels: {line}")
        };
        (name.clone(), Metric { kind: kind.clone(), labels: labels.clone() })
    };
    let listed: BTreeMap<_, _> = rows.map(row).collect();
    assert_eq!(listed, scrape().metrics, "docs/{PAGE} and what is served");
}

#[test]
fn alerts_of_the_page_of_operation_ask_for_what_is_served() {
    let scrape = scrape();
    let mut asked = 0;
    for block in blocks(PAGE).iter().filter(|block| block.mark == "weir-alerts.yml") {
        for (at, _) in block.text.match_indices("weir_") {
            let rest = &block.text[at..];
            let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
            let name = &rest[..rest.find(|c| !is_name(c)).expect("an expression goes on")];
            let after = &rest[name.len()..];
            let end =
                if after.starts_with('{') { after.find('}').expect("labels have an end") + 1 } else { 0 };
            let (_, labels) = selector(&rest[..name.len() + end]);
            let metric = name.trim_end_matches("_bucket").trim_end_matches("_count");
            assert!(has(&scrape, metric, &labels), "{}: nothing served is {name}{labels:?}", block.place);
            asked += 1;
        }
    }
    assert!(asked > 0, "docs/{PAGE} has alerts");
}
