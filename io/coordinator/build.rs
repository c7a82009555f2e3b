//! Compiles the messages with `protox`, which is a crate: nobody has to install `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = "proto/transfers.proto";
    println!("cargo::rerun-if-changed={file}");
    tonic_prost_build::configure()
        .codec_path("crate::codec::SmallBuffers")
        .compile_fds(protox::compile([file], ["proto"])?)?;
    Ok(())
}
