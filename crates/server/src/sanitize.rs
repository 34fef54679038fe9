//! Descriptions: HTML from outside that others will show.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use galley_domain::Invalid;
use galley_domain::content_piece::Description;

/// A description that says `html`: byte for byte if a sanitiser would take nothing out of it, and
/// otherwise as it leaves it.
pub fn description(html: String) -> Result<Description, Invalid> {
    let html = String::from(Description::parse(html)?);
    let parts = Parts::of(&html);
    if parts.open_most > OPEN_MAX {
        let message = format!("must not leave more than {OPEN_MAX} tags open");
        return Err(Invalid::new("too_deep", message));
    }
    // What a sanitiser writes out anew may be longer than what it read.
    Ok(Description::from_stored(sanitized(html, &parts)))
}

/// How many tags may be open at a time: cleaning takes a time that grows with their number.
const OPEN_MAX: usize = 500;

fn sanitized(html: String, parts: &Parts) -> String {
    let is_clean = !html.contains('<') || takes_nothing_out(&html, parts);
    if is_clean { html } else { ammonia::clean(&html) }
}

/// A sanitiser also rewrites what it keeps (`&` becomes `&amp;`), so that not the texts are
/// compared but what stands in them: everything that goes in must come out.
fn takes_nothing_out(html: &str, before: &Parts) -> bool {
    static SANITISER: LazyLock<ammonia::Builder<'_>> = LazyLock::new(|| {
        let mut sanitiser = ammonia::Builder::default();
        sanitiser.link_rel(None);
        sanitiser
    });
    let cleaned = SANITISER.clean(html).to_string();
    let after = Parts::of(&cleaned);
    let kept = |(tag, count): (&String, &usize)| after.tags.get(tag).is_some_and(|n| n >= count);
    // A tag that is still open at the end is dropped by every parser, until somebody puts the text
    // into a page, whose next `>` closes it. This closes it, whatever it is in.
    let closed = Parts::of(&format!("{html}'\">"));
    if closed.tags.values().sum::<usize>() != before.tags.values().sum::<usize>() {
        return false;
    }
    before.comments == 0 && before.text == after.text && before.tags.iter().all(kept)
}

/// What stands in a piece of HTML: its tags with their attributes, its text, its comments.
#[derive(Debug, Default)]
struct Parts {
    tags: BTreeMap<String, usize>,
    /// Without line breaks, of which a parser drops some.
    text: String,
    comments: usize,
    /// Tags that were opened and not closed, so far, and at the most.
    open: usize,
    open_most: usize,
}

/// Elements that have no end tag.
const VOID: [&str; 6] = ["br", "hr", "img", "wbr", "col", "input"];

#[derive(Debug, Default)]
struct Collector(RefCell<Parts>);

impl Parts {
    fn of(html: &str) -> Self {
        let input = BufferQueue::default();
        input.push_back(StrTendril::from_slice(html));
        let tokenizer = Tokenizer::new(Collector::default(), TokenizerOpts::default());
        let _ = tokenizer.feed(&input);
        tokenizer.end();
        tokenizer.sink.0.into_inner()
    }
}

impl TokenSink for Collector {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut parts = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::EndTag => {
                parts.open = parts.open.saturating_sub(1);
                *parts.tags.entry(format!("/{}", tag.name)).or_default() += 1;
            }
            Token::TagToken(tag) => {
                if !VOID.contains(&&*tag.name) {
                    parts.open += 1;
                    parts.open_most = parts.open_most.max(parts.open);
                }
                let mut attributes: Vec<_> = tag
                    .attrs
                    .iter()
                    .map(|attribute| format!(" {}={:?}", attribute.name.local, attribute.value))
                    .collect();
                attributes.sort();
                *parts.tags.entry(format!("{}{}", tag.name, attributes.concat())).or_default() += 1;
            }
            Token::CharacterTokens(text) => {
                parts.text.extend(text.chars().filter(|&c| c != '\n'));
            }
            Token::CommentToken(_) | Token::DoctypeToken(_) => parts.comments += 1,
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_harmless_is_kept_byte_for_byte() {
        for html in [
            "",
            "plain & simple",
            "a < b && c > d",
            "<p>One<p>two <b>bold</b>",
            "<a href='https://example.org/?a=1&b=2'>x</a><br/>",
            "<img src=a.png alt=\"x\">",
            "it's <b>5 > 4</b>, isn't it",
            "i <3 you",
        ] {
            assert_eq!(sanitized(html.to_owned(), &Parts::of(html)), html);
        }
    }

    #[test]
    fn what_would_take_long_to_clean_is_refused() {
        assert_eq!(description("<div>".repeat(13_000)).unwrap_err().code, "too_deep");
        assert!(description("<p>text</p><br>".repeat(4_000)).is_ok());
    }

    #[test]
    fn what_is_not_is_taken_out() {
        for (html, cleaned) in [
            ("<p onclick=x()>a</p>", "<p>a</p>"),
            ("a<script>alert(1)</script>b", "ab"),
            ("<a href=\"javascript:x\">a</a>", "<a rel=\"noopener noreferrer\">a</a>"),
            ("a<!-- secret -->b", "ab"),
            ("<b>x</b><blink>y</blink>", "<b>x</b>y"),
            ("hello <img src=x onerror=alert(1) ", "hello "),
            ("hello <img src=\"x onerror=alert(1) ", "hello "),
            ("hello <a href='javascript:alert(1)", "hello "),
            ("<b>x</b><script", "<b>x</b>"),
            ("x</div></main>y", "xy"),
        ] {
            assert_eq!(sanitized(html.to_owned(), &Parts::of(html)), cleaned);
        }
    }
}
