//! Splits a file into its front matter and its text.
//!
//! Lines of `+++` delimit TOML (Zola, Hugo), and lines of `---` delimit YAML (Jekyll and most
//! others). JSON is an object at the beginning (Hugo). All become the same JSON object.

use serde_json::{Map, Value};

/// A file's parts.
#[derive(Debug, PartialEq)]
pub(crate) struct SplitText<'t> {
    pub(crate) fields: Map<String, Value>,
    pub(crate) body: &'t str,
}

/// The reason why a file's front matter can't be parsed, and its line in the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FrontMatterError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Splits a file's text.
pub(crate) fn split(text: &str) -> Result<SplitText<'_>, FrontMatterError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (fence, parse) in [("+++", toml as Parser), ("---", yaml as Parser)] {
        let Some(rest) = after_fence(text, fence) else { continue };
        let Some((front, body)) = until_fence(rest, fence) else {
            let message = format!("the front matter has no closing {fence}");
            return Err(FrontMatterError { line: 1, message });
        };
        let fields = parse(front).map_err(|malformed| FrontMatterError {
            // The fence is the first line.
            line: malformed.line + 1,
            ..malformed
        })?;
        return Ok(SplitText { fields, body });
    }
    if text.starts_with('{')
        && let Some(parts) = json(text)?
    {
        return Ok(parts);
    }
    Ok(SplitText { fields: Map::new(), body: text })
}

/// Parses an object at the file's beginning that ends at a line's end. Anything else is text.
fn json(text: &str) -> Result<Option<SplitText<'_>>, FrontMatterError> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    match values.next() {
        Some(Ok(Value::Object(fields))) => {
            let behind = &text[values.byte_offset()..];
            let (line, body) = behind.split_once('\n').unwrap_or((behind, ""));
            Ok(line.trim().is_empty().then_some(SplitText { fields, body }))
        }
        // `{{< shortcode >}}`, or `{word}`.
        Some(Err(error)) if text[1..].trim_start().starts_with('"') => {
            let (line, message) = (error.line(), format!("the front matter is not JSON: {error}"));
            Err(FrontMatterError { line, message })
        }
        _ => Ok(None),
    }
}

type Parser = fn(&str) -> Result<Map<String, Value>, FrontMatterError>;

/// Returns the text after a first line that consists of the fence.
fn after_fence<'t>(text: &'t str, fence: &str) -> Option<&'t str> {
    let (line, rest) = text.split_once('\n')?;
    (line.trim_end() == fence).then_some(rest)
}

/// Returns the text before the line that consists of the fence, and the text after it.
fn until_fence<'t>(text: &'t str, fence: &str) -> Option<(&'t str, &'t str)> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        if line.trim_end() == fence {
            return Some((&text[..start], &text[end..]));
        }
        start = end;
    }
    None
}

fn toml(front: &str) -> Result<Map<String, Value>, FrontMatterError> {
    let table: toml::Table = front.parse().map_err(|error: toml::de::Error| FrontMatterError {
        line: error.span().map_or(1, |span| front[..span.start].matches('\n').count() + 1),
        message: error.message().to_owned(),
    })?;
    Ok(table.into_iter().map(|(key, value)| (key, toml_to_json(value))).collect())
}

fn toml_to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(value) => Value::Bool(value),
        toml::Value::Datetime(time) => Value::String(time.to_string()),
        toml::Value::Array(items) => items.into_iter().map(toml_to_json).collect(),
        toml::Value::Table(table) => {
            table.into_iter().map(|(key, value)| (key, toml_to_json(value))).collect()
        }
    }
}

fn yaml(front: &str) -> Result<Map<String, Value>, FrontMatterError> {
    if front.trim().is_empty() {
        return Ok(Map::new());
    }
    let read: Result<Value, _> = serde_saphyr::from_str(front);
    match read {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(FrontMatterError {
            line: 1,
            message: "the front matter is not a mapping".to_owned(),
        }),
        Err(error) => Err(FrontMatterError {
            line: error
                .location()
                .map_or(1, |at| line_of(front, usize::try_from(at.line()).unwrap_or(1))),
            message: first_line(&error.without_snippet().to_string()),
        }),
    }
}

/// Converts a YAML line number to a line of the file. In YAML, a carriage return alone ends a line,
/// too.
fn line_of(front: &str, number: usize) -> usize {
    let (mut yaml_line, mut line) = (1, 1);
    let mut characters = front.chars().peekable();
    while let Some(character) = characters.next() {
        if yaml_line >= number {
            break;
        }
        let is_half = character == '\r' && characters.peek() == Some(&'\n');
        yaml_line += usize::from(character == '\n' || (character == '\r' && !is_half));
        line += usize::from(character == '\n');
    }
    line
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equivalent_toml_and_yaml_give_equal_fields() {
        let toml =
            "+++\ntitle = \"A\"\ndate = 2024-05-06\ntags = [\"x\"]\n[extra]\nn = 1\n+++\nBody\n";
        let yaml =
            "---\r\ntitle: A\r\ndate: 2024-05-06\r\ntags: [x]\r\nextra:\r\n  n: 1\r\n---\r\nBody\n";
        let toml = split(toml).unwrap();
        assert_eq!(toml.body, "Body\n");
        assert_eq!(toml, split(yaml).unwrap());
    }

    #[test]
    fn error_lines_count_from_the_start_of_the_file() {
        for (text, line) in
            [("---\na: b\r\nc: [\r\n---\n", 3), ("---\r\r\na: b\r\r\rc: \u{0}\n---\n", 2)]
        {
            let malformed = split(text).unwrap_err();
            assert_eq!(malformed.line, line, "{text:?}: {malformed:?}");
        }
        assert_eq!(line_of("a\rb\r\nc\nd", 4), 3);
    }

    #[test]
    fn exponential_yaml_aliases_are_rejected() {
        // Expanded, this would be a gigabyte.
        let mut front = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let before = format!("*a{}, ", level - 1).repeat(10);
            front.push_str(&format!("a{level}: &a{level} [{}]\n", before.trim_end_matches(", ")));
        }
        let malformed = split(&format!("---\n{front}---\n")).unwrap_err();
        assert!(malformed.message.contains("budget"), "{malformed:?}");
        // A few aliases are common.
        let parts = split("---\na: &a [x, y]\nb: *a\n---\n").unwrap();
        assert_eq!(parts.fields["a"], parts.fields["b"]);
    }

    #[test]
    fn a_file_without_front_matter_is_all_text() {
        for text in ["# Hello\n\n---\nx", "", "--- \nnot closed is different", "text\n+++\n"] {
            if !text.starts_with("---") {
                assert_eq!(split(text).unwrap().body, text);
            }
        }
        assert_eq!(split("---\n---\nx").unwrap().body, "x");
    }

    #[test]
    fn parse_errors_name_their_line() {
        let line = |text| split(text).unwrap_err().line;
        assert_eq!(line("+++\ntitle = \"A\"\nslug = \n+++\n"), 3);
        assert_eq!(line("---\ntitle: A\nslug: [\n---\n"), 3);
        assert_eq!(line("+++\ntitle = \"A\"\n"), 1);
        assert_eq!(line("---\n- a\n- b\n---\n"), 2);
    }
}
