//! The text of a migration: its checksum, the comments at its start, and its form for each engine.

use sha2::{Digest, Sha256};

pub(super) fn checksum(sql: &str) -> String {
    use std::fmt::Write;
    Sha256::digest(sql.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

/// Returns the oldest program that may use the schema after this migration, from the comment at its
/// start.
pub(super) fn oldest_program(sql: &str) -> &str {
    let line = sql.lines().find_map(|line| line.strip_prefix("-- oldest-program: "));
    line.expect("every schema change names the oldest program that may use it")
}

/// Returns the tables that a migration rewrites, from the comment at its start.
pub(super) fn rewritten_tables(sql: &str) -> Vec<&str> {
    let line = sql.lines().find_map(|line| line.strip_prefix("-- rewrites: "));
    line.into_iter().flat_map(|tables| tables.split(", ")).collect()
}

/// Enables the parts that are meant for SQLite only. Those for PostgreSQL are comments.
pub(super) fn for_sqlite(sql: &str) -> String {
    replace_parts(sql, "/*sqlite:", |only| only)
}

/// Enables the parts for PostgreSQL, omits those for SQLite, and makes PostgreSQL compare text byte
/// by byte, as SQLite does.
pub(super) fn for_postgres(sql: &str) -> String {
    let sql = replace_parts(sql, "/*sqlite:", |_| "");
    replace_parts(&sql, "/*postgres:", |only| only).replace(" TEXT", " TEXT COLLATE \"C\"")
}

/// Replaces the comments that contain SQL for one engine only.
fn replace_parts(sql: &str, begin: &str, by: impl Fn(&str) -> &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once(begin) {
        let (only, after) = after.split_once("*/").expect("the comment ends");
        out.push_str(before);
        out.push_str(by(only));
        rest = after;
    }
    out + rest
}

/// Returns the statements of a migration, without the comments.
pub(super) fn statements(sql: &str) -> Vec<String> {
    let is_code = |line: &&str| !line.trim_start().starts_with("--");
    let code = sql.lines().filter(is_code).collect::<Vec<_>>().join("\n");
    code.split(";\n").map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}
