//! Replies become the types that callers want.
//!
//! For: [`FromReply`] for the few types that cover nearly everything.
//! Not here: error replies; they have become [`Error::Server`] before.

use bytes::Bytes;
use korum_protocol::resp::decode::Reply;

use crate::error::Error;

/// A type that an answer can be read as.
pub trait FromReply: Sized {
    /// Reads an answer that is no error.
    ///
    /// # Errors
    /// [`Error::UnexpectedReply`] when it is of another kind.
    fn from_reply(reply: Reply) -> Result<Self, Error>;
}

fn unexpected<T>(expected: &'static str, reply: &Reply) -> Result<T, Error> {
    Err(Error::UnexpectedReply { expected, got: kind(reply) })
}

/// What a reply is, in a word or two; values are not shown, they may be long or secret.
pub(crate) fn kind(reply: &Reply) -> String {
    match reply {
        Reply::Simple(text) => format!("the status {}", String::from_utf8_lossy(&text[..text.len().min(40)])),
        Reply::Error(text) => format!("the error {}", String::from_utf8_lossy(&text[..text.len().min(200)])),
        Reply::Integer(number) => format!("the integer {number}"),
        Reply::Bulk(bytes) => format!("{} bytes", bytes.len()),
        Reply::Null => "nothing".into(),
        Reply::Array(values) => format!("an array of {}", values.len()),
        Reply::Map(pairs) => format!("a map of {}", pairs.len()),
        Reply::Set(values) => format!("a set of {}", values.len()),
        Reply::Push(_) => "a push message".into(),
        Reply::Double(number) => format!("the number {number}"),
        Reply::Boolean(value) => format!("{value}"),
        Reply::BigNumber(_) => "a big number".into(),
        Reply::Verbatim { .. } => "a text".into(),
    }
}

impl FromReply for Reply {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        Ok(reply)
    }
}

/// Whatever the answer is, as long as it is no error.
impl FromReply for () {
    fn from_reply(_: Reply) -> Result<Self, Error> {
        Ok(())
    }
}

impl FromReply for Bytes {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        match reply {
            Reply::Bulk(bytes) | Reply::Simple(bytes) | Reply::BigNumber(bytes) => Ok(bytes),
            Reply::Verbatim { text, .. } => Ok(text),
            other => unexpected("bytes", &other),
        }
    }
}

impl FromReply for String {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        let bytes = Bytes::from_reply(reply)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => unexpected("UTF-8 text", &Reply::Bulk(bytes)),
        }
    }
}

impl FromReply for i64 {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        if let Reply::Integer(number) = reply {
            return Ok(number);
        }
        let number = reply.as_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok()?.parse().ok());
        number.map_or_else(|| unexpected("an integer", &reply), Ok)
    }
}

impl FromReply for u64 {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        let number = i64::from_reply(reply)?;
        Self::try_from(number).or_else(|_| unexpected("an integer from 0", &Reply::Integer(number)))
    }
}

impl FromReply for bool {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        match reply {
            Reply::Boolean(value) => Ok(value),
            Reply::Integer(number @ (0 | 1)) => Ok(number == 1),
            other => unexpected("true or false", &other),
        }
    }
}

impl<T: FromReply> FromReply for Option<T> {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        if reply == Reply::Null { Ok(None) } else { T::from_reply(reply).map(Some) }
    }
}

impl<T: FromReply> FromReply for Vec<T> {
    fn from_reply(reply: Reply) -> Result<Self, Error> {
        match reply {
            Reply::Array(values) | Reply::Set(values) => values.into_iter().map(T::from_reply).collect(),
            other => unexpected("an array", &other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_read_as_what_they_are() {
        let bulk = |text: &'static str| Reply::Bulk(Bytes::from_static(text.as_bytes()));
        assert_eq!(Option::<Bytes>::from_reply(Reply::Null), Ok(None));
        assert_eq!(Option::<String>::from_reply(bulk("a")), Ok(Some("a".into())));
        assert_eq!(i64::from_reply(bulk("-7")), Ok(-7));
        assert_eq!(bool::from_reply(Reply::Integer(1)), Ok(true));
        let array = Reply::Array(vec![bulk("a"), Reply::Null]);
        assert_eq!(Vec::<Option<Bytes>>::from_reply(array), Ok(vec![Some(Bytes::from_static(b"a")), None]));
    }

    #[test]
    fn answers_of_another_kind_are_refused() {
        assert!(i64::from_reply(Reply::Null).is_err());
        assert!(u64::from_reply(Reply::Integer(-1)).is_err());
        assert!(bool::from_reply(Reply::Integer(2)).is_err());
        assert!(String::from_reply(Reply::Bulk(Bytes::from_static(b"\xff"))).is_err());
        assert!(Vec::<i64>::from_reply(Reply::Integer(1)).is_err());
    }
}
