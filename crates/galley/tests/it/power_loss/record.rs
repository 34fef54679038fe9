//! The system calls of a server, recorded by strace.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use galley_testing::TestStore;

use super::REQUEST_ID;
use crate::program::{Program, galley, init_token, under};

/// A system call of the program.
#[derive(Debug)]
pub(super) enum Call {
    /// Opens a file, and creates or truncates it if the flags are set.
    Open {
        path: PathBuf,
        creates: bool,
        truncates: bool,
    },
    /// Writes bytes to a file; without an offset, at its end.
    Write {
        path: PathBuf,
        offset: Option<usize>,
        bytes: Vec<u8>,
    },
    Truncate {
        path: PathBuf,
        length: usize,
    },
    /// Begins a sync. `done` is the index at which it has ended.
    Sync {
        path: PathBuf,
        done: Option<usize>,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    /// Gives a file an additional name.
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    Unlink {
        path: PathBuf,
    },
    /// Begins to send a response.
    Answer {
        request: u64,
    },
    /// An irrelevant call.
    Other,
}

/// Runs a server under strace, which writes the system calls to `log`. The file is complete once
/// the server has ended.
pub(super) fn serve_recorded(strace: &Path, store: &TestStore, log: &Path) -> Program {
    let mut plain = galley(store);
    plain.env("GALLEY_INIT_TOKEN", init_token()).args(["serve", "--listen", "127.0.0.1:0"]);
    let mut command = Command::new(strace);
    command.args(["-f", "-qq", "-yy", "-xx", "-s", "16777216", "-e", "signal=none", "-e"]);
    command.arg(
        "trace=openat,write,pwrite64,writev,pwritev,sendto,sendmsg,ftruncate,fallocate,fsync,fdatasync,rename,renameat,\
         renameat2,unlink,unlinkat,link,linkat",
    );
    command.arg("-o").arg(log);
    Program::start(under(command, &plain))
}

/// Sends a stop signal to the server behind strace, and waits for both.
pub(super) fn stop(mut program: Program) {
    let strace = program.child.id();
    let children = std::fs::read_to_string(format!("/proc/{strace}/task/{strace}/children"));
    let server = children.unwrap().trim().to_owned();
    assert!(Command::new("kill").args(["-TERM", &server]).status().unwrap().success());
    assert!(program.child.wait().unwrap().success());
}

/// Returns the quoted texts of a line, in order.
fn quoted(line: &str) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    let mut rest = line;
    while let Some((_, after)) = rest.split_once('"') {
        let Some((text, after)) = after.split_once('"') else { break };
        let digits = text.as_bytes().chunks_exact(4);
        let byte = |one: &[u8]| {
            let digits = std::str::from_utf8(&one[2..]).unwrap();
            u8::from_str_radix(digits, 16).unwrap()
        };
        texts.push(digits.map(byte).collect());
        rest = after;
    }
    texts
}

/// Returns the text in the first angle brackets: the path of a file descriptor, or its description.
fn described(line: &str) -> Option<PathBuf> {
    let (_, after) = line.split_once('<')?;
    let (escaped, _) = after.split_once('>')?;
    if !escaped.starts_with("\\x") {
        return None;
    }
    let bytes = quoted(&format!("\"{escaped}\"")).pop()?;
    Some(PathBuf::from(String::from_utf8(bytes).ok()?))
}

fn path(text: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8(text.to_vec()).unwrap())
}

/// Parses a record. Omits calls on files outside of `directory`.
pub(super) fn read_record(log: &Path, directory: &Path, calls: &mut Vec<Call>) {
    // Calls that another thread's call interrupted, by thread.
    let mut begun: HashMap<String, usize> = HashMap::new();
    for line in BufReader::new(std::fs::File::open(log).unwrap()).lines() {
        let line = line.unwrap();
        let Some((thread, line)) = line.split_once(' ') else { continue };
        let line = line.trim_start();
        if line.starts_with("<...") {
            if let Some(place) = begun.remove(thread)
                && line.ends_with("= 0")
            {
                let end = calls.len();
                if let Call::Sync { done, .. } = &mut calls[place] {
                    *done = Some(end);
                }
            }
            calls.push(Call::Other);
            continue;
        }
        let Some((name, arguments)) = line.split_once('(') else { continue };
        let is_unfinished = line.ends_with("<unfinished ...>");
        let failed = line.rsplit_once(" = ").is_some_and(|(_, result)| result.starts_with("-1"));
        let done = (!is_unfinished).then_some(calls.len());
        let call = Some((name, arguments)).filter(|_| !failed);
        let call = call.and_then(|(name, arguments)| read_call(name, arguments, directory, done));
        if is_unfinished {
            begun.insert(thread.to_owned(), calls.len());
        }
        calls.push(call.unwrap_or(Call::Other));
    }
}

/// Returns a successful call, if it is relevant. `done` is the end of a sync.
fn read_call(name: &str, arguments: &str, directory: &Path, done: Option<usize>) -> Option<Call> {
    let ours = |path: Option<PathBuf>| {
        let name = path.as_ref()?.file_name()?.to_str()?;
        let counts = !name.ends_with("-shm") && !name.ends_with(".lock");
        path.filter(|path| counts && path.starts_with(directory))
    };
    let names: Vec<PathBuf> = match name {
        "openat" | "rename" | "renameat" | "renameat2" | "link" | "linkat" | "unlink"
        | "unlinkat" => quoted(arguments).iter().map(|text| path(text)).collect(),
        _ => Vec::new(),
    };
    let ours_at = |index: usize| ours(names.get(index).cloned());
    let last_number = || {
        let (inside, _) = arguments.rsplit_once(')').unwrap_or((arguments, ""));
        let last = inside.trim_end_matches(" <unfinished ...>").rsplit(", ").next();
        last.unwrap().trim().parse::<usize>().unwrap()
    };
    match name {
        "openat" => Some(Call::Open {
            path: ours_at(0)?,
            creates: arguments.contains("O_CREAT"),
            truncates: arguments.contains("O_TRUNC"),
        }),
        "write" | "pwrite64" | "writev" | "pwritev" | "sendto" | "sendmsg" => {
            let Some(path) = ours(described(arguments)) else {
                return answer(arguments).map(|request| Call::Answer { request });
            };
            assert!(["write", "pwrite64"].contains(&name), "{name} of {}", path.display());
            let offset = (name == "pwrite64").then(last_number);
            Some(Call::Write { path, offset, bytes: quoted(arguments).concat() })
        }
        "ftruncate" => {
            Some(Call::Truncate { path: ours(described(arguments))?, length: last_number() })
        }
        "fsync" | "fdatasync" => {
            let path = described(arguments).filter(|path| path.starts_with(directory))?;
            Some(Call::Sync { path, done })
        }
        "link" | "linkat" => Some(Call::Link { from: ours_at(0)?, to: ours_at(1)? }),
        "rename" | "renameat" | "renameat2" => {
            Some(Call::Rename { from: ours_at(0)?, to: ours_at(1)? })
        }
        "unlink" | "unlinkat" => Some(Call::Unlink { path: ours_at(0)? }),
        "fallocate" => {
            assert_eq!(ours(described(arguments)), None, "{name} is not supported here");
            None
        }
        _ => None,
    }
}

/// Returns the request's number if these are bytes of a response to one of the test's requests.
fn answer(arguments: &str) -> Option<u64> {
    let bytes = quoted(arguments).concat();
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(2_000)]).to_lowercase();
    let (_, after) =
        text.strip_prefix("http/1.1 20")?.split_once(&format!("{REQUEST_ID}: ack-"))?;
    after.split("\r\n").next()?.parse().ok()
}
