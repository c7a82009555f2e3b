//! The program of `make run`: the demonstration, and nothing else of weir.
//!
//! `weir demo` shows the same, with arguments. But weir has three times as many crates, and a newcomer waits
//! for the compiler.

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let demo = weir_demo::until_interrupted(None, weir_demo::SECONDS);
    tokio::task::LocalSet::new().block_on(&runtime, demo)
}
