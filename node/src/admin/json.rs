//! JSON, written only.
//!
//! For: machine-readable answers without a dependency.

use std::fmt::Write;

/// An object under construction.
pub struct Object {
    text: String,
}

impl Object {
    /// `{`
    pub fn new() -> Self {
        Self { text: "{".to_owned() }
    }

    /// A field whose value is JSON already: a number, `true`, an object, a list.
    pub fn raw(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        if self.text.len() > 1 {
            self.text.push(',');
        }
        let _ = write!(self.text, "{}:{value}", quote(name));
        self
    }

    /// A field whose value is a text.
    pub fn text(self, name: &str, value: impl std::fmt::Display) -> Self {
        let value = quote(&value.to_string());
        self.raw(name, value)
    }

    /// `}`
    pub fn end(mut self) -> String {
        self.text.push('}');
        self.text
    }
}

/// A list of JSON values.
pub fn list(values: impl IntoIterator<Item = String>) -> String {
    let values: Vec<String> = values.into_iter().collect();
    format!("[{}]", values.join(","))
}

fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let object = Object::new().text("a\"b", "x\\\ny").raw("n", 1).raw("l", list(["2".to_owned()])).end();
        assert_eq!(object, r#"{"a\"b":"x\\\u000ay","n":1,"l":[2]}"#);
    }
}
