//! weir: storage quality of service. All of it is in the library; see `lib.rs` for why.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir::main()
}
