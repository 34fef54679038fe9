//! Content as a client sends it, and its conversion to a tree.

use galley_api_types::content::ContentFormat;
use galley_api_types::problem::{Issue, Step};
use galley_content::{
    ContentError, ContentLimits, ConversionWarning, Tree, have_same_text, markdown_to_html,
};
use galley_domain::Invalid;

/// The size limit of a content tree as JSON, in bytes: several times that of the largest sensible
/// HTML.
const TREE_JSON_LIMIT: usize = 16 * 1024 * 1024;

/// Content as a client sent it.
#[derive(Debug, Clone)]
pub struct ContentInput {
    /// The format of the text.
    pub format: ContentFormat,
    /// HTML, Markdown, or the JSON of a tree.
    pub text: String,
}

/// Content that was converted to a tree.
#[derive(Debug, Clone)]
pub struct ConvertedContent {
    /// The tree as JSON.
    pub tree: String,
    /// The parts of the input that the tree lacks.
    pub warnings: Vec<ConversionWarning>,
}

impl ContentInput {
    /// Converts the content. Run it on the CPU pool for large documents.
    ///
    /// HTML and Markdown may have `size_limit` bytes. A tree is validated, and rejected if it has
    /// anything that the stored tree would lack.
    pub fn convert(&self, size_limit: usize) -> Result<ConvertedContent, Issue> {
        if self.format != ContentFormat::Json && self.text.len() > size_limit {
            let noun = format!("bytes of {}", self.format.noun());
            return Err(issue(&[], &Invalid::too_long(size_limit, &noun)));
        }
        let limits = ContentLimits::default();
        let converted = match self.format {
            ContentFormat::Html => Tree::from_html_with_warnings(&self.text, &limits),
            ContentFormat::Markdown => {
                let html = markdown_to_html(&self.text);
                if html.len() > TREE_JSON_LIMIT {
                    Err(ContentError::TooComplex)
                } else {
                    Tree::from_html_with_warnings(&html, &limits)
                }
            }
            ContentFormat::Json => {
                Tree::from_json_strict(&self.text).map(|tree| (tree, Vec::new()))
            }
        };
        let (tree, warnings) = converted.map_err(rejected)?;
        let tree = tree.to_json_within(TREE_JSON_LIMIT).ok_or_else(|| {
            let message =
                format!("is not accepted: its tree would have over {TREE_JSON_LIMIT} bytes");
            issue(&[], &Invalid::new("content_too_complex", message))
        })?;
        Ok(ConvertedContent { tree, warnings })
    }

    /// Returns true if the input, which was converted to another tree, is the rendering of a stored
    /// tree in the input's format. Such an input leaves the stored tree unchanged, even where the
    /// format can't represent all of it.
    pub fn is_rendering_of(&self, tree: &str, converted: &ConvertedContent) -> bool {
        // HTML keeps all text but white space, so most changes need no rendering.
        if self.format == ContentFormat::Html && !have_same_text(tree, &converted.tree) {
            return false;
        }
        let Ok(tree) = Tree::from_json(tree) else { return false };
        let rendering = match self.format {
            // A tree is converted to itself.
            ContentFormat::Json => return false,
            ContentFormat::Html => Some(tree.to_html()),
            ContentFormat::Markdown => tree.to_markdown_within(self.text.len()),
        };
        rendering.is_some_and(|rendering| rendering == self.text)
    }
}

fn rejected(error: ContentError) -> Issue {
    let code = match error {
        ContentError::TooDeep => "content_too_deep",
        ContentError::TooComplex => "content_too_complex",
        ContentError::InvalidTree { reason, node } => {
            return issue(
                &node,
                &Invalid::new("invalid_content", format!("is not valid: {reason}")),
            );
        }
    };
    issue(&[], &Invalid::new(code, format!("is not accepted: {error}")))
}

/// Creates an issue of the content's node at this path.
fn issue(node: &[usize], invalid: &Invalid) -> Issue {
    let field = || Step::Field("content".to_owned());
    let steps = node.iter().flat_map(|&index| [field(), Step::Item(index)]);
    Issue::new([field()].into_iter().chain(steps).collect(), invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(format: ContentFormat, text: &str) -> ContentInput {
        ContentInput { format, text: text.to_owned() }
    }

    #[test]
    fn the_size_limit_applies_to_html_and_markdown() {
        for (format, accepts) in [
            (ContentFormat::Html, false),
            (ContentFormat::Markdown, false),
            (ContentFormat::Json, true),
        ] {
            let text = r#"{"type":"doc","content":[{"type":"paragraph"}]}"#;
            assert_eq!(input(format, text).convert(10).is_ok(), accepts, "{format:?}");
        }
    }

    #[test]
    fn an_issue_names_the_node() {
        let tree = r#"{"type":"doc","content":[{"type":"paragraph"},
            {"type":"blockquote","content":[{"type":"video"}]}]}"#;
        let issue = input(ContentFormat::Json, tree).convert(0).unwrap_err();
        assert_eq!(issue.code, "invalid_content");
        assert_eq!(
            issue.message,
            "content.content[1].content[0] is not valid: unknown node \"video\""
        );
    }

    #[test]
    fn markdown_does_not_grow_without_bound() {
        // Each reference repeats the address.
        let address = format!("[a]: http://a.example/{}\n\n", "x".repeat(100_000));
        let text = address + &"[a] ".repeat(100_000);
        let converted = input(ContentFormat::Markdown, &text).convert(usize::MAX).unwrap();
        assert!(converted.tree.len() < 10 * text.len(), "{}", converted.tree.len());
    }
}
