//! The sanitiser of descriptions: HTML from clients that sites render.

use std::cell::Cell;

use galley_domain::Invalid;
use galley_domain::content_piece::Description;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// Returns a description as the sanitiser writes it. It has harmless elements and attributes only.
/// Each element is closed, so the description never ends the container that it is rendered in.
pub fn description(html: String) -> Result<Description, Invalid> {
    let html = String::from(Description::parse(html)?);
    let tags = OpenTags::count(&html);
    if tags.most.get() > OPEN_TAGS_MAX || tags.sum.get() > OPEN_TAGS_SUM_MAX {
        let message = format!("must not leave more than {OPEN_TAGS_MAX} tags open");
        return Err(Invalid::new("too_deep", message));
    }
    sanitized(html)
}

/// The limit on tags that are open at a time: the sanitiser takes quadratic time in them.
const OPEN_TAGS_MAX: usize = 500;

/// The limit on open tags, summed over all tags. In each paragraph, a parser reopens the formatting
/// elements that were left open. So this bounds the elements that it creates.
const OPEN_TAGS_SUM_MAX: usize = 200_000;

/// The limit on passes of the sanitiser over a text.
const PASSES_MAX: usize = 4;

/// Sanitises HTML until it no longer changes.
///
/// A parser may build trees that HTML can't represent, such as links within links. Written out and
/// parsed again, they become other trees, which must be harmless as well.
///
/// The limit on a description's length also applies to the result, which may be longer.
fn sanitized(mut html: String) -> Result<Description, Invalid> {
    for _ in 0..PASSES_MAX {
        let cleaned = ammonia::clean(&html);
        let description = Description::parse(cleaned.clone())?;
        if cleaned == html {
            return Ok(description);
        }
        html = cleaned;
    }
    Description::parse(ammonia::clean_text(&html))
}

/// A token sink that counts the tags that are open.
#[derive(Debug, Default)]
struct OpenTags {
    open: Cell<usize>,
    most: Cell<usize>,
    sum: Cell<usize>,
}

/// Elements that have no end tag.
const VOID_ELEMENTS: [&str; 6] = ["br", "hr", "img", "wbr", "col", "input"];

impl OpenTags {
    /// Counts the open tags of a text.
    fn count(html: &str) -> Self {
        let input = BufferQueue::default();
        input.push_back(StrTendril::from_slice(html));
        let tokenizer = Tokenizer::new(Self::default(), TokenizerOpts::default());
        let _ = tokenizer.feed(&input);
        tokenizer.end();
        tokenizer.sink
    }
}

impl TokenSink for OpenTags {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        if let Token::TagToken(tag) = token {
            let open = self.open.get();
            self.open.set(match tag.kind {
                TagKind::EndTag => open.saturating_sub(1),
                TagKind::StartTag if VOID_ELEMENTS.contains(&&*tag.name) => open,
                TagKind::StartTag => open + 1,
            });
            self.most.set(self.most.get().max(self.open.get()));
            self.sum.set(self.sum.get() + self.open.get());
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sanitized(html: impl Into<String>) -> String {
        super::sanitized(html.into()).unwrap().into()
    }

    #[test]
    fn html_that_grows_when_it_is_cleaned_is_rejected() {
        let tags: Vec<_> = (0..400).map(|number| format!("<i title={number}>")).collect();
        let formatting = tags.concat();
        let html = format!("<p>{formatting}</p>{}", "<p>x".repeat(7_500));
        assert_eq!(description(html).unwrap_err().code, "too_deep");
        let html = format!("<p>{formatting}</p>{}", "<p>x".repeat(90));
        assert_eq!(description(html).unwrap_err().code, "too_long");
        assert_eq!(description("&".repeat(60_000)).unwrap_err().code, "too_long");
        let stored = description("&".repeat(10_000)).unwrap();
        assert_eq!(description(stored.as_str().to_owned()), Ok(stored));
    }

    #[test]
    fn html_that_would_take_long_to_clean_is_rejected() {
        assert_eq!(description("<div>".repeat(13_000)).unwrap_err().code, "too_deep");
        assert!(description("<p>text</p><br>".repeat(4_000)).is_ok());
    }

    #[test]
    fn the_output_of_the_sanitiser_is_stored() {
        for (html, cleaned) in [
            ("", ""),
            ("it's plain", "it's plain"),
            ("plain & simple", "plain &amp; simple"),
            ("<p>One<p>two <b>bold</b>", "<p>One</p><p>two <b>bold</b></p>"),
            (
                "<a href='https://example.org/?a=1&b=2'>x</a><br/>",
                "<a href=\"https://example.org/?a=1&amp;b=2\" rel=\"noopener noreferrer\">x</a><br>",
            ),
            ("<img src=a.png alt=\"x\">", "<img src=\"a.png\" alt=\"x\">"),
            ("i <3 you", "i &lt;3 you"),
            ("<p onclick=x()>a</p>", "<p>a</p>"),
            ("a<script>alert(1)</script>b", "ab"),
            ("<a href=\"javascript:x\">a</a>", "<a rel=\"noopener noreferrer\">a</a>"),
            ("a<!-- secret -->b", "ab"),
            ("<b>x</b><blink>y</blink>", "<b>x</b>y"),
            ("hello <img src=x onerror=alert(1) ", "hello "),
            ("hello <img src=\"x onerror=alert(1) ", "hello "),
            ("<b>x</b><script", "<b>x</b>"),
        ] {
            assert_eq!(sanitized(html), cleaned);
        }
    }

    #[test]
    fn a_description_never_leaves_its_container() {
        for (html, cleaned) in [
            ("x</div></main>y", "xy"),
            ("</div></article><p>x", "<p>x</p>"),
            ("<a href=/x>x", "<a href=\"/x\" rel=\"noopener noreferrer\">x</a>"),
            ("<details><summary>x", "<details><summary>x</summary></details>"),
            ("trailing a <", "trailing a &lt;"),
            ("trailing <a", "trailing "),
            ("<div></div></div>", "<div></div>"),
            (
                "<a>1<table><a>2</table>",
                "<a rel=\"noopener noreferrer\">1</a><a rel=\"noopener noreferrer\">2</a><table></table>",
            ),
        ] {
            assert_eq!(sanitized(html), cleaned, "{html}");
        }
    }

    proptest! {
        #[test]
        fn a_stored_description_is_balanced_and_stays_as_it_is(
            parts in prop::collection::vec(prop::sample::select(vec![
                "<a>", "</a>", "<div>", "</div>", "<p>", "</p>", "<table>", "</table>", "<tr>", "<td>",
                "<details>", "<summary>", "<b>", "</b>", "<i>", "<svg>", "<math>", "<style>", "<!--",
                "<a href='", "<", ">", "&", "text", " ", "\"", "'", "<br>", "</article>", "<select>",
                "<ruby>", "<rt>", "<li>", "<ul>", "</ul>", "<h1>", "<pre>\n", "<template>",
            ]), 0..24),
        ) {
            let cleaned = sanitized(parts.concat());
            prop_assert_eq!(&sanitized(cleaned.clone()), &cleaned);
            // In a container, only the container's own end tag closes it.
            let page = format!("<section><div>{cleaned}</div><hr></section>");
            let sanitiser = {
                let mut builder = ammonia::Builder::default();
                builder.add_tags(["section"]);
                builder
            };
            let shown = sanitiser.clean(&page).to_string();
            prop_assert!(shown.ends_with("</div><hr></section>"), "{} in {}", cleaned, shown);
        }
    }
}
