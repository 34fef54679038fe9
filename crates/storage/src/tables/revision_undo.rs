//! The encoding of the values before a change.
//!
//! A line of JSON lists each field with the length of its text in bytes. The texts follow. A long
//! text has only the part between the beginning and the end that it shares with the text after the
//! change. If the texts are still long, zstd compresses them against those after the change, which
//! are almost the same. A changed word of a long text takes some 60 bytes.
//!
//! The texts after the change are those of the next revision, or of the piece. Nothing but an
//! update may change them, or the values before can't be decoded. Checksums detect that.

use std::borrow::Cow;
use std::cell::RefCell;

use galley_domain::content_piece::PieceField;
use galley_domain::revision::PartState;
use xxhash_rust::xxh3::xxh3_64;
use zstd_safe::{CCtx, CParameter, DCtx, MAGICNUMBER};

use crate::engine::{Error, Result, Value};

/// The limit on bytes of the texts: a piece's content, description and custom data, and more.
const TEXTS_MAX: u64 = 64 << 20;

/// The size of the compared texts in bytes from which repeated parts are found at any distance.
const LONG_TEXTS: usize = 64 << 10;

/// The level of compression, of which the first is the fastest.
const COMPRESSION_LEVEL: i32 = 1;

/// The size of the texts in bytes below which they are not compressed.
const SHORT: usize = 256;

/// The values of some or all fields of a part before a change, compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    bytes: Vec<u8>,
}

/// The fields with long texts, which are compared with those after the change.
const COMPARED: [PieceField; 3] =
    [PieceField::Description, PieceField::CustomData, PieceField::Content];

/// A field in the first line: its name, the length of its text if it has one, and the parts of the
/// text that are those after the change.
type StoredField<'f> = (&'f str, Option<usize>, Option<SharedParts>);

/// The lengths of the beginning and of the end that two texts share, and the checksum of the whole
/// text before the change.
type SharedParts = (usize, usize, u64);

impl Undo {
    /// Returns the values of `fields` in `before`, compressed against those in `after`.
    pub fn of(before: &PartState, after: &PartState, fields: &[PieceField]) -> Result<Self> {
        Self::encode(before, Some(after), fields)
    }

    /// Returns the values before a change of no field.
    pub fn nothing() -> Result<Self> {
        Self::encode(&PartState::default(), None, &[])
    }

    /// Returns all values of `before`, to be decoded without any others.
    pub fn complete(before: &PartState) -> Result<Self> {
        Self::encode(before, None, PieceField::ALL)
    }

    pub(crate) fn from_stored(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    pub(crate) fn value(&self) -> Value<'_> {
        Value::from(&self.bytes)
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    fn encode(
        before: &PartState,
        after: Option<&PartState>,
        fields: &[PieceField],
    ) -> Result<Self> {
        let mut stored: Vec<StoredField<'_>> = Vec::with_capacity(fields.len());
        let (mut texts, mut base) = (Vec::new(), Vec::new());
        for &field in fields {
            let text = before.text(field);
            let other = after.and_then(|after| compared_text(after, field));
            let (length, shared) = match (&text, &other) {
                (Some(text), Some(other)) => {
                    let (prefix, suffix) = shared_lengths(text, other);
                    let text_part = &text[prefix..text.len() - suffix];
                    base.extend_from_slice(other[prefix..other.len() - suffix].as_bytes());
                    texts.extend_from_slice(text_part.as_bytes());
                    (Some(text_part.len()), Some((prefix, suffix, xxh3_64(text.as_bytes()))))
                }
                (Some(text), None) => {
                    texts.extend_from_slice(text.as_bytes());
                    (Some(text.len()), None)
                }
                (None, _) => (None, None),
            };
            stored.push((field.as_str(), length, shared));
        }
        let mut bytes = serde_json::to_vec(&stored).map_err(Error::corrupt)?;
        bytes.push(b'\n');
        if texts.len() < SHORT {
            bytes.extend_from_slice(&texts);
        } else {
            bytes.extend_from_slice(&compressed(&texts, &base)?);
        }
        bytes.shrink_to_fit();
        Ok(Self { bytes })
    }

    /// Replaces the changed values in `state`, which is the state after the change, by those before
    /// it.
    pub fn apply(&self, state: &mut PartState) -> Result<()> {
        let line = self.bytes.iter().position(|&byte| byte == b'\n');
        let (line, texts) = self.bytes.split_at(line.ok_or_else(|| corrupt("its fields"))?);
        let stored: Vec<StoredField<'_>> = serde_json::from_slice(line).map_err(Error::corrupt)?;
        let stored = stored.into_iter().map(|(field, length, shared)| {
            Ok((field.parse::<PieceField>().map_err(Error::corrupt)?, length, shared))
        });
        let stored = stored.collect::<Result<Vec<_>>>()?;
        let mut texts = Cow::Borrowed(&texts[1..]);
        if texts.starts_with(&MAGICNUMBER.to_le_bytes()) {
            let mut base = Vec::new();
            for &(field, _, shared) in &stored {
                if let Some((prefix, suffix, _)) = shared {
                    let after = compared_text(state, field).unwrap_or_default();
                    let end = after.len().checked_sub(suffix);
                    let between = end.and_then(|end| after.as_bytes().get(prefix..end));
                    base.extend_from_slice(between.ok_or_else(|| corrupt("a length"))?);
                }
            }
            texts = Cow::Owned(decompressed(&texts, &base)?);
        }
        let mut rest = std::str::from_utf8(&texts).map_err(Error::corrupt)?;
        for (field, length, shared) in stored {
            let Some(length) = length else {
                state.set_text(field, None).map_err(Error::corrupt)?;
                continue;
            };
            let split = rest.split_at_checked(length);
            let (text, others) = split.ok_or_else(|| corrupt("a length"))?;
            rest = others;
            let text = match shared {
                Some(shared) => Cow::Owned(completed(text, state, field, shared)?),
                None => Cow::Borrowed(text),
            };
            state.set_text(field, Some(&text)).map_err(Error::corrupt)?;
        }
        Ok(())
    }
}

/// Returns the text of a field with which the one before a change is compared.
fn compared_text(after: &PartState, field: PieceField) -> Option<Cow<'_, str>> {
    if COMPARED.contains(&field) { after.text(field) } else { None }
}

/// Returns the lengths of the beginning and of the end that two texts share. They don't overlap in
/// either text.
fn shared_lengths(one: &str, other: &str) -> (usize, usize) {
    /// Equal chunks are skipped, as their comparison is faster than that of single bytes.
    const CHUNK: usize = 64;
    let (a, b) = (one.as_bytes(), other.as_bytes());
    let chunks = a.chunks_exact(CHUNK).zip(b.chunks_exact(CHUNK));
    let skipped = chunks.take_while(|(a, b)| a == b).count() * CHUNK;
    let bytes = a[skipped..].iter().zip(&b[skipped..]);
    let prefix = one.floor_char_boundary(skipped + bytes.take_while(|(a, b)| a == b).count());
    let (a, b) = (&a[prefix..], &b[prefix..]);
    let chunks = a.rchunks_exact(CHUNK).zip(b.rchunks_exact(CHUNK));
    let skipped = chunks.take_while(|(a, b)| a == b).count() * CHUNK;
    let bytes = a[..a.len() - skipped].iter().rev().zip(b[..b.len() - skipped].iter().rev());
    let suffix = skipped + bytes.take_while(|(a, b)| a == b).count();
    (prefix, one.len() - one.ceil_char_boundary(one.len() - suffix))
}

/// Returns the text before a change from its part between those that `state`, the state after the
/// change, has, too.
fn completed(
    text: &str,
    state: &PartState,
    field: PieceField,
    (prefix, suffix, checksum): SharedParts,
) -> Result<String> {
    let after = compared_text(state, field).unwrap_or_default();
    let begin = after.get(..prefix);
    let end = after.len().checked_sub(suffix).and_then(|end| after.get(end..));
    let (Some(begin), Some(end)) = (begin, end) else { return Err(corrupt("a length")) };
    let text = [begin, text, end].concat();
    if xxh3_64(text.as_bytes()) != checksum {
        return Err(corrupt("a checksum"));
    }
    Ok(text)
}

/// Returns `texts`, compressed against `base`.
fn compressed(texts: &[u8], base: &[u8]) -> Result<Vec<u8>> {
    thread_local! {
        /// Reused, as the creation of a context takes as long as the compression of 4 KiB.
        static CONTEXT: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
    }
    let mut bytes = Vec::with_capacity(zstd_safe::compress_bound(texts.len()));
    let total = texts.len() + base.len();
    if total <= LONG_TEXTS {
        let compressed = CONTEXT.with_borrow_mut(|context| {
            context.compress_using_dict(&mut bytes, texts, base, COMPRESSION_LEVEL)
        });
        compressed.map_err(zstd_error)?;
        return Ok(bytes);
    }
    let mut context = CCtx::create();
    // The window includes all compared texts.
    let window = total.next_power_of_two().ilog2().clamp(10, 27);
    let parameters = [
        CParameter::CompressionLevel(COMPRESSION_LEVEL),
        CParameter::WindowLog(window),
        CParameter::EnableLongDistanceMatching(true),
    ];
    for parameter in parameters {
        context.set_parameter(parameter).map_err(zstd_error)?;
    }
    context.ref_prefix(base).map_err(zstd_error)?;
    context.compress2(&mut bytes, texts).map_err(zstd_error)?;
    Ok(bytes)
}

/// Returns the texts that were compressed against `base`.
fn decompressed(bytes: &[u8], base: &[u8]) -> Result<Vec<u8>> {
    let size = zstd_safe::get_frame_content_size(bytes).ok().flatten();
    let size = size.filter(|&size| size <= TEXTS_MAX).ok_or_else(|| corrupt("its size"))?;
    let mut texts = Vec::with_capacity(usize::try_from(size).map_err(Error::corrupt)?);
    let mut context = DCtx::create();
    context.ref_prefix(base).map_err(zstd_error)?;
    context.decompress(&mut texts, bytes).map_err(zstd_error)?;
    Ok(texts)
}

fn corrupt(part: &str) -> Error {
    Error::corrupt(format!("{part} in a revision"))
}

fn zstd_error(code: zstd_safe::ErrorCode) -> Error {
    Error::corrupt(format!("a revision: {}", zstd_safe::get_error_name(code)))
}

#[cfg(test)]
mod tests {
    use galley_domain::TagId;
    use galley_domain::content_piece::{ContentPieceOverrides, Title};

    use super::*;

    fn state(title: &str, content: Option<&str>) -> PartState {
        let title = Some(Title::from_stored(title));
        let tags = Some(vec![TagId::new(1), TagId::new(2)]);
        let fields = ContentPieceOverrides { title, tags, ..ContentPieceOverrides::default() };
        PartState { fields, content: content.map(str::to_owned) }
    }

    #[test]
    fn values_before_a_change_are_restored_from_those_after_it() {
        let long = "Words of a long text. ".repeat(20_000);
        let contents = [None, Some(""), Some("{}"), Some("{\"type\":\"doc\"}"), Some(&long)];
        for before in contents {
            for after in contents {
                let (before, after) = (state("Before", before), state("After ö", after));
                let fields = before.differences(&after);
                let mut restored = after.clone();
                Undo::of(&before, &after, &fields).unwrap().apply(&mut restored).unwrap();
                assert_eq!(restored, before);
                let complete = Undo::complete(&before).unwrap();
                let mut restored = PartState::default();
                complete.apply(&mut restored).unwrap();
                assert_eq!(restored, before);
            }
        }
    }

    #[test]
    fn the_deletion_of_a_tag_leaves_earlier_values_readable() {
        let before = state("Before", Some("{}"));
        let mut after = state("After", Some("{}"));
        after.fields.tags = Some(vec![TagId::new(3)]);
        let fields = before.differences(&after);
        let undo = Undo::of(&before, &after, &fields).unwrap();
        after.fields.tags = Some(Vec::new());
        undo.apply(&mut after).unwrap();
        assert_eq!(after, before);
    }

    #[test]
    fn a_changed_word_of_a_long_text_takes_few_bytes() {
        let words = |number: usize| format!("{} ", number.wrapping_mul(2_654_435_761) % 99_991);
        for (count, limit) in [(1_000, 100), (200_000, 400)] {
            let text: String = (0..count).map(words).collect();
            let changed = text.replacen(&words(count / 2), "changed ", 1);
            let (before, after) = (state("A", Some(&text)), state("A", Some(&changed)));
            let size = Undo::of(&before, &after, &[PieceField::Content]).unwrap().size();
            assert!(size < limit, "{size} bytes of {}", text.len());
        }
    }

    #[test]
    fn another_state_than_the_one_after_the_change_is_an_error() {
        // The texts are stored plainly, compressed, and compressed with long-distance matching.
        for (count, changed) in [(9, 1), (99, 99), (9_999, 9_999)] {
            let text = "Words of a text, and more of them. ".repeat(count);
            let replaced = text.replacen("text", "book", changed);
            let (before, after) = (state("A", Some(&text)), state("A", Some(&replaced)));
            let undo = Undo::of(&before, &after, &[PieceField::Content]).unwrap();
            let mut other = state("A", Some(&replaced.replace("more", "less")));
            assert!(undo.apply(&mut other).is_err());
            let mut restored = after;
            undo.apply(&mut restored).unwrap();
            assert_eq!(restored, before);
        }
    }
}
