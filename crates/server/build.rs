//! Compresses the OpenAPI document, and the script of the API reference, which its crate contains.

use std::io::Write as _;
use std::path::Path;
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let directory = env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it");
    let document = Path::new(&directory).join("../../openapi.json");
    println!("cargo:rerun-if-changed={}", document.display());
    compress("openapi.json.gz", &fs::read(&document).expect("openapi.json is readable"));
    let script = scalar_api_reference::get_asset("scalar.js").expect("the crate has the script");
    compress("scalar.js.gz", &script);
}

fn compress(name: &str, content: &[u8]) {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).expect("memory is writable");
    let bytes = encoder.finish().expect("memory is writable");
    let out = env::var_os("OUT_DIR").expect("Cargo sets it");
    fs::write(Path::new(&out).join(name), bytes).expect("the output folder is writable");
}
