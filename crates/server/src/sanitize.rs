//! Descriptions: HTML from outside that others will show.

use std::cell::RefCell;
use std::collections::BTreeMap;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// `html` byte for byte if a sanitiser would take nothing out of it, and otherwise as it leaves it.
pub(crate) fn description(html: String) -> String {
    if !html.contains('<') || takes_nothing_out(&html) { html } else { ammonia::clean(&html) }
}

/// A sanitiser also rewrites what it keeps (`&` becomes `&amp;`), so that not the texts are
/// compared but what stands in them: everything that goes in must come out.
fn takes_nothing_out(html: &str) -> bool {
    let cleaned = ammonia::Builder::default().link_rel(None).clean(html).to_string();
    let before = Parts::of(html);
    let after = Parts::of(&cleaned);
    let kept = |(tag, count): (&String, &usize)| after.tags.get(tag).is_some_and(|n| n >= count);
    before.comments == 0 && before.text == after.text && before.tags.iter().all(kept)
}

/// What stands in a piece of HTML: its tags with their attributes, its text, its comments.
#[derive(Debug, Default)]
struct Parts {
    tags: BTreeMap<String, usize>,
    /// Without line breaks, of which a parser drops some.
    text: String,
    comments: usize,
}

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
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
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
        ] {
            assert_eq!(description(html.to_owned()), html);
        }
    }

    #[test]
    fn what_is_not_is_taken_out() {
        for (html, cleaned) in [
            ("<p onclick=x()>a</p>", "<p>a</p>"),
            ("a<script>alert(1)</script>b", "ab"),
            ("<a href=\"javascript:x\">a</a>", "<a rel=\"noopener noreferrer\">a</a>"),
            ("a<!-- secret -->b", "ab"),
            ("<b>x</b><blink>y</blink>", "<b>x</b>y"),
        ] {
            assert_eq!(description(html.to_owned()), cleaned);
        }
    }
}
