//! weir: storage quality of service. The whole program is in the library; `lib.rs` says why.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir::main()
}
