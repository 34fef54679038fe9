//! Takes Swagger UI's files out of the archive in which crates.io has them; nothing is downloaded.

use std::io::{Cursor, Read};
use std::path::Path;

use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

/// The files of the page under `/docs`, and its licence.
const FILES: [&str; 5] = [
    "dist/swagger-ui-bundle.js",
    "dist/swagger-ui.css",
    "dist/favicon-32x32.png",
    "LICENSE",
    "NOTICE",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED)).expect("a zip archive");
    let first = {
        let first = archive.by_index(0).expect("the archive is not empty");
        first.name().expect("its names are UTF-8").into_owned()
    };
    let folder = first.split('/').next().expect("all is in one folder");
    for file in FILES {
        let mut bytes = Vec::new();
        let path = format!("{folder}/{file}");
        archive
            .by_name(&path)
            .unwrap_or_else(|error| panic!("Swagger UI has no {path}: {error}"))
            .read_to_end(&mut bytes)
            .expect("the archive is whole");
        let name = Path::new(file).file_name().expect("a file has a name");
        std::fs::write(Path::new(&out).join(name), bytes).expect("the output folder is writable");
    }
}
