//! Files that are damaged, or that claim to be something else: each is stored, and none of them
//! costs much memory, ends the server, or is served as something that a browser runs.

use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, on_both_engines};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::program::{KEY, Program, galley, init_token};

const PNG: &[u8] = include_bytes!("../../../../docs/images/console-phone-list-light.png");

/// A picture of one pixel.
const GIF: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\
    \x02\x02D\x01\0;";

const SVG: &[u8] =
    b"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\">\
    <script>alert(2)</script><image href=\"x\" onerror=\"alert(3)\"/></svg>";

const HTML: &[u8] =
    b"<!DOCTYPE html><html><body onload=alert(1)><script>alert(2)</script></body></html>";

/// The media types that browsers show without a download.
const SHOWN: [&str; 3] = ["image/", "audio/", "video/"];

/// The limit of the server's memory in bytes.
const MEMORY_LIMIT: u64 = 256 * 1024 * 1024;

struct Generator {
    random: StdRng,
    samples: Vec<Vec<u8>>,
}

impl Generator {
    fn number(&mut self, below: usize) -> usize {
        self.random.random_range(0..below.max(1))
    }

    fn sample(&mut self) -> Vec<u8> {
        let number = self.number(self.samples.len());
        self.samples[number].clone()
    }

    fn next(&mut self) -> Vec<u8> {
        let mut bytes = self.sample();
        match self.number(8) {
            0 => bytes.truncate(self.number(bytes.len())),
            1 => {
                // A size of up to 4 billion pixels a side, where headers have it.
                let side = [100_000_u32, 65_535, u32::MAX, 0][self.number(4)];
                let at = self.number(64.min(bytes.len().saturating_sub(8)));
                let side =
                    if self.number(2) == 0 { side.to_be_bytes() } else { side.to_le_bytes() };
                let end = bytes.len().min(at + 8);
                let pair = [side, side].concat();
                bytes[at..end].copy_from_slice(&pair[..end - at]);
            }
            2 => bytes.extend(self.sample()),
            3 => {
                // The head of one format, and the body of another one.
                let other = self.sample();
                let head = self.number(32).min(bytes.len());
                bytes.truncate(head);
                bytes.extend(other.get(head..).unwrap_or_default());
            }
            4 => {
                // A part that is repeated.
                let (from, length) = (self.number(bytes.len()), self.number(4_000));
                let part = bytes[from..(from + length).min(bytes.len())].to_vec();
                let at = self.number(bytes.len());
                bytes.splice(at..at, part.repeat(self.number(20)));
            }
            _ => {
                for _ in 0..=self.number(40) {
                    let at = self.number(bytes.len());
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = self.random.random();
                    }
                }
            }
        }
        bytes
    }
}

/// Returns a PNG whose header states this size, with a valid checksum and little data.
fn bomb(side: u32) -> Vec<u8> {
    let mut header = b"IHDR".to_vec();
    header.extend([side.to_be_bytes(), side.to_be_bytes()].concat());
    header.extend([8, 6, 0, 0, 0]);
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\r".to_vec();
    bytes.extend(&header);
    bytes.extend(checksum(&header).to_be_bytes());
    bytes.extend(&PNG[33..]);
    bytes
}

/// Returns the CRC-32 of a chunk of a PNG.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

async fn upload(program: &Program, filename: &str, bytes: &[u8]) -> Value {
    let request = program.request(Method::POST, &format!("/assets?filename={filename}"));
    let request = request.header("prefer", "return=representation");
    let response = request.body(bytes.to_vec()).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED, "{:?}", response.text().await);
    response.json().await.unwrap()
}

/// Requests the file and a rendition of it. Returns the rendition, if there is one.
async fn assert_harmless(program: &Program, asset: &Value, bytes: &[u8]) -> Option<Vec<u8>> {
    let url = asset["url"].as_str().unwrap();
    let response = program.client.get(url).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{url}");
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-security-policy"), "sandbox; default-src 'none'");
    assert_eq!(header("x-content-type-options"), "nosniff");
    let (kind, disposition) = (header("content-type"), header("content-disposition"));
    let is_shown = SHOWN.iter().any(|shown| kind.starts_with(shown)) && kind != "image/svg+xml";
    assert!(is_shown || disposition.starts_with("attachment"), "{kind} {disposition}");
    assert!(response.bytes().await.unwrap() == bytes, "{url}");
    let rendition = program.client.get(format!("{url}?w=320&f=jpeg")).send().await.unwrap();
    match rendition.status() {
        StatusCode::OK => Some(rendition.bytes().await.unwrap().into()),
        status => {
            assert_eq!(status, StatusCode::BAD_REQUEST, "{url}");
            None
        }
    }
}

#[on_both_engines]
async fn damaged_and_disguised_files_do_no_harm(store: TestStore) {
    let count: usize = size(60, 500, 10_000);
    let mut command = galley(&store);
    command.env("GALLEY_KEY", KEY).env("GALLEY_INIT_TOKEN", init_token());
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut program = Program::start(command);
    let mut samples = vec![PNG.to_vec(), GIF.to_vec(), SVG.to_vec(), HTML.to_vec()];
    let source = upload(&program, "source.png", PNG).await;
    for format in ["jpeg", "webp"] {
        let url = format!("{}?w=320&f={format}", source["url"].as_str().unwrap());
        let rendition = program.client.get(url).send().await.unwrap();
        assert_eq!(rendition.status(), StatusCode::OK);
        samples.push(rendition.bytes().await.unwrap().into());
    }
    for (name, bytes) in [
        ("scripted.svg", SVG.to_vec()),
        ("page.png", HTML.to_vec()),
        ("script.gif", [b"GIF89a/*", &GIF[6..], b"*/=1;alert(1)"].concat()),
        ("page.jpg", [&samples[4][..], HTML].concat()),
        ("bomb.png", bomb(100_000)),
        ("large.png", bomb(20_000)),
    ] {
        let asset = upload(&program, name, &bytes).await;
        let rendition = assert_harmless(&program, &asset, &bytes).await;
        assert!(rendition.is_none() || name == "page.jpg", "{name}");
    }
    let seed = rand::random();
    eprintln!("seed {seed}");
    let mut generator = Generator { random: StdRng::seed_from_u64(seed), samples };
    let mut rendered = 0;
    for number in 0..count {
        let bytes = generator.next();
        let name = ["a.png", "b.jpg", "c.html", "d.svg"][number % 4];
        let asset = upload(&program, name, &bytes).await;
        rendered += usize::from(assert_harmless(&program, &asset, &bytes).await.is_some());
    }
    let peak = program.peak_memory();
    assert!(peak <= MEMORY_LIMIT, "{} MiB", peak / 1024 / 1024);
    assert!(rendered > 0 && rendered < count, "{rendered} of {count}");
    program.terminate();
    let log = program.rest_of_log();
    assert!(!log.contains("panic"), "{log}");
    let found =
        format!("{count} files, {rendered} rendered; peak memory {} MiB", peak / 1024 / 1024);
    report_figure(&format!("{}: damaged and disguised files", store.engine()), found, "256 MiB");
}
