//! `weir demo`: the demonstration. It is a crate of its own, which `make run` compiles without the rest of
//! weir.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;

/// The arguments of the demo.
#[derive(Args, Debug)]
pub(crate) struct DemoArguments {
    /// Directory for the two files of 256 MiB while it runs [default: the system's directory for large
    /// temporary files]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Seconds for which each of the two parts is judged
    #[arg(long, default_value_t = weir_demo::SECONDS)]
    seconds: u64,
}

/// Runs the demo.
///
/// # Errors
/// If there is no room for the files, or a client fails.
pub(crate) async fn demo(arguments: DemoArguments) -> Result<(), Failure> {
    Ok(weir_demo::until_interrupted(arguments.dir.as_deref(), arguments.seconds).await?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weir_engine::{Control, EngineConfig};
    use weir_model::Span;

    use crate::compose::gateway_spec;
    use crate::config::Config;

    fn file(control: &str, slo: &str) -> String {
        format!(
            "[listen]\nnbd = [\"unix:/d/nbd.sock\"]\n\
             [pool.disk]\ncontrol = \"{control}\"\n\
             [volume.db]\npool = \"disk\"\nbackend = \"file:/d/db.img\"\n{slo}\n\
             [volume.backup]\npool = \"disk\"\nbackend = \"file:/d/backup.img\"\n"
        )
    }

    #[test]
    fn the_demo_serves_what_a_user_gets_who_writes_a_file_and_no_more_than_needed_into_it() {
        let slo = "slo = [ { up_to = \"1000iops\", read = \"436us\", write = \"436us\" } ]";
        let promise = Some(Span::from_micros(436));
        let (facade, none) = (EngineConfig::default().control, Control::None);
        for (control, promise, file) in [
            (none, None, file("none", "")),
            (none, promise, file("none", slo)),
            (facade, promise, file("facade", slo)),
        ] {
            let config = Config::parse(Path::new("weir.toml"), &file).unwrap();
            let demo = weir_demo::gateway_spec(Path::new("/d"), control, promise).unwrap();
            assert_eq!(demo, gateway_spec(&config));
        }
    }
}
