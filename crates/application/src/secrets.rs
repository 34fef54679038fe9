//! Encryption of secrets in the database: webhooks' secrets, and codes in mails.
//!
//! AES-256-GCM with a random nonce in front. The identity of the row that stores a text is its
//! associated data (AAD). So a ciphertext that is copied to another row can't be decrypted.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use galley_storage::{Database, Error as StorageError, Tx, WriteTx, installation};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

/// The length of a key in bytes.
const KEY_BYTES: usize = 32;

/// The known text that verifies a key, and its associated data.
const KEY_CHECK_TEXT: &str = "galley";
const KEY_CHECK_AAD: &str = "key check";

/// The installation's key. `Debug` doesn't show it. Clones share it.
#[derive(Clone)]
pub struct SecretKey(Arc<DerivedKeys>);

/// The keys that are derived from the installation's key.
struct DerivedKeys {
    secrets: LessSafeKey,
    fingerprints: hmac::Key,
}

/// The error for a text that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key must be 32 random bytes in base64: create one with `openssl rand -base64 32`")]
pub struct MalformedKeyError;

/// The error for data that was encrypted with another key or other associated data, or that is no
/// ciphertext.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it can't be decrypted with this key")]
pub struct DecryptionError;

/// The reason why a key can't be used with a database.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The database's secrets were encrypted with another key.
    #[error("the database was encrypted with another key")]
    OtherKey,
    /// The database could not be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl SecretKey {
    /// Creates the key of these bytes.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, &bytes).expect("the key has its length");
        // Each purpose has a key of its own, from which the others can't be computed.
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes), b"fingerprints");
        let fingerprints = hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref());
        Self(Arc::new(DerivedKeys { secrets: LessSafeKey::new(key), fingerprints }))
    }

    /// Parses the base 64 of a key.
    pub fn parse(text: &str) -> Result<Self, MalformedKeyError> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| MalformedKeyError)?;
        Ok(Self::new(bytes.try_into().map_err(|_| MalformedKeyError)?))
    }

    /// Returns the base 64 of a new key.
    pub fn generate() -> String {
        STANDARD.encode(rand::random::<[u8; KEY_BYTES]>())
    }

    /// Encrypts a text with `place` as associated data.
    pub fn encrypt(&self, aad: &str, text: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut sealed = text.to_vec();
        self.0
            .secrets
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(aad),
                &mut sealed,
            )
            .expect("short texts can be encrypted");
        [&nonce, &sealed[..]].concat()
    }

    /// Decrypts a result of [`SecretKey::encrypt`] with the same `place`.
    pub fn decrypt(&self, place: &str, sealed: &[u8]) -> Result<Vec<u8>, DecryptionError> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN).ok_or(DecryptionError)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| DecryptionError)?;
        let mut text = sealed.to_vec();
        let opened = self.0.secrets.open_in_place(nonce, Aad::from(place), &mut text);
        Ok(opened.map_err(|_| DecryptionError)?.to_vec())
    }

    /// Rejects a database whose secrets were encrypted with another key. A database without a key
    /// adopts this one.
    pub async fn adopt(&self, database: &Database) -> Result<(), KeyError> {
        if self.check(database).await? {
            return Ok(());
        }
        let sealed = self.encrypt(KEY_CHECK_AAD, KEY_CHECK_TEXT.as_bytes());
        let keep = async move |tx: &WriteTx<'_>| installation::insert_key_check(tx, &sealed).await;
        database.write::<_, StorageError, _>("installation.store_key", keep).await?;
        // If several nodes start at once, the first key is kept.
        self.check(database).await.map(drop)
    }

    /// Returns true if the database has this key, or false if it has none. Rejects a database whose
    /// secrets were encrypted with another key.
    pub async fn check(&self, database: &Database) -> Result<bool, KeyError> {
        let find = async |tx: &Tx<'_>| installation::find_key_check(tx).await;
        let found = database.read::<_, StorageError, _>("installation.key", find).await?;
        let Some(sealed) = found else { return Ok(false) };
        match self.decrypt(KEY_CHECK_AAD, &sealed) {
            Ok(text) if text == KEY_CHECK_TEXT.as_bytes() => Ok(true),
            _ => Err(KeyError::OtherKey),
        }
    }

    /// Returns a fingerprint of `parts` that can't be computed without the key.
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
    fn secrets_decrypt_only_with_their_key_and_associated_data() {
        let key = SecretKey::parse(&SecretKey::generate()).unwrap();
        let sealed = key.encrypt("a", b"text");
        assert_eq!(key.decrypt("a", &sealed).unwrap(), b"text");
        assert_ne!(key.encrypt("a", b"text"), sealed, "the nonce is new");
        assert_eq!(key.decrypt("b", &sealed), Err(DecryptionError));
        assert_eq!(SecretKey::new([7; 32]).decrypt("a", &sealed), Err(DecryptionError));
        for index in 0..sealed.len() {
            let mut other = sealed.clone();
            other[index] ^= 1;
            assert_eq!(key.decrypt("a", &other), Err(DecryptionError), "{index}");
        }
        assert_eq!(key.decrypt("a", &sealed[..5]), Err(DecryptionError));
    }

    #[test]
    fn a_key_is_thirty_two_bytes() {
        for text in ["", "secret", "AAAA", &"A".repeat(44)] {
            assert!(SecretKey::parse(text).is_err(), "{text}");
        }
        assert!(SecretKey::parse(&format!("{}\n", SecretKey::generate())).is_ok());
    }
}
