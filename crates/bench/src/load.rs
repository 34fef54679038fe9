//! Load generation: wrk on a core of its own, with the requests of a Lua script.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::server::{LOAD_CORE, PinnedServer};

/// The number of concurrent connections.
const CONNECTIONS: usize = 32;

/// The requests of a measurement.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    /// Lua code that sets the global `next_request` to a function that returns the next request.
    pub(crate) lua: String,
}

impl Requests {
    /// Creates GETs of `paths` in rotation.
    pub(crate) fn gets(paths: &[String], headers: &[(&str, &str)]) -> Self {
        let mut lua = "local requests = {}\n".to_owned();
        lua.push_str(&headers_in_lua(headers));
        lua.push_str("local number = 0\nlocal paths = {}\n");
        lua.push_str("for line in io.lines(LINES) do paths[#paths + 1] = line end\n");
        lua.push_str(
            "next_request = function()\n  number = number % #paths + 1\n  \
             return wrk.format('GET', paths[number], headers)\nend\n",
        );
        Self { lua: format!("LINES = 'LINES_FILE'\n{lua}--LINES\n{}", paths.join("\n")) }
    }

    /// Creates requests in Lua: `body(number)` returns the body of the request `number`.
    pub(crate) fn generated(
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Self {
        let headers = headers_in_lua(headers);
        let lua = format!(
            "{headers}local number = 0\n{body}\nnext_request = function()\n  number = number + 1\n  \
             return wrk.format('{method}', '{path}', headers, body(number))\nend\n"
        );
        Self { lua }
    }
}

fn headers_in_lua(headers: &[(&str, &str)]) -> String {
    let each = headers.iter().map(|(name, value)| format!("  ['{name}'] = [==[{value}]==],\n"));
    format!("local headers = {{\n{}}}\n", each.collect::<String>())
}

/// The results of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    /// The server's processor time per request.
    pub(crate) cpu: Duration,
}

/// Sends requests to `server` for the duration `time`.
pub(crate) fn run(
    folder: &Path,
    server: &PinnedServer,
    requests: &Requests,
    time: Duration,
) -> anyhow::Result<Measured> {
    let before = server.cpu_seconds()?;
    let (told, count) = wrk(folder, server.address, requests, time)?;
    let cpu = server.cpu_seconds()? - before;
    let number = |name: &str| {
        let line = told.lines().find_map(|line| line.trim().strip_prefix(name));
        line.map(|line| line.trim().to_owned())
            .with_context(|| format!("the output of wrk lacks {name}"))
    };
    if let Ok(refused) = number("Non-2xx or 3xx responses:") {
        bail!("{refused} responses were not successful");
    }
    if let Ok(errors) = number("Socket errors:") {
        bail!("{errors}");
    }
    Ok(Measured {
        per_second: number("Requests/sec:")?.parse()?,
        p50: duration(&number("50%")?)?,
        p99: duration(&number("99%")?)?,
        cpu: Duration::from_secs_f64(cpu / count),
    })
}

fn wrk(
    folder: &Path,
    address: SocketAddr,
    requests: &Requests,
    time: Duration,
) -> anyhow::Result<(String, f64)> {
    let (script, lines) = (folder.join("load.lua"), folder.join("load.lines"));
    let (lua, paths) = requests.lua.split_once("--LINES\n").unwrap_or((&requests.lua, ""));
    let lua = lua.replace("LINES_FILE", &lines.display().to_string());
    fs::write(&lines, paths)?;
    // wrk calls `request` before it has a connection, too, and each connection would begin with
    // that request.
    fs::write(&script, format!("{lua}request = function() return next_request() end\n"))?;
    let output = Command::new("taskset")
        .args(["-c", LOAD_CORE, "wrk", "-t1", "--latency", "--timeout", "30s"])
        .args(["-c", &CONNECTIONS.to_string(), "-d", &format!("{}s", time.as_secs())])
        .arg("-s")
        .arg(&script)
        .arg(format!("http://{address}/"))
        .output()
        .context("wrk can't be started: install it (apt-get install wrk)")?;
    let told = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let count = told
        .lines()
        .find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok())
        .with_context(|| format!("the output of wrk lacks the request count: {told}"))?;
    Ok((told, count))
}

/// Parses a duration in wrk's notation: `1.23ms`.
fn duration(text: &str) -> anyhow::Result<Duration> {
    let unit = text.find(char::is_alphabetic).with_context(|| format!("not a duration: {text}"))?;
    let (number, unit) = text.split_at(unit);
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => bail!("not a duration: {text}"),
    };
    Ok(Duration::from_secs_f64(number.parse::<f64>()? * factor))
}
