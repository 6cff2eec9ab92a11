//! What is sent behind a head, and how little of it is stored.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The most bytes of a body that are stored; of a longer one, and of one that is no text, only the length is.
const STORED: usize = 4096;

/// A body as it was written or read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Body {
    file: Option<PathBuf>,
    length: u64,
    // Absent when it comes from a store that did not keep it.
    bytes: Option<Vec<u8>>,
}

impl Body {
    /// A body that stands in the plan or the command line itself.
    #[must_use]
    pub fn written(bytes: impl Into<Vec<u8>>) -> Body {
        let bytes = bytes.into();
        Body { file: None, length: bytes.len() as u64, bytes: Some(bytes) }
    }

    /// The content of a file.
    #[must_use]
    pub fn read(file: &Path, bytes: Vec<u8>) -> Body {
        Body { file: Some(file.to_owned()), ..Body::written(bytes) }
    }

    /// Where it was read, if it was.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// How long it is; before templates in it are filled in.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The bytes themselves; `None` when they were not stored.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }
}

/// As it stands in stores. The first ones wrote a list of numbers.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Bytes(Vec<u8>),
    Body {
        #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "super::as_text_if_any")]
        file: Option<PathBuf>,
        length: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
}

impl From<Stored> for Body {
    fn from(stored: Stored) -> Body {
        match stored {
            Stored::Bytes(bytes) => Body::written(bytes),
            Stored::Body { file, length, text } => Body { file, length, bytes: text.map(String::into_bytes) },
        }
    }
}

impl From<Body> for Stored {
    fn from(body: Body) -> Stored {
        let short = body.bytes.filter(|bytes| bytes.len() <= STORED);
        let text = short.and_then(|bytes| String::from_utf8(bytes).ok());
        Stored::Body { file: body.file, length: body.length, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is stored of a body, and what comes back of its bytes.
    #[track_caller]
    fn check(body: &Body, stored: &str, bytes: Option<&[u8]>) {
        let text = serde_json::to_string(body).unwrap();
        assert_eq!(text, stored);
        let again: Body = serde_json::from_str(&text).unwrap();
        assert_eq!((again.length(), again.file(), again.bytes()), (body.length(), body.file(), bytes));
    }

    #[test]
    fn short_text_is_stored_and_the_rest_is_measured() {
        check(&Body::written("a=1"), r#"{"length":3,"text":"a=1"}"#, Some(b"a=1"));
        check(&Body::written(vec![0xff]), r#"{"length":1}"#, None);
        check(&Body::read(Path::new("b"), vec![b'x'; 5000]), r#"{"file":"b","length":5000}"#, None);
    }

    #[test]
    fn a_file_whose_name_is_no_text_is_stored_by_what_can_be_read_of_it() {
        use std::os::unix::ffi::OsStrExt;
        let name = Path::new(std::ffi::OsStr::from_bytes(b"a\xff"));
        let stored = serde_json::to_string(&Body::read(name, vec![])).unwrap();
        assert_eq!(stored, "{\"file\":\"a\u{fffd}\",\"length\":0,\"text\":\"\"}");
    }

    #[test]
    fn a_list_of_numbers_is_read_too() {
        assert_eq!(serde_json::from_str::<Body>("[97,98]").unwrap(), Body::written("ab"));
    }
}
