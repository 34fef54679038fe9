//! The encoding of the values before a change.
//!
//! The plain form is a line of JSON, which lists each field with the length of its text in bytes,
//! and then the texts. It is compressed with zstd against the long texts after the change, which
//! are almost the same: a changed word of a long text takes some 40 bytes. Short values without
//! long texts stay plain, as compression would hardly save a byte.
//!
//! The texts after the change are those of the next revision, or of the piece. Nothing but an
//! update may change them, or the values before can't be decoded. zstd's checksum detects that.

use galley_domain::content_piece::PieceField;
use galley_domain::revision::PartState;
use zstd_safe::{CCtx, CParameter, DCtx};

use crate::engine::{Error, Result, Value};

/// The limit on bytes of the plain form: a piece's content, description and custom data, and more.
const PLAIN_MAX: u64 = 64 << 20;

/// The size of the compared texts in bytes from which repeated parts are found at any distance.
const LONG_TEXTS: usize = 64 << 10;

/// The size in bytes below which the plain form is stored. It begins with a bracket, and a frame of
/// zstd with another byte.
const SHORT: usize = 256;

/// The values of some or all fields of a part before a change, compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    bytes: Vec<u8>,
}

/// The fields with long texts, which are compressed against those after the change.
const COMPARED: [PieceField; 3] =
    [PieceField::Description, PieceField::CustomData, PieceField::Content];

impl Undo {
    /// Returns the values of `fields` in `before`, compressed against those in `after`.
    pub fn of(before: &PartState, after: &PartState, fields: &[PieceField]) -> Result<Self> {
        Self::compress(before, fields, &base(after, fields))
    }

    /// Returns the values before a change of no field.
    pub fn nothing() -> Result<Self> {
        let nothing = PartState::default();
        Self::of(&nothing, &nothing, &[])
    }

    /// Returns all values of `before`, to be decoded without any others.
    pub fn complete(before: &PartState) -> Result<Self> {
        Self::compress(before, PieceField::ALL, &[])
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

    fn compress(before: &PartState, fields: &[PieceField], base: &[u8]) -> Result<Self> {
        let texts: Vec<_> = fields.iter().map(|&field| before.text(field)).collect();
        let lengths = fields.iter().zip(&texts);
        let lengths: Vec<_> =
            lengths.map(|(field, text)| (field.as_str(), text.as_ref().map(|t| t.len()))).collect();
        let mut plain = serde_json::to_vec(&lengths).map_err(Error::corrupt)?;
        plain.push(b'\n');
        texts.iter().flatten().for_each(|text| plain.extend_from_slice(text.as_bytes()));
        if base.is_empty() && plain.len() < SHORT {
            return Ok(Self { bytes: plain });
        }
        let mut context = CCtx::create();
        let total = plain.len() + base.len();
        // The window includes all compared texts.
        let window = total.next_power_of_two().ilog2().clamp(10, 27);
        let parameters = [
            CParameter::CompressionLevel(1),
            CParameter::ChecksumFlag(true),
            CParameter::WindowLog(window),
            CParameter::EnableLongDistanceMatching(total > LONG_TEXTS),
        ];
        for parameter in parameters {
            context.set_parameter(parameter).map_err(zstd_error)?;
        }
        context.ref_prefix(base).map_err(zstd_error)?;
        let mut bytes = Vec::with_capacity(zstd_safe::compress_bound(plain.len()));
        context.compress2(&mut bytes, &plain).map_err(zstd_error)?;
        bytes.shrink_to_fit();
        Ok(Self { bytes })
    }

    /// Replaces the changed values in `state`, which is the state after the change, by those before
    /// it. `fields` are those of the revision.
    pub fn apply(&self, state: &mut PartState, fields: &[PieceField]) -> Result<()> {
        let plain = if self.bytes.starts_with(b"[") {
            self.bytes.clone()
        } else {
            self.decompressed(&base(state, fields))?
        };
        let plain = std::str::from_utf8(&plain).map_err(Error::corrupt)?;
        let (lengths, mut rest) = plain.split_once('\n').ok_or_else(|| corrupt("its fields"))?;
        let lengths: Vec<(&str, Option<usize>)> =
            serde_json::from_str(lengths).map_err(Error::corrupt)?;
        for (field, length) in lengths {
            let field = field.parse().map_err(Error::corrupt)?;
            let text = match length {
                Some(length) => {
                    let split = rest.split_at_checked(length);
                    let (text, others) = split.ok_or_else(|| corrupt("a length"))?;
                    rest = others;
                    Some(text)
                }
                None => None,
            };
            state.set_text(field, text).map_err(Error::corrupt)?;
        }
        Ok(())
    }

    /// Returns the plain form, decompressed with the texts after the change.
    fn decompressed(&self, base: &[u8]) -> Result<Vec<u8>> {
        let size = zstd_safe::get_frame_content_size(&self.bytes).ok().flatten();
        let size = size.filter(|&size| size <= PLAIN_MAX).ok_or_else(|| corrupt("its size"))?;
        let mut plain = Vec::with_capacity(usize::try_from(size).map_err(Error::corrupt)?);
        let mut context = DCtx::create();
        context.ref_prefix(base).map_err(zstd_error)?;
        context.decompress(&mut plain, &self.bytes).map_err(zstd_error)?;
        Ok(plain)
    }
}

/// Returns the texts after a change that those before it are compressed against.
fn base(after: &PartState, fields: &[PieceField]) -> Vec<u8> {
    let compared = COMPARED.into_iter().filter(|field| fields.contains(field));
    let mut base = Vec::new();
    compared.filter_map(|field| after.text(field)).for_each(|text| base.extend(text.as_bytes()));
    base
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
                Undo::of(&before, &after, &fields).unwrap().apply(&mut restored, &fields).unwrap();
                assert_eq!(restored, before);
                let complete = Undo::complete(&before).unwrap();
                let mut restored = PartState::default();
                complete.apply(&mut restored, &[]).unwrap();
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
        undo.apply(&mut after, &fields).unwrap();
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
        let text = "Words of a text, and more of them. ".repeat(9);
        let (before, after) = (state("A", Some(&text)), state("A", Some(&(text.clone() + "!"))));
        let undo = Undo::of(&before, &after, &[PieceField::Content]).unwrap();
        let mut other = state("A", Some(&text.replace("more", "less")));
        assert!(undo.apply(&mut other, &[PieceField::Content]).is_err());
    }
}
