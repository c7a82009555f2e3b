//! Claims about the module, from text to values, messages and the report.

mod arrays;
mod changes;
mod controller;
mod maestro;
mod pid;
mod problems;
mod promise;
mod resolved;
mod throttle;
mod transfers;

use std::path::Path;

use super::pool::{Control, Facade, Maestro, Pool};
use super::{Config, check_report};

/// The file of the first page of the manual.
const EXAMPLE: &str = r#"[listen]
nbd = ["127.0.0.1:10809", "unix:/run/weir/nbd.sock"]
metrics = "127.0.0.1:9810"

[pool.array1]
control = "facade"            # "none" for a plain pass-through

[volume.db]
pool = "array1"
backend = "file:/srv/weir/db.img"
size = "20GiB"                # created sparse if missing
slo = [ { up_to = "300iops", read = "10ms", write = "15ms" }, { up_to = "1000iops", read = "25ms", write = "30ms" } ]

[volume.backup]
pool = "array1"
backend = "file:/srv/weir/backup.img"
"#;

fn parse(text: &str) -> Config {
    Config::parse(Path::new("weir.toml"), text).unwrap_or_else(|error| panic!("{error}"))
}

/// The lines of the message for a bad file.
fn problems(text: &str) -> Vec<String> {
    match Config::parse(Path::new("weir.toml"), text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

/// The settings of a pool under Façade's law.
fn facade(pool: &Pool) -> &Facade {
    match &pool.control.value {
        Control::Facade(facade) => facade,
        other => panic!("it is under {other:?}"),
    }
}

/// The settings of a pool under Maestro's law.
fn maestro(pool: &Pool) -> &Maestro {
    match &pool.control.value {
        Control::Maestro(maestro) => maestro,
        other => panic!("it is under {other:?}"),
    }
}

fn report(text: &str) -> String {
    check_report(&parse(text)).to_string()
}
