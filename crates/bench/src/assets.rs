//! Files of assets: one that is served from memory, beside a constant response and nginx, and
//! renditions beside the usual tools.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::client::SetupClient;
use crate::load::Requests;
use crate::rows::Comparison;
use crate::server::{PinnedServer, TICKS_PER_SECOND};
use crate::store::BenchStore;
use crate::table::{self, median};

/// The size of the served image in bytes.
const SIZE: usize = 100 * 1024;

/// The name of the file that nginx serves.
const SERVED_FILE: &str = "image.jpg";

fn image() -> Vec<u8> {
    let mut bytes = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01".to_vec();
    bytes.resize(SIZE, b'x');
    bytes
}

/// Uploads a file, and returns the path of its address.
fn upload(galley: &PinnedServer, store: &BenchStore, bytes: &[u8]) -> anyhow::Result<String> {
    let mut client = SetupClient::connect(galley.address, &store.token)?;
    let (_, created) = client.send_bytes("POST", "/assets?filename=image.jpg", bytes)?;
    let created: Value = serde_json::from_slice(&created)?;
    let id = created["id"].as_str().context("the response has no id")?;
    let asset = client.get(&format!("/assets?id={id}"))?;
    let url = asset["url"].as_str().context("the asset has no address")?;
    let path = url.find("/a/").context("the address has no path")?;
    Ok(url[path..].to_owned())
}

/// Returns the requests for an image that the server has in memory.
pub(crate) fn cached_image(
    galley: &PinnedServer,
    store: &BenchStore,
) -> anyhow::Result<Comparison> {
    Ok(Comparison {
        name: "image of 100 KiB".to_owned(),
        bar: 0.9,
        requests: Requests::gets(&[upload(galley, store, &image())?], &[]),
        yardstick: Requests::gets(&[format!("/{SIZE}")], &[]),
    })
}

/// Returns the same requests, with those of the file at nginx.
pub(crate) fn beside_nginx(
    galley: &PinnedServer,
    store: &BenchStore,
) -> anyhow::Result<Comparison> {
    let yardstick = Requests::gets(&[format!("/{SERVED_FILE}")], &[]);
    Ok(Comparison { bar: 0.5, yardstick, ..cached_image(galley, store)? })
}

/// Starts nginx with one worker, which serves a file by `sendfile`.
pub(crate) fn nginx(work: &Path) -> anyhow::Result<Option<PinnedServer>> {
    let Some(program) = std::env::var_os("GALLEY_TEST_NGINX") else {
        eprintln!("nginx is not measured: GALLEY_TEST_NGINX does not name it");
        return Ok(None);
    };
    let folder = work.join("nginx");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(SERVED_FILE), image())?;
    let (home, file) = (folder.display().to_string(), folder.join("nginx.conf"));
    let configuration = |address: SocketAddr| {
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {home}/{kind};\n"))
            .concat();
        format!(
            "daemon off; master_process off; pid {home}/pid; error_log {home}/error.log;\n\
             events {{ worker_connections 1024; }}\nhttp {{\n{temporary}access_log off; sendfile on; \
             tcp_nopush on; open_file_cache max=100; keepalive_requests 100000000;\n\
             server {{ listen {address}; root {home}; }}\n}}\n"
        )
    };
    let arguments = |address| {
        // Without the file, nginx does not start, which is reported.
        _ = fs::write(&file, configuration(address));
        ["-p".to_owned(), home.clone(), "-c".to_owned(), file.display().to_string()].to_vec()
    };
    PinnedServer::start(program, arguments, &[]).map(Some)
}

/// Compares the processor time of renditions of a photo of 12 million pixels with that of
/// ImageMagick's resize and cwebp.
pub(crate) fn renditions(
    work: &Path,
    galley: &PinnedServer,
    store: &BenchStore,
    rounds: usize,
) -> anyhow::Result<()> {
    let [photo, small, encoded] =
        ["photo.jpg", "small.ppm", "small.webp"].map(|name| work.join(name));
    let [photo_file, small_file, encoded_file] =
        [&photo, &small, &encoded].map(|path| path.display().to_string());
    let drawn = ["-size", "4032x3024", "-seed", "1", "plasma:", "-quality", "90", &photo_file];
    if run("convert", &drawn).and_then(|_| run("cwebp", &["-version"])).is_err() {
        println!("Renditions: skipped, as ImageMagick or cwebp is missing.\n");
        return Ok(());
    }
    let bytes = fs::read(&photo)?;
    let mut figures = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..rounds.max(3) {
        // A file is rendered once, so each round has another one.
        let path = upload(galley, store, &[&bytes[..], round.to_string().as_bytes()].concat())?;
        let before = galley.cpu_seconds()?;
        let mut client = SetupClient::connect(galley.address, &store.token)?;
        client.send_bytes("GET", &format!("{path}?w=1280&f=webp"), &[])?;
        let own = galley.cpu_seconds()? - before;
        let resized = run("convert", &[&photo_file, "-resize", "1280x", &small_file])?;
        let webp = run("cwebp", &["-quiet", "-q", "80", &small_file, "-o", &encoded_file])?;
        for (figures, figure) in figures.iter_mut().zip([own, resized, webp]) {
            figures.push(figure * 1e3);
        }
    }
    let [own, resized, webp] = figures.map(median);
    let line = vec![
        format!("{own:.0}"),
        format!("{resized:.0}"),
        format!("{webp:.0}"),
        format!("{:.2}", own / (resized + webp)),
        "1.50".to_owned(),
    ];
    let heads =
        ["CPU ms of a rendition", "ImageMagick's resize", "cwebp", "ratio to both", "limit"];
    table::print(&heads, &[line]);
    Ok(())
}

/// Runs a program. Returns its processor time in seconds.
fn run(program: &str, arguments: &[&str]) -> anyhow::Result<f64> {
    let before = children_seconds()?;
    let output = Command::new(program).args(arguments).output()?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(children_seconds()? - before)
}

/// Returns the processor time of the child processes that have ended, in seconds.
fn children_seconds() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(13).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / TICKS_PER_SECOND)
}
