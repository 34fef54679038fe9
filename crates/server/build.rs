//! Compresses the script of the API reference, which its crate contains; nothing is downloaded.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let script = scalar_api_reference::get_asset("scalar.js").expect("the crate has the script");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&script).expect("memory is writable");
    let bytes = encoder.finish().expect("memory is writable");
    let out = std::env::var_os("OUT_DIR").expect("Cargo sets it");
    std::fs::write(Path::new(&out).join("scalar.js.gz"), bytes)
        .expect("the output folder is writable");
}
