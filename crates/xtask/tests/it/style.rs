//! Comments are plain technical English, files and functions are short, and each type name exists
//! once, as CONTRIBUTING.md states.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Words with which no comment opens.
const OPENERS: [&str; 10] =
    ["What", "Who", "Whose", "Whom", "Where", "Whether", "How", "Of", "Those", "Somebody"];

/// Pronouns in place of a component.
const PRONOUNS: [&str; 6] = ["somebody", "nobody", "whoever", "everybody", "someone", "anybody"];

/// The limit on columns of a line with a comment.
const COLUMNS: usize = 100;

/// The limit on the word "what" in 10,000 words.
const WHAT_LIMIT: usize = 15;

/// The limit on lines of a product source file.
const LINES: usize = 500;

/// The limit on lines of a product function, without blank lines and comments.
const FUNCTION_LINES: usize = 70;

/// The keywords before `fn`, besides `pub`.
const FUNCTION_MODIFIERS: [&str; 3] = ["const", "async", "unsafe"];

/// The names that several types have. Each crate has its own `Error`. `Actor` is the author of a
/// change in the domain, and in the server the extractor of the holder of a token. The schema of an
/// id has the id's name, by which requests are declared: `TrashedId`.
const SHARED_NAMES: [&str; 3] = ["Error", "Actor", "TrashedId"];

/// The keywords that define types.
const TYPE_KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// Returns all Rust files below a folder.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the repository is readable");
    let paths = entries.map(|entry| entry.expect("an entry is readable").path());
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Returns the product source files of all crates.
pub(crate) fn product_files() -> Vec<PathBuf> {
    let crates = fs::read_dir("..").expect("the crates' folder is readable");
    let sources = crates.map(|entry| entry.expect("an entry is readable").path().join("src"));
    let files: Vec<_> =
        sources.filter(|source| source.is_dir()).flat_map(|source| rust_files(&source)).collect();
    assert!(files.len() > 100, "the source files were not found");
    files
}

/// Returns the name of the type that a line defines. Indented lines define associated types, or
/// types within functions and macros.
fn defined_type(line: &str) -> Option<&str> {
    let mut rest = line;
    if let Some(public) = line.strip_prefix("pub") {
        rest = match public.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1,
            None => public,
        };
        rest = rest.strip_prefix(' ')?;
    }
    rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (keyword, definition) = rest.split_once(' ')?;
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let name = definition.split(|character: char| !is_part(character)).next()?;
    (TYPE_KEYWORDS.contains(&keyword) && !name.is_empty()).then_some(name)
}

/// Returns the lines of a file without its test modules, each with its number.
fn lines_without_tests(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        let is_test_module = line.trim_start() == "#[cfg(test)]"
            && lines.peek().is_some_and(|(_, next)| next.trim_start() == "mod tests {");
        if is_test_module {
            let end = line.replace("#[cfg(test)]", "}");
            for (_, line) in lines.by_ref() {
                if line == end {
                    break;
                }
            }
        } else {
            found.push((number, line));
        }
    }
    found
}

/// Returns true if a function starts in a line.
fn starts_function(line: &str) -> bool {
    let Some((modifiers, _)) = line.split_once("fn ") else { return false };
    let mut words = modifiers.split_whitespace();
    words.all(|word| word.starts_with("pub") || FUNCTION_MODIFIERS.contains(&word))
}

/// Returns the number of lines in the body of the function that starts in the first line, without
/// blank lines and comments. Returns `None` without a body, or if it ends in the same line.
fn body_lines(lines: &[(usize, &str)]) -> Option<usize> {
    let (_, first) = lines.first()?;
    let indentation = &first[..first.len() - first.trim_start().len()];
    let ends_signature = |line: &str| {
        let code = line.strip_prefix(indentation).filter(|code| !code.starts_with(' '));
        code.is_some_and(|code| code.ends_with(['{', '}', ';']))
    };
    let start = lines.iter().position(|&(_, line)| ends_signature(line))?;
    if !lines[start].1.ends_with('{') {
        return None;
    }
    let end = format!("{indentation}}}");
    let body = lines[start + 1..].iter().map(|&(_, line)| line).take_while(|line| *line != end);
    let is_code = |line: &str| !line.is_empty() && !line.starts_with("//");
    Some(body.filter(|line| is_code(line.trim_start())).count())
}

/// Returns the paragraphs of a file's comments, each with the number of its first line.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        let comment = line.trim_start().strip_prefix("//");
        let words = comment.map(|comment| comment.trim_start_matches(['/', '!']).trim());
        match words {
            Some(words) if !words.is_empty() => {
                match found.last_mut().filter(|_| is_open) {
                    Some((_, paragraph)) => {
                        paragraph.push(' ');
                        paragraph.push_str(words);
                    }
                    None => found.push((index + 1, words.to_owned())),
                }
                is_open = true;
            }
            _ => is_open = false,
        }
    }
    found
}

#[test]
fn comments_name_components_and_stay_within_100_columns() {
    // Tests start in the folder of their package.
    let crates = Path::new("..");
    let own = Path::new(file!()).file_name().expect("this file has a name");
    let (mut problems, mut words, mut whats) = (Vec::new(), 0, 0);
    for file in rust_files(crates) {
        if file.file_name() == Some(own) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file is readable");
        let mut report = |line: usize, problem: &str| {
            problems.push(format!("{}:{line}: {problem}", file.display()));
        };
        for (index, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("//") && line.chars().count() > COLUMNS {
                report(index + 1, "over 100 columns");
            }
        }
        for (line, paragraph) in paragraphs(&text) {
            // Code in backticks has names of its own.
            let prose: String = paragraph.split('`').step_by(2).collect();
            let all: Vec<&str> = prose
                .split(|character: char| !character.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .collect();
            words += all.len();
            whats += all.iter().filter(|word| word.eq_ignore_ascii_case("what")).count();
            if all.first().is_some_and(|first| OPENERS.contains(first)) {
                report(line, "opens with a question word");
            }
            if all.iter().any(|word| PRONOUNS.contains(&word.to_lowercase().as_str())) {
                report(line, "names no component");
            }
        }
    }
    assert!(words > 10_000, "the comments were not found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(whats * 10_000 <= WHAT_LIMIT * words, "{whats} times \"what\" in {words} words");
}

#[test]
fn no_product_file_exceeds_500_lines() {
    let mut problems = Vec::new();
    for file in product_files() {
        let text = fs::read_to_string(&file).expect("a source file is readable");
        let lines = text.lines().count();
        if lines > LINES {
            problems.push(format!("{}: {lines} lines, over {LINES}", file.display()));
        }
    }
    problems.sort();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn no_product_function_exceeds_70_lines() {
    let (mut problems, mut functions) = (Vec::new(), 0);
    for file in product_files() {
        if file.iter().any(|part| part == "tests" || part == "tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file is readable");
        let lines = lines_without_tests(&text);
        for (index, (number, line)) in lines.iter().enumerate() {
            if !starts_function(line) {
                continue;
            }
            let Some(count) = body_lines(&lines[index..]) else { continue };
            functions += 1;
            if count > FUNCTION_LINES {
                problems.push(format!("{}:{number}: {count} lines", file.display()));
            }
        }
    }
    assert!(functions > 2_000, "the functions were not found");
    problems.sort();
    assert!(problems.is_empty(), "over {FUNCTION_LINES} lines:\n{}", problems.join("\n"));
}

/// A name that exists twice leaves the reader of a use to find out which type it is.
#[test]
fn type_names_exist_once() {
    let mut files_by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in product_files() {
        let text = fs::read_to_string(&file).expect("a source file is readable");
        for name in text.lines().filter_map(defined_type) {
            files_by_name.entry(name.to_owned()).or_default().push(file.display().to_string());
        }
    }
    assert!(files_by_name.len() > 500, "the definitions of types were not found");
    for name in SHARED_NAMES {
        let is_shared = files_by_name.remove(name).is_some_and(|files| files.len() > 1);
        assert!(is_shared, "{name} is not shared any more: remove it from SHARED_NAMES");
    }
    let mut problems = Vec::new();
    for (name, mut files) in files_by_name {
        if files.len() > 1 {
            files.sort();
            problems.push(format!("{name}: {}", files.join(", ")));
        }
    }
    assert!(problems.is_empty(), "these names exist twice:\n{}", problems.join("\n"));
}

/// The fuzz targets are a workspace of their own, so no build of this one finds a moved file.
#[test]
fn files_that_fuzz_targets_include_exist() {
    let folder = Path::new("../../fuzz/fuzz_targets");
    let mut included = 0;
    for file in rust_files(folder) {
        let text = fs::read_to_string(&file).expect("a source file is readable");
        for path in text.split("#[path = \"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(folder.join(path).exists(), "{}: {path} is missing", file.display());
            included += 1;
        }
    }
    assert!(included > 0, "the fuzz targets were not found");
}
