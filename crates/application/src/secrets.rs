//! Encryption of what the database keeps and nobody is to read there: webhooks' secrets, codes in
//! mails.
//!
//! AES-256-GCM with a random nonce in front. The place where a text is kept is authenticated with
//! it, so that one can't be put in the place of another.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use galley_storage::{Database, Error as StorageError, Tx, WriteTx, installation};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

/// How many bytes a key has.
const KEY_BYTES: usize = 32;

/// The known text by which a key is recognised, and its place.
const CHECK: &str = "galley";
const CHECK_PLACE: &str = "key check";

/// The installation's key. `Debug` doesn't show it; clones are the same one.
#[derive(Clone)]
pub struct SecretKey(Arc<Keys>);

/// What is made of the installation's key.
struct Keys {
    secrets: LessSafeKey,
    fingerprints: hmac::Key,
}

/// A text that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key is the base 64 of 32 random bytes: make one by `openssl rand -base64 32`")]
pub struct MalformedKey;

/// What was encrypted with another key, or is not what this program encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it can't be decrypted with this key")]
pub struct Unreadable;

/// Why a key can't be used with a database.
#[derive(Debug, thiserror::Error)]
pub enum KeyRefused {
    /// The database's secrets were encrypted with another one.
    #[error("the database was encrypted with another key")]
    Other,
    /// The database can't be asked.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl SecretKey {
    /// The key of these bytes.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, &bytes).expect("the key has its length");
        // A key for each purpose, of which none tells another.
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes), b"fingerprints");
        let fingerprints = hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref());
        Self(Arc::new(Keys { secrets: LessSafeKey::new(key), fingerprints }))
    }

    /// Reads the base 64 of a key.
    pub fn parse(text: &str) -> Result<Self, MalformedKey> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| MalformedKey)?;
        Ok(Self::new(bytes.try_into().map_err(|_| MalformedKey)?))
    }

    /// The text of a new key.
    pub fn generate() -> String {
        STANDARD.encode(rand::random::<[u8; KEY_BYTES]>())
    }

    /// Encrypts a text that is to be kept at `place`.
    pub fn seal(&self, place: &str, text: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut sealed = text.to_vec();
        self.0
            .secrets
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(place),
                &mut sealed,
            )
            .expect("short texts can be encrypted");
        [&nonce, &sealed[..]].concat()
    }

    /// Decrypts what [`SecretKey::seal`] gave for `place`.
    pub fn open(&self, place: &str, sealed: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN).ok_or(Unreadable)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Unreadable)?;
        let mut text = sealed.to_vec();
        let opened = self.0.secrets.open_in_place(nonce, Aad::from(place), &mut text);
        Ok(opened.map_err(|_| Unreadable)?.to_vec())
    }

    /// Refuses a database whose secrets were encrypted with another key; the first key that a
    /// database sees is its own from then on.
    pub async fn take(&self, database: &Database) -> Result<(), KeyRefused> {
        if self.check(database).await? {
            return Ok(());
        }
        let sealed = self.seal(CHECK_PLACE, CHECK.as_bytes());
        let keep = async move |tx: &WriteTx<'_>| installation::insert_key_check(tx, &sealed).await;
        database.write::<_, StorageError, _>("installation.keep_key", keep).await?;
        // Of several that came at once the first one's counts.
        self.check(database).await.map(drop)
    }

    /// Refuses a database whose secrets were encrypted with another key. Says whether it has one.
    pub async fn check(&self, database: &Database) -> Result<bool, KeyRefused> {
        let find = async |tx: &Tx<'_>| installation::find_key_check(tx).await;
        let found = database.read::<_, StorageError, _>("installation.key", find).await?;
        let Some(sealed) = found else { return Ok(false) };
        match self.open(CHECK_PLACE, &sealed) {
            Ok(text) if text == CHECK.as_bytes() => Ok(true),
            _ => Err(KeyRefused::Other),
        }
    }

    /// A fingerprint of something that is not to be guessed by whoever lacks the key.
    pub fn fingerprint(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0.fingerprints);
        for part in parts {
            context.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            context.update(part);
        }
        let tag = context.sign();
        tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_its_key_at_its_place_only() {
        let key = SecretKey::parse(&SecretKey::generate()).unwrap();
        let sealed = key.seal("a", b"text");
        assert_eq!(key.open("a", &sealed).unwrap(), b"text");
        assert_ne!(key.seal("a", b"text"), sealed, "the nonce is new");
        assert_eq!(key.open("b", &sealed), Err(Unreadable));
        assert_eq!(SecretKey::new([7; 32]).open("a", &sealed), Err(Unreadable));
        for index in 0..sealed.len() {
            let mut other = sealed.clone();
            other[index] ^= 1;
            assert_eq!(key.open("a", &other), Err(Unreadable), "{index}");
        }
        assert_eq!(key.open("a", &sealed[..5]), Err(Unreadable));
    }

    #[test]
    fn a_key_is_thirty_two_bytes() {
        for text in ["", "secret", "AAAA", &"A".repeat(44)] {
            assert!(SecretKey::parse(text).is_err(), "{text}");
        }
        assert!(SecretKey::parse(&format!("{}\n", SecretKey::generate())).is_ok());
    }
}
