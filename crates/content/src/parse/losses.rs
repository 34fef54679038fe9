//! Notes what of a document doesn't come out.
//!
//! The walker says what became of each element, and this looks which of its attributes had a part
//! in that. An element that the HTML standard opens again, such as a `<b>` that ends in another
//! paragraph, counts again.

use std::collections::HashMap;

use super::dom::{Attribute, Dom, NodeId};
use super::rules;
use super::style;
use super::tag::Tag;
use crate::loss::{Effect, Loss, Place};
use crate::{color, safety};

/// The most different losses that are told.
const LOSSES_MAX: usize = 500;

/// How long a name may be until it is cut.
const NAME_MAX: usize = 100;

/// How far above an image its link is looked for.
const LINK_LEVELS_MAX: usize = 64;

/// How many siblings are counted; of an element behind more of them the place isn't told.
const SIBLINGS_MAX: usize = 5_000;

/// How many elements the way to one names at most.
const PATH_MAX: usize = 10;

/// What was lost so far.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    found: Vec<Loss>,
    places: HashMap<(String, Option<String>, Option<String>, Effect), usize>,
}

impl Losses {
    /// The losses, in the order in which they first came.
    pub(crate) fn finish(self) -> Vec<Loss> {
        self.found
    }

    /// Notes an element that is no node and no mark.
    pub(crate) fn element(&mut self, dom: &Dom, element: NodeId, effect: Effect) {
        let name = dom.name(element);
        let is_in_code = || {
            let parent = dom.parent(element).and_then(|parent| dom.tag(parent));
            parent == Some(Tag::Preformatted)
        };
        // What every table has in HTML, what says how wide columns are, and what a code block
        // holds: the tree says the same without them.
        let implied = match name {
            "tbody" | "colgroup" | "col" => true,
            // The cells say by themselves that they are headers.
            "thead" => !dom.descendants(element).any(|cell| dom.tag(cell) == Some(Tag::TableCell)),
            "code" => is_in_code(),
            _ => false,
        };
        if !implied {
            self.note(dom, element, None, None, effect);
        }
    }

    /// Notes an element of which only what is in it counts, by itself: its attributes go with it, but
    /// for what its style says.
    pub(crate) fn transparent(&mut self, dom: &Dom, element: NodeId, tag: Tag) {
        // These are what they show, and not what is in them for browsers that can't.
        let shows = matches!(
            dom.name(element),
            "img"
                | "iframe"
                | "embed"
                | "video"
                | "audio"
                | "input"
                | "template"
                | "svg"
                | "canvas"
        );
        self.element(dom, element, if shows { Effect::Dropped } else { Effect::Unwrapped });
        if tag == Tag::Link && dom.attribute(element, Attribute::Href).is_some() {
            // Why it is no link.
            self.note(dom, element, Some("href"), None, Effect::Dropped);
        }
    }

    /// Notes the link around an image, which an image can't have.
    pub(crate) fn link_of_image(&mut self, dom: &Dom, image: NodeId) {
        let around = std::iter::successors(dom.parent(image), |&node| dom.parent(node));
        if let Some(link) =
            around.take(LINK_LEVELS_MAX).find(|&node| dom.tag(node) == Some(Tag::Link))
        {
            self.note(dom, link, None, None, Effect::Unwrapped);
        }
    }

    /// Notes the attributes of an element that had no part in what became of it.
    pub(crate) fn attributes(&mut self, dom: &Dom, element: NodeId, tag: Tag) {
        for (attribute, value) in dom.attributes(element) {
            if attribute == Attribute::Style {
                self.styles(dom, element, tag, value);
            } else if !is_kept(dom, element, tag, attribute, value) {
                self.note(dom, element, Some(attribute.name()), None, Effect::Dropped);
            }
        }
        for name in dom.other_attributes(element) {
            self.note(dom, element, Some(name), None, Effect::Dropped);
        }
    }

    fn styles(&mut self, dom: &Dom, element: NodeId, tag: Tag, style: &str) {
        for (property, value) in style::properties(style) {
            // What a rendered highlight has.
            let is_plain = tag == Tag::Highlight && property == "color" && value == "inherit";
            if !is_plain && !is_style_kept(tag, &property) {
                self.note(dom, element, Some("style"), Some(&property), Effect::Dropped);
            }
        }
    }

    fn note(
        &mut self,
        dom: &Dom,
        element: NodeId,
        attribute: Option<&str>,
        property: Option<&str>,
        effect: Effect,
    ) {
        let cut = |name: &str| name.chars().take(NAME_MAX).collect::<String>();
        let name = cut(dom.name(element));
        let key = (name.clone(), attribute.map(cut), property.map(cut), effect);
        if let Some(&place) = self.places.get(&key) {
            self.found[place].count += 1;
            return;
        }
        if self.found.len() >= LOSSES_MAX {
            return;
        }
        self.found.push(Loss {
            element: name,
            attribute: key.1.clone(),
            property: key.2.clone(),
            effect,
            count: 1,
            first: Place { line: dom.line(element), path: path(dom, element) },
        });
        self.places.insert(key, self.found.len() - 1);
    }
}

/// Whether an attribute has a part in the node or mark that the element becomes.
fn is_kept(dom: &Dom, element: NodeId, tag: Tag, attribute: Attribute, value: &str) -> bool {
    match (tag, attribute) {
        (Tag::Link, Attribute::Href) => safety::is_safe_href(value),
        (Tag::Link, Attribute::Target | Attribute::Rel | Attribute::Class | Attribute::Title) => {
            dom.attribute(element, Attribute::Href).is_some_and(safety::is_safe_href)
        }
        (Tag::Image, Attribute::Src) => safety::is_safe_image_src(value),
        (Tag::Image, Attribute::Width | Attribute::Height) => {
            safety::is_safe_length(&crate::value::Value::from_attribute(value))
        }
        (Tag::OrderedList, Attribute::Start) => rules::leading_integer(value).is_some(),
        (Tag::OrderedList, Attribute::Type) => !value.is_empty(),
        (Tag::BulletList, Attribute::DataType) => value == "taskList",
        (Tag::ListItem, Attribute::DataType) => value == "taskItem",
        (Tag::ListItem, Attribute::DataChecked) => {
            dom.attribute(element, Attribute::DataType) == Some("taskItem")
        }
        (Tag::Heading(_), Attribute::Level) => {
            value.parse().is_ok_and(|level: u8| (1..=6).contains(&level))
        }
        (
            Tag::TableCell | Tag::TableHeader,
            Attribute::Colspan | Attribute::Rowspan | Attribute::Colwidth | Attribute::Align,
        )
        | (Tag::Image, Attribute::Alt | Attribute::Title)
        | (Tag::Column, Attribute::Width) => true,
        (Tag::Highlight, Attribute::DataColor) => color::is_color(value),
        // A code block has its language from the class of the code in it.
        (Tag::Mark(_), Attribute::Class) => {
            let parent = dom.parent(element).filter(|_| dom.name(element) == "code");
            let in_code = parent.is_some_and(|parent| dom.tag(parent) == Some(Tag::Preformatted));
            in_code && value.split_ascii_whitespace().any(|one| one.starts_with("language-"))
        }
        _ => false,
    }
}

/// Whether a property of an inline style is looked at.
fn is_style_kept(tag: Tag, property: &str) -> bool {
    match property {
        "font" | "font-weight" | "font-style" | "text-decoration" | "vertical-align"
        | "white-space" => true,
        "list-style-type" => matches!(tag, Tag::OrderedList | Tag::ListItem),
        "text-align" => matches!(tag, Tag::TableCell | Tag::TableHeader),
        "background" | "background-color" => tag == Tag::Highlight,
        "width" | "min-width" => matches!(tag, Tag::Column | Tag::Table),
        _ => false,
    }
}

/// The way to an element.
fn path(dom: &Dom, element: NodeId) -> String {
    let body = dom.body();
    let below = |node: &NodeId| Some(*node) != body && dom.is_element(*node);
    let up = std::iter::successors(Some(element), |&node| dom.parent(node)).take_while(below);
    let mut steps: Vec<String> =
        up.take(PATH_MAX)
            .map(|node| {
                let before = std::iter::successors(dom.previous_sibling(node), |&node| {
                    dom.previous_sibling(node)
                });
                let mut near = before.take(SIBLINGS_MAX + 1).enumerate().map(|(at, node)| {
                    (at < SIBLINGS_MAX).then_some(usize::from(dom.is_element(node)))
                });
                let name: String = dom.name(node).chars().take(NAME_MAX).collect();
                match near.try_fold(1, |place, one| Some(place + one?)) {
                    Some(place) => format!("{name}:nth-child({place})"),
                    None => name,
                }
            })
            .collect();
    steps.reverse();
    steps.join(" > ")
}
