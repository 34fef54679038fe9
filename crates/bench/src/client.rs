//! A client with one connection and sequential requests, for the set-up, which is not measured.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, ensure};
use serde_json::Value;

pub(crate) struct SetupClient {
    stream: TcpStream,
    token: String,
    buffer: Vec<u8>,
}

impl SetupClient {
    pub(crate) fn connect(address: SocketAddr, token: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, token: token.to_owned(), buffer: Vec::new() })
    }

    /// Returns the JSON of a successful response.
    pub(crate) fn get(&mut self, path: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.send("GET", path, None)?.1)?)
    }

    /// Returns the text of a successful response.
    pub(crate) fn get_text(&mut self, path: &str) -> anyhow::Result<String> {
        Ok(String::from_utf8(self.send("GET", path, None)?.1)?)
    }

    /// Returns the JSON of a successful response.
    pub(crate) fn post(&mut self, path: &str, body: &Value) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.send("POST", path, Some(body))?.1)?)
    }

    /// Returns head and body of a successful response.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(String, Vec<u8>)> {
        let body = body.map(Value::to_string).unwrap_or_default();
        self.send_bytes(method, path, body.as_bytes())
    }

    /// Sends any bytes. Returns head and body of a successful response.
    pub(crate) fn send_bytes(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> anyhow::Result<(String, Vec<u8>)> {
        let (token, length) = (&self.token, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        self.stream.write_all(request.as_bytes())?;
        self.stream.write_all(body)?;
        self.buffer.clear();
        let head_end = loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            self.receive()?;
        };
        let head = std::str::from_utf8(&self.buffer[..head_end])?.to_owned();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let end =
            head_end + length.context("the response has no Content-Length")?.parse::<usize>()?;
        while self.buffer.len() < end {
            self.receive()?;
        }
        let body = self.buffer[head_end..end].to_vec();
        let told = String::from_utf8_lossy(&body);
        ensure!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {head}{told}");
        Ok((head, body))
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        let mut part = [0; 16 * 1024];
        let count = self.stream.read(&mut part)?;
        ensure!(count > 0, "the server closed the connection");
        self.buffer.extend_from_slice(&part[..count]);
        Ok(())
    }
}
