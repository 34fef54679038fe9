//! Tests behind nginx: nginx and the server agree on request boundaries, even for malformed
//! requests.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use galley_testing::{TestStore, free_port, on_both_engines, report_skipped};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::program::{Program, galley, init_token};

const CONFIGURATION: &str = include_str!("../../../../deploy/nginx.conf");

/// nginx with `deploy/nginx.conf`, in front of one server.
struct Nginx {
    child: Child,
    port: u16,
    log: std::path::PathBuf,
}

impl Nginx {
    async fn start(program: &Path, store: &TestStore, server: &str) -> Self {
        let (directory, port) = (store.directory().join("nginx"), free_port());
        std::fs::create_dir_all(&directory).unwrap();
        let (mut site, mut has_server) = (String::new(), false);
        for line in CONFIGURATION.lines() {
            // One server instead of three.
            if line.trim().starts_with("server 10.") {
                if !has_server {
                    site.push_str(&format!("server {server} max_fails=0;\n"));
                }
                has_server = true;
                continue;
            }
            site.push_str(&line.replace("listen 80;", &format!("listen 127.0.0.1:{port};")));
            site.push('\n');
        }
        let (home, log) = (directory.display(), directory.join("access.log"));
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {home}/{kind};\n"))
            .concat();
        let configuration = format!(
            "daemon off; master_process off; pid {home}/pid; error_log {home}/error.log;\n\
             events {{}}\nhttp {{\nlog_format passed '$status $upstream_status $request';\n\
             access_log {} passed;\n{temporary}{site}\n}}\n",
            log.display()
        );
        let file = directory.join("nginx.conf");
        std::fs::write(&file, configuration).unwrap();
        let mut command = Command::new(program);
        command.arg("-p").arg(&directory).arg("-c").arg(&file).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let nginx = Self { child, port, log };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            assert!(started.elapsed() < Duration::from_secs(20), "nginx does not start");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        nginx
    }

    /// Sends bytes, and returns the response once no more of it arrives.
    async fn send(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let (mut came, mut buffer) = (Vec::new(), [0; 4_096]);
        while let Ok(Ok(count @ 1..)) =
            tokio::time::timeout(Duration::from_millis(300), stream.read(&mut buffer)).await
        {
            came.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8_lossy(&came).into_owned()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns headers that two parsers may interpret as different body lengths. A body of `length`
/// bytes follows: it begins as the end of a chunked body, and continues as a request.
fn heads(length: usize) -> Vec<String> {
    let length_line = format!("Content-Length: {length}\r\n");
    let chunked = [
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding:\tchunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: chunked;x=y",
        "transfer-encoding: CHUNKED",
        "Transfer-Encoding:\u{b}chunked",
        "X: y\r\n Transfer-Encoding: chunked",
        "X: y\nTransfer-Encoding: chunked",
        "Transfer_Encoding: chunked",
        "Transfer-Encoding: chunked\r\nConnection: Transfer-Encoding",
        "Connection: Content-Length",
        "Content-Length: 0",
        "Content-Length: +0",
        "Content-Length: 0x0",
        "Content-Length: 0, 0",
        "Content-Length : 0",
        "Content_Length: 0",
        "Expect: 100-continue",
        "Upgrade: websocket\r\nConnection: Upgrade",
    ];
    let both = |line: &str| {
        [
            format!("{length_line}{line}\r\n"),
            format!("{line}\r\n{length_line}"),
            format!("{line}\r\n"),
        ]
    };
    chunked.into_iter().flat_map(both).collect()
}

#[on_both_engines]
async fn nginx_and_the_server_agree_on_request_boundaries(store: TestStore) {
    let Some(nginx) = std::env::var_os("GALLEY_TEST_NGINX") else {
        return report_skipped("nginx: GALLEY_TEST_NGINX is not set (cargo xtask test sets it)");
    };
    let mut command = galley(&store);
    command.env("GALLEY_INIT_TOKEN", init_token()).env("GALLEY_ACCESS_LOG", "on");
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut program = Program::start(command);
    let server = program.url.trim_start_matches("http://").to_owned();
    let nginx = Nginx::start(Path::new(&nginx), &store, &server).await;

    let hidden = "0\r\n\r\nGET /problems/hidden HTTP/1.1\r\nHost: galley.example.org\r\nX: ";
    for head in heads(hidden.len()) {
        for path in ["/tags", "/healthz", "/nothing"] {
            let request =
                format!("POST {path} HTTP/1.1\r\nHost: galley.example.org\r\n{head}\r\n{hidden}");
            nginx.send(request.as_bytes()).await;
        }
        // The next requests over nginx's connections to the server get their own responses.
        for _ in 0..2 {
            let request =
                "GET /healthz HTTP/1.1\r\nHost: galley.example.org\r\nConnection: close\r\n\r\n";
            let came = nginx.send(request.as_bytes()).await;
            assert!(came.starts_with("HTTP/1.1 200 "), "after {head:?}: {came}");
            assert!(
                came.contains("x-request-id: ") && !came.contains("problem"),
                "after {head:?}: {came}"
            );
        }
    }
    program.terminate();
    let came: Vec<Value> = program
        .rest_of_log()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|entry| entry["fields"]["message"] == "request completed")
        .collect();
    // The server received as many requests as nginx forwarded. nginx logs each one after its
    // response.
    let started = Instant::now();
    loop {
        let log = std::fs::read_to_string(&nginx.log).unwrap();
        let was_passed = |line: &&str| line.split(' ').nth(1) != Some("-");
        let passed = log.lines().filter(was_passed).count();
        if passed > 100 && passed == came.len() {
            break;
        }
        assert!(started.elapsed().as_secs() < 20, "{} came: {log}", came.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
