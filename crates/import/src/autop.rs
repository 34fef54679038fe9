//! The transformations that WordPress applies to a stored text before it shows it: paragraphs and
//! captions.

/// Elements that can't be part of a paragraph.
const BLOCKS: [&str; 32] = [
    "table",
    "thead",
    "tfoot",
    "caption",
    "col",
    "colgroup",
    "tbody",
    "tr",
    "td",
    "th",
    "div",
    "dl",
    "dd",
    "dt",
    "ul",
    "ol",
    "li",
    "pre",
    "form",
    "blockquote",
    "address",
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "figure",
    "section",
    "article",
];

/// Turns texts between empty lines into paragraphs, and single line ends into breaks. Text within
/// block elements stays unchanged.
pub(crate) fn paragraphs(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    // The number of open block elements.
    let mut open = 0_usize;
    let mut paragraph = String::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let tag_at = rest.find('<').unwrap_or(rest.len());
        let (before, from_tag) = rest.split_at(tag_at);
        if open == 0 {
            paragraph.push_str(before);
        } else {
            out.push_str(before);
        }
        let Some(tag) = tag(from_tag) else {
            // This `<` begins no tag.
            let step = from_tag.chars().next().map_or(0, char::len_utf8);
            let target = if open == 0 { &mut paragraph } else { &mut out };
            target.push_str(&from_tag[..step]);
            rest = &from_tag[step..];
            continue;
        };
        let (markup, behind) = from_tag.split_at(tag.len);
        rest = behind;
        if !BLOCKS.contains(&tag.name.as_str()) {
            let target = if open == 0 { &mut paragraph } else { &mut out };
            target.push_str(markup);
            continue;
        }
        if open == 0 {
            flush(&mut out, &mut paragraph);
        }
        out.push_str(markup);
        if tag.is_end {
            open = open.saturating_sub(1);
        } else if !matches!(tag.name.as_str(), "hr" | "col") {
            open += 1;
        }
    }
    flush(&mut out, &mut paragraph);
    out
}

fn flush(out: &mut String, paragraph: &mut String) {
    for part in paragraph.split("\n\n").map(str::trim).filter(|part| !part.is_empty()) {
        out.push_str("<p>");
        // An existing break before the line end counts as the same break.
        let part = ["<br>\n", "<br/>\n", "<br />\n"]
            .iter()
            .fold(part.to_owned(), |part, tag| part.replace(tag, "\n"));
        out.push_str(&part.replace('\n', "<br>"));
        out.push_str("</p>");
    }
    paragraph.clear();
}

struct HtmlTag {
    name: String,
    is_end: bool,
    len: usize,
}

/// Parses the tag that a text begins with.
fn tag(text: &str) -> Option<HtmlTag> {
    let inner = text.strip_prefix('<')?;
    let (is_end, inner) = inner.strip_prefix('/').map_or((false, inner), |inner| (true, inner));
    let len = inner.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
    if len == 0 {
        return None;
    }
    // A `>` within quotes doesn't end the tag.
    let mut quote = None;
    for (place, c) in text.char_indices() {
        match (quote, c) {
            (None, '>') => {
                return Some(HtmlTag {
                    name: inner[..len].to_ascii_lowercase(),
                    is_end,
                    len: place + 1,
                });
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    None
}

/// Replaces `[caption]` by its content. Older exports have the caption in an attribute: it is
/// appended to the content.
pub(crate) fn without_captions(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    let mut caption = None;
    loop {
        let start = rest.find("[caption").unwrap_or(rest.len());
        let end = rest.find("[/caption]").unwrap_or(rest.len());
        if end < start {
            out.push_str(&rest[..end]);
            add_caption(&mut out, caption.take());
            rest = &rest[end + "[/caption]".len()..];
            continue;
        }
        let Some(shortcode) = shortcode(&rest[start..]) else { break };
        out.push_str(&rest[..start]);
        // The caption of a previous shortcode that was not closed.
        add_caption(&mut out, caption.take());
        caption = shortcode.caption;
        rest = &rest[start + shortcode.len..];
    }
    out.push_str(rest);
    add_caption(&mut out, caption);
    out
}

fn add_caption(out: &mut String, caption: Option<&str>) {
    if let Some(caption) = caption.filter(|caption| !caption.trim().is_empty()) {
        out.push(' ');
        out.push_str(caption);
    }
}

/// The opening tag of a `[caption]`.
struct Shortcode<'t> {
    len: usize,
    caption: Option<&'t str>,
}

/// Parses the shortcode that a text begins with. A `]` within quotes doesn't end it.
fn shortcode(text: &str) -> Option<Shortcode<'_>> {
    let mut caption = None;
    let mut name_from = 0;
    // The open quote, the attribute name before it, and the offset after it.
    let mut open: Option<(char, &str, usize)> = None;
    for (place, c) in text.char_indices() {
        match open {
            Some((quote, name, from)) if c == quote => {
                if name == "caption" {
                    caption = Some(&text[from..place]);
                }
                open = None;
                name_from = place + 1;
            }
            Some(_) => {}
            None => match c {
                ']' => return Some(Shortcode { len: place + 1, caption }),
                '"' | '\'' if text[..place].ends_with('=') => {
                    open = Some((c, text[name_from..place - 1].trim(), place + 1));
                }
                c if c.is_whitespace() => name_from = place + 1,
                _ => {}
            },
        }
    }
    None
}

/// Returns true if the text contains shortcodes, such as `[gallery ids="1,2"]`.
pub(crate) fn has_shortcodes(html: &str) -> bool {
    html.split('[').skip(1).any(|part| {
        let len = part.find(|c: char| {
            !(c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
        });
        let Some((name, behind)) = len.map(|len| part.split_at(len)) else { return false };
        // `[sic]` and `[1]` are plain text. A shortcode has attributes or an end tag.
        let inner = behind.split(']').next().unwrap_or_default();
        let has_attributes = inner.starts_with(' ') && inner.contains("=\"");
        let is_known = inner.is_empty() && matches!(name, "gallery" | "playlist" | "embed");
        name.len() > 1 && (has_attributes || is_known || html.contains(&format!("[/{name}]")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_match_those_of_a_theme() {
        for (text, expected) in [
            ("", ""),
            ("One\ntwo\n\nThree", "<p>One<br>two</p><p>Three</p>"),
            ("One<br />\ntwo", "<p>One<br>two</p>"),
            (
                "One\r\n\r\n<ul>\n<li>a</li>\n\n</ul>\n\nTwo",
                "<p>One</p><ul>\n<li>a</li>\n\n</ul><p>Two</p>",
            ),
            ("A <b>b</b> 1 < 2\n\n<pre>x\n\ny</pre>", "<p>A <b>b</b> 1 < 2</p><pre>x\n\ny</pre>"),
            ("<img alt=\"a > b\">\n\n<hr>\n\nText", "<p><img alt=\"a > b\"></p><hr><p>Text</p>"),
            ("<!-- note -->\n\nA", "<p><!-- note --></p><p>A</p>"),
        ] {
            assert_eq!(paragraphs(text), expected, "{text:?}");
        }
    }

    #[test]
    fn shortcodes_are_distinguished_from_words_in_brackets() {
        let with = "[caption id=\"a\" width=\"3\"]<img src=\"a.png\"> Words[/caption] after";
        assert_eq!(without_captions(with), "<img src=\"a.png\"> Words after");
        assert_eq!(without_captions("[/caption] a [caption"), " a [caption");
        for (text, expected) in [
            (
                r#"[caption id="a" caption="Old [1] &quot;x&quot;"]<img>[/caption] z"#,
                "<img> Old [1] &quot;x&quot; z",
            ),
            (r#"[caption caption='Its "own"' width=3]<img>[/caption]"#, "<img> Its \"own\""),
            (
                r#"[caption caption="A"]<img> B[/caption][caption caption=""]<img>[/caption]"#,
                "<img> B A<img>",
            ),
            (r#"[caption caption="never closed"]<img>"#, "<img> never closed"),
            (r#"[caption title="]"]<img>[/caption]"#, "<img>"),
        ] {
            assert_eq!(without_captions(text), expected, "{text}");
        }
        for text in [
            "[gallery ids=\"1,2\"]",
            "[video mp4=\"a\"][/video]",
            "a [embed]https://x[/embed]",
            "[gallery]",
        ] {
            assert!(has_shortcodes(text), "{text}");
        }
        for text in ["He said [sic] so", "[1]", "a[i]", "[Note: a = b]", "["] {
            assert!(!has_shortcodes(text), "{text}");
        }
    }
}
