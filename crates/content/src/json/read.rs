//! Parses a stored tree, and rejects it if it violates the schema or isn't safe to render.
//!
//! Missing attributes get their defaults, so that trees stored before an attribute was added still
//! parse. Nothing is repaired, as a tree that isn't valid was not written by this crate. A client's
//! tree is read strictly: what the result would lack is rejected.

use memchr::memchr2;
use serde_json_borrow::{ObjectAsVec as Object, Value as Json};

use crate::error::ContentError;
use crate::limits::{COLSPAN_MAX, ContentLimits, ROWSPAN_MAX};
use crate::marks::{Flag, Link, LinkRest, Marks};
use crate::node::{Align, CellAttrs, ImageAttrs, ListAttrs, NodeKind};
use crate::schema::NodeType;
use crate::tree::{Tree, TreeBuilder};
use crate::value::AttrValue;
use crate::{color, safety};

/// Reads a stored tree.
pub(crate) fn read(json: &str) -> Result<Tree, ContentError> {
    read_with(json, false)
}

/// Reads a client's tree.
pub(crate) fn read_strict(json: &str) -> Result<Tree, ContentError> {
    read_with(json, true)
}

fn read_with(json: &str, is_strict: bool) -> Result<Tree, ContentError> {
    let depth_max = ContentLimits::default().tree_depth;
    // Each level of the tree has two levels of JSON. Marks and their attributes add a few.
    if json_depth(json.as_bytes()) > depth_max * 2 + 6 {
        return Err(ContentError::TooDeep);
    }
    let root = parse(json)?;
    let root = object(&root, "the document")?;
    let mut reader =
        TreeReader { builder: TreeBuilder::new(), depth_max, is_strict, path: Vec::new() };
    if node_type(root)? != NodeType::Doc {
        return Err(ContentError::invalid("the root is not a doc"));
    }
    match reader.node(root, NodeType::Doc, 0) {
        Ok(()) => Ok(reader.builder.finish()),
        Err(error) => Err(error.at(reader.path)),
    }
}

/// Returns the depth of nested arrays and objects in a JSON text.
pub fn json_depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => at += string_size(&json[at..]),
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns the size of a JSON string after its first quote, with the last quote.
fn string_size(json: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr2(b'"', b'\\', json.get(at..).unwrap_or_default()) {
        at += found + 1;
        if json[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    json.len()
}

/// Returns true if two written trees have the same text, apart from white space. This compares the
/// JSON without parsing it.
pub fn have_same_text(a: &str, b: &str) -> bool {
    text_bytes(a).eq(text_bytes(b))
}

/// Returns the bytes of all texts in the JSON of a written tree, without white space and escaped
/// control characters.
fn text_bytes(json: &str) -> impl Iterator<Item = u8> {
    // A quote within a string is escaped, so this is always a key.
    json.split("\"text\":\"").skip(1).flat_map(|rest| {
        let mut bytes = rest.bytes();
        let mut escaped = None;
        std::iter::from_fn(move || {
            if let Some(byte) = escaped.take() {
                return Some(byte);
            }
            loop {
                match bytes.next()? {
                    b'"' => return None,
                    b' ' => {}
                    b'\\' => match bytes.next()? {
                        b'u' => _ = bytes.nth(3),
                        b'n' | b'r' | b't' | b'f' | b'b' => {}
                        byte => {
                            escaped = Some(byte);
                            return Some(b'\\');
                        }
                    },
                    byte => return Some(byte),
                }
            }
        })
        .fuse()
    })
}

fn parse(json: &str) -> Result<Json<'_>, ContentError> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    // The deserializer's own limit is lower than the permitted depth, which was checked before.
    deserializer.disable_recursion_limit();
    let mut documents = deserializer.into_iter::<Json<'_>>();
    match (documents.next(), documents.next()) {
        (Some(Ok(document)), None) => Ok(document),
        (None, _) => Err(ContentError::invalid("nothing there")),
        (Some(Err(error)), _) => Err(ContentError::invalid(format!("not JSON: {error}"))),
        (Some(Ok(_)), Some(_)) => Err(ContentError::invalid("more than one document")),
    }
}

fn object<'a>(json: &'a Json<'a>, what: &str) -> Result<&'a Object<'a>, ContentError> {
    json.as_object().ok_or_else(|| ContentError::invalid(format!("{what} is not an object")))
}

fn node_type(node: &Object<'_>) -> Result<NodeType, ContentError> {
    let name = node.get("type").and_then(Json::as_str);
    name.and_then(NodeType::from_name)
        .ok_or_else(|| ContentError::invalid(format!("unknown node {:?}", name.unwrap_or(""))))
}

struct TreeReader {
    builder: TreeBuilder,
    depth_max: usize,
    /// True if unknown keys and attributes are rejected.
    is_strict: bool,
    /// The path to the node that is read: indexes of children.
    path: Vec<usize>,
}

impl TreeReader {
    /// Reads a node and its descendants. The recursion is at most `depth_max` deep.
    fn node(
        &mut self,
        node: &Object<'_>,
        node_type: NodeType,
        depth: usize,
    ) -> Result<(), ContentError> {
        if depth > self.depth_max {
            return Err(ContentError::TooDeep);
        }
        let children = match node.get("content") {
            None | Some(Json::Null) => &[][..],
            Some(Json::Array(children)) => children,
            Some(_) => return Err(ContentError::invalid("content is not a list")),
        };
        if !node_type.is_inline() && !node.get("marks").is_none_or(is_empty) {
            return Err(ContentError::invalid(format!("marks on {}", node_type.name())));
        }
        let attrs = Attrs::of(node)?;
        self.check_keys(node, &attrs, node_type)?;
        let kind = self.kind(&attrs, node_type)?;
        let place = self.builder.open(kind);
        let mut started = false;
        let mut after_text = false;
        for (index, child) in children.iter().enumerate() {
            self.path.push(index);
            let child = object(child, "a node")?;
            let child_type = self::node_type(child)?;
            if !node_type.content().allows(started, child_type) {
                let (child, parent) = (child_type.name(), node_type.name());
                return Err(ContentError::invalid(format!("{child} can't stand here in {parent}")));
            }
            started = true;
            match child_type {
                NodeType::Text | NodeType::HardBreak => {
                    self.inline(child, child_type, node_type, after_text)?;
                    if depth + 1 > self.depth_max {
                        return Err(ContentError::TooDeep);
                    }
                }
                _ => self.node(child, child_type, depth + 1)?,
            }
            after_text = child_type == NodeType::Text;
            self.path.pop();
        }
        if !node_type.content().may_end(started) {
            return Err(ContentError::invalid(format!("{} is empty", node_type.name())));
        }
        self.builder.close(place);
        Ok(())
    }

    fn inline(
        &mut self,
        node: &Object<'_>,
        node_type: NodeType,
        parent: NodeType,
        after_text: bool,
    ) -> Result<(), ContentError> {
        self.check_keys(node, &Attrs::of(node)?, node_type)?;
        let marks = self.marks(node.get("marks"))?;
        if !marks.is_empty() && !parent.allows_marks() {
            return Err(ContentError::invalid(format!("marks in {}", parent.name())));
        }
        let marks = self.builder.marks(marks);
        if node_type == NodeType::HardBreak {
            self.builder.leaf(NodeKind::HardBreak { marks });
            return Ok(());
        }
        let text = node.get("text").and_then(Json::as_str).filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| ContentError::invalid("a text without text"))?;
        self.builder.text(text, marks, after_text);
        Ok(())
    }

    /// Rejects keys and attributes that the node would lack, if the tree is read strictly.
    fn check_keys(
        &self,
        node: &Object<'_>,
        attrs: &Attrs<'_>,
        node_type: NodeType,
    ) -> Result<(), ContentError> {
        if !self.is_strict {
            return Ok(());
        }
        let keys: &[&str] = match node_type {
            NodeType::Text => &["type", "attrs", "marks", "text"],
            NodeType::HardBreak => &["type", "attrs", "marks"],
            leaf if leaf.is_leaf() => &["type", "attrs"],
            _ => &["type", "attrs", "content", "marks"],
        };
        check_known(node, keys, node_type.name())?;
        attrs.check_names(node_type.name(), node_attributes(node_type))
    }

    fn kind(&mut self, attrs: &Attrs<'_>, node_type: NodeType) -> Result<NodeKind, ContentError> {
        Ok(match node_type {
            NodeType::Doc => NodeKind::Doc,
            NodeType::Heading => NodeKind::Heading {
                level: u8::try_from(attrs.integer("level", 1, 6, 1)?)
                    .map_err(|_| ContentError::invalid("heading level"))?,
            },
            NodeType::Blockquote => NodeKind::Blockquote,
            NodeType::BulletList => NodeKind::BulletList,
            NodeType::OrderedList => NodeKind::OrderedList(self.builder.list(attrs.list()?)),
            NodeType::ListItem => NodeKind::ListItem,
            NodeType::TaskList => NodeKind::TaskList,
            NodeType::TaskItem => NodeKind::TaskItem { checked: attrs.boolean("checked")? },
            NodeType::CodeBlock => {
                let language = attrs.string("language")?;
                if !language.is_none_or(safety::is_safe_language) {
                    return Err(ContentError::invalid("language of a code block"));
                }
                NodeKind::CodeBlock(language.map(|language| self.builder.language(language)))
            }
            NodeType::HorizontalRule => NodeKind::HorizontalRule,
            NodeType::Image => NodeKind::Image(self.builder.image(attrs.image()?)),
            NodeType::Table => NodeKind::Table,
            NodeType::TableRow => NodeKind::TableRow,
            NodeType::TableCell => NodeKind::TableCell(self.builder.cell(attrs.cell()?)),
            NodeType::TableHeader => NodeKind::TableHeader(self.builder.cell(attrs.cell()?)),
            NodeType::Paragraph | NodeType::HardBreak | NodeType::Text => NodeKind::Paragraph,
        })
    }

    fn marks(&mut self, marks: Option<&Json<'_>>) -> Result<Marks, ContentError> {
        let mut set = Marks::default();
        let marks = match marks {
            None | Some(Json::Null) => return Ok(set),
            Some(Json::Array(marks)) => marks,
            Some(_) => return Err(ContentError::invalid("marks are not a list")),
        };
        for mark in marks {
            let mark = object(mark, "a mark")?;
            let attrs = Attrs::of(mark)?;
            let name = mark.get("type").and_then(Json::as_str).unwrap_or_default();
            if self.is_strict {
                attrs.check_names(name, mark_attributes(name))?;
                check_known(mark, &["type", "attrs"], name)?;
                if set.iter().any(|earlier| earlier.name() == name) {
                    return Err(ContentError::invalid(format!("the mark {name} twice")));
                }
            }
            match name {
                "link" => set.link = Some(self.builder.link(attrs.link()?)),
                "highlight" => {
                    let color = attrs.string("color")?.unwrap_or_default();
                    if !color.is_empty() && !color::is_color(color) {
                        return Err(ContentError::invalid("color of a highlight"));
                    }
                    set.highlight = Some(self.builder.color(color));
                }
                _ => match Flag::from_name(name) {
                    Some(flag) => set = set.with(flag),
                    None => return Err(ContentError::invalid(format!("unknown mark {name:?}"))),
                },
            }
        }
        Ok(set)
    }
}

/// Returns the names of a node's attributes.
fn node_attributes(node_type: NodeType) -> &'static [&'static str] {
    match node_type {
        NodeType::Heading => &["level"],
        NodeType::OrderedList => &["start", "type"],
        NodeType::TaskItem => &["checked"],
        NodeType::CodeBlock => &["language"],
        NodeType::Image => &["src", "alt", "title", "width", "height"],
        NodeType::TableCell | NodeType::TableHeader => &["colspan", "rowspan", "colwidth", "align"],
        _ => &[],
    }
}

/// Returns the names of a mark's attributes.
fn mark_attributes(mark: &str) -> &'static [&'static str] {
    match mark {
        "link" => &["href", "target", "rel", "class", "title"],
        "highlight" => &["color"],
        _ => &[],
    }
}

/// Rejects keys besides the known ones. Null and an empty list count as absent.
fn check_known(object: &Object<'_>, known: &[&str], what: &str) -> Result<(), ContentError> {
    let mut keys = object.iter().filter(|(_, value)| !is_empty(value)).map(|(key, _)| key);
    match keys.find(|key| !known.contains(key)) {
        Some(key) => Err(ContentError::invalid(format!("{what} has no {key:?}"))),
        None => Ok(()),
    }
}

fn is_empty(json: &Json<'_>) -> bool {
    json.is_null() || json.as_array().is_some_and(<[_]>::is_empty)
}

/// The attributes of a node or mark.
struct Attrs<'a>(Option<&'a Object<'a>>);

impl<'a> Attrs<'a> {
    fn of(node: &'a Object<'a>) -> Result<Self, ContentError> {
        match node.get("attrs") {
            None | Some(Json::Null) => Ok(Self(None)),
            Some(attrs) => object(attrs, "attrs").map(|attrs| Self(Some(attrs))),
        }
    }

    /// Rejects attributes besides the known ones.
    fn check_names(&self, what: &str, known: &[&str]) -> Result<(), ContentError> {
        match self.0 {
            Some(attrs) => check_known(attrs, known, &format!("attrs of {what}")),
            None => Ok(()),
        }
    }

    fn get(&self, name: &str) -> Option<&'a Json<'a>> {
        self.0.and_then(|attrs| attrs.get(name)).filter(|value| !value.is_null())
    }

    fn string(&self, name: &str) -> Result<Option<&'a str>, ContentError> {
        let wrong = || ContentError::invalid(format!("{name} is not a string"));
        self.get(name).map(|value| value.as_str().ok_or_else(wrong)).transpose()
    }

    fn boolean(&self, name: &str) -> Result<bool, ContentError> {
        let wrong = || ContentError::invalid(format!("{name} is neither true nor false"));
        self.get(name).map_or(Ok(false), |value| value.as_bool().ok_or_else(wrong))
    }

    fn integer(&self, name: &str, min: i64, max: i64, default: i64) -> Result<i64, ContentError> {
        let Some(value) = self.get(name) else { return Ok(default) };
        let value = value.as_i64().filter(|value| (min..=max).contains(value));
        value.ok_or_else(|| ContentError::invalid(format!("{name} is not within {min} to {max}")))
    }

    fn span(&self, name: &str, min: i64, max: u16) -> Result<u16, ContentError> {
        let span = self.integer(name, min, max.into(), 1)?;
        u16::try_from(span).map_err(|_| ContentError::invalid(name))
    }

    fn value(&self, name: &str) -> Result<Option<AttrValue>, ContentError> {
        let wrong = || ContentError::invalid(format!("{name} is no string or plain number"));
        self.get(name)
            .map(|value| match value {
                Json::Str(text) => Some(AttrValue::Text(text.as_ref().into())),
                Json::Number(number) => number.as_f64().and_then(AttrValue::from_f64),
                Json::Bool(truth) => Some(AttrValue::Bool(*truth)),
                _ => None,
            })
            .map(|value| value.ok_or_else(wrong))
            .transpose()
    }

    fn list(&self) -> Result<ListAttrs, ContentError> {
        const EXACT_MAX: i64 = (1 << 53) - 1;
        Ok(ListAttrs {
            start: self.integer("start", -EXACT_MAX, EXACT_MAX, 1)?,
            list_type: self.string("type")?.filter(|given| !given.is_empty()).map(Box::from),
        })
    }

    fn image(&self) -> Result<ImageAttrs, ContentError> {
        let length = |name| {
            let value = self.value(name)?;
            if value.as_ref().is_none_or(safety::is_safe_length) {
                Ok(value)
            } else {
                Err(ContentError::invalid(format!("{name} of an image")))
            }
        };
        let src = self.value("src")?;
        if !src.as_ref().is_some_and(|src| safety::is_safe_image_src(&src.to_string())) {
            return Err(ContentError::invalid("src of an image"));
        }
        Ok(ImageAttrs {
            src,
            alt: self.value("alt")?,
            title: self.value("title")?,
            width: length("width")?,
            height: length("height")?,
        })
    }

    fn link(&self) -> Result<Link, ContentError> {
        let href = self.string("href")?.filter(|href| safety::is_safe_href(href));
        let href = href.ok_or_else(|| ContentError::invalid("href of a link"))?;
        let rest = LinkRest {
            target: self.value("target")?,
            rel: self.value("rel")?,
            class: self.value("class")?,
            title: self.value("title")?,
        };
        Ok(Link::new(href.into(), rest))
    }

    fn cell(&self) -> Result<CellAttrs, ContentError> {
        let colspan = self.span("colspan", 1, COLSPAN_MAX)?;
        let align = self.string("align")?;
        let known_align = align.and_then(Align::from_name);
        if align.is_some() != known_align.is_some() {
            return Err(ContentError::invalid("align of a cell"));
        }
        Ok(CellAttrs {
            colspan,
            rowspan: self.span("rowspan", 0, ROWSPAN_MAX)?,
            colwidth: self.colwidth(colspan)?,
            align: known_align,
        })
    }

    fn colwidth(&self, colspan: u16) -> Result<Option<Box<[Option<i64>]>>, ContentError> {
        let Some(widths) = self.get("colwidth") else { return Ok(None) };
        let widths = widths.as_array().filter(|widths| {
            let sound = |width: &Json<'_>| width.is_null() || width.is_i64();
            !widths.is_empty() && widths.len() <= colspan.into() && widths.iter().all(sound)
        });
        let widths = widths.ok_or_else(|| ContentError::invalid("colwidth of a cell"))?;
        Ok(Some(widths.iter().map(Json::as_i64).collect()))
    }
}
