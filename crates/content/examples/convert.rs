//! Converts HTML from standard input to its tree as JSON, or by way of the tree to HTML, Markdown
//! or plain text:
//!
//! ```sh
//! echo '<p>Hello <b>world</b>' | cargo run --example convert -- markdown
//! ```
//!
//! With `lines`, each line is a separate document, as a JSON string of HTML. The output is one tree
//! per line, or `null` for a rejected document.

use std::io::{BufRead, Error, Read, Write, stdin, stdout};

use galley_content::{ContentLimits, Tree};

fn main() -> Result<(), Error> {
    let form = std::env::args().nth(1).unwrap_or_else(|| "json".to_owned());
    let limits = ContentLimits::default();
    let mut out = stdout().lock();
    if form == "lines" {
        for line in stdin().lock().lines() {
            let html: String = serde_json::from_str(&line?)?;
            let tree = Tree::from_html(&html, &limits);
            writeln!(out, "{}", tree.map_or_else(|_| "null".to_owned(), |tree| tree.to_json()))?;
        }
        return Ok(());
    }
    let mut html = String::new();
    stdin().read_to_string(&mut html)?;
    let tree = Tree::from_html(&html, &limits).map_err(Error::other)?;
    let text = match form.as_str() {
        "json" => tree.to_json(),
        "html" => tree.to_html(),
        "markdown" => tree.to_markdown(),
        "text" => tree.to_text(),
        other => {
            return Err(Error::other(format!("{other:?} is not json, html, markdown or text")));
        }
    };
    writeln!(out, "{}", text.trim_end_matches('\n'))
}
