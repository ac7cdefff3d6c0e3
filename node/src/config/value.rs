//! Settings as text: reading and showing each kind of value.
//!
//! For: one way to read a value, whichever source it comes from; an error says what is allowed.
//! Not here: which settings there are (`settings`), where the text comes from (`load`).

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use korum_protocol::map::LossPolicy;

/// When a write is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Consistency {
    /// When every up holder has it.
    #[default]
    Strong,
    /// When the primary has it.
    Async,
}

/// How a log line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// A password or key; never shown.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub String);

impl Secret {
    /// No secret was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "(none)" } else { "(hidden)" })
    }
}

/// A host name or IP address, and a port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HostPort {
    /// Name or address, without brackets.
    pub host: String,
    /// Port, not 0.
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for HostPort {
    type Err = String;

    /// `host:port`, `[v6]:port`; the error says what is allowed.
    fn from_str(text: &str) -> Result<Self, String> {
        let allowed = || "HOST:PORT, such as 10.0.0.7:6379 or [::1]:6379".to_owned();
        let (host, port) = text.rsplit_once(':').ok_or_else(allowed)?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let host = match bare {
            Some(v6) => v6,
            None if host.contains(':') => return Err(allowed()),
            None => host,
        };
        let port = port.parse().ok().filter(|&port| port != 0).ok_or_else(allowed)?;
        if !is_host(host) {
            return Err(allowed());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

fn is_host(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
    !text.is_empty() && text.len() <= 255 && text.bytes().all(legal)
}

// Readers: text to value, or what is allowed.

/// A whole number in a range.
pub fn number<T: TryFrom<u64>>(min: u64, max: u64) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let value = text.parse().ok().filter(|number| (min..=max).contains(number));
        value
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| format!("a number from {min} to {max}"))
    }
}

/// A power of two in a range.
pub fn power_of_two(min: u64, max: u64) -> impl Fn(&str) -> Result<u32, String> {
    move |text| {
        let value = number::<u32>(min, max)(text).ok().filter(|number| number.is_power_of_two());
        value.ok_or_else(|| format!("a power of two from {min} to {max}"))
    }
}

/// A number of bytes, with Redis' units: `k` and `kb`, `m` and `mb`, `g` and `gb`, `b`.
pub fn bytes(min: u64, max: u64) -> impl Fn(&str) -> Result<u64, String> {
    move |text| {
        let value = memory(text).filter(|number| (min..=max).contains(number));
        value.ok_or_else(|| {
            let top = if max == u64::MAX { String::new() } else { format!(" and at most {max}") };
            format!("bytes, such as 64mb or 1073741824, at least {min}{top}")
        })
    }
}

/// Redis' memory values: `1k` is 1000, `1kb` is 1024.
pub fn memory(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let factor = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(factor)
}

/// A duration with its unit (`ms`, `s`, `m`, `h`), in a range of milliseconds. A bare 0 needs none.
pub fn duration(min_ms: u64, max_ms: u64) -> impl Fn(&str) -> Result<Duration, String> {
    move |text| {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let factor = match &text[digits..] {
            "ms" => Some(1),
            "s" => Some(1_000),
            "m" => Some(60_000),
            "h" => Some(3_600_000),
            "" if text == "0" => Some(1),
            _ => None,
        };
        let ms = factor.and_then(|factor: u64| text[..digits].parse::<u64>().ok()?.checked_mul(factor));
        ms.filter(|ms| (min_ms..=max_ms).contains(ms)).map(Duration::from_millis).ok_or_else(|| {
            format!("a time with its unit (250ms, 30s, 5m, 1h), from {min_ms}ms to {max_ms}ms")
        })
    }
}

/// One of a few words, whatever their case.
pub fn one_of<T: Clone + 'static>(words: &'static [(&'static str, T)]) -> impl Fn(&str) -> Result<T, String> {
    move |text| {
        let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            format!("one of {}", words.join(", "))
        })
    }
}

/// `yes` or `no`, and what other systems call these.
pub fn yes_no(text: &str) -> Result<bool, String> {
    const WORDS: &[(&str, bool)] =
        &[("yes", true), ("no", false), ("true", true), ("false", false), ("on", true), ("off", false)];
    one_of(WORDS)(text).map_err(|_| "yes or no".to_owned())
}

/// IP addresses, separated by commas or blanks.
pub fn addresses(text: &str) -> Result<Vec<IpAddr>, String> {
    let list: Result<Vec<IpAddr>, _> = words(text).map(str::parse).collect();
    list.ok()
        .filter(|list| !list.is_empty())
        .ok_or_else(|| "IP addresses, such as 127.0.0.1 or 0.0.0.0".to_owned())
}

/// `HOST:PORT` pairs, separated by commas or blanks.
pub fn host_ports(text: &str) -> Result<Vec<HostPort>, String> {
    words(text).map(str::parse).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ']).filter(|word| !word.is_empty())
}

/// A host, or nothing.
pub fn host(text: &str) -> Result<String, String> {
    if text.is_empty() || is_host(text) {
        Ok(text.to_owned())
    } else {
        Err("a host name or an IP address".to_owned())
    }
}

/// A short label without blanks, or nothing.
pub fn label(text: &str) -> Result<String, String> {
    let legal = text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_graphic());
    if legal {
        Ok(text.to_owned())
    } else {
        Err("at most 64 visible ASCII characters without blanks".to_owned())
    }
}

/// Any text that is not empty.
pub fn text(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("a text that is not empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// A secret.
pub fn secret(text: &str) -> Result<Secret, String> {
    Ok(Secret(text.to_owned()))
}

/// A path that is not empty.
pub fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("a path".to_owned()) } else { Ok(PathBuf::from(text)) }
}

/// Value to TOML.
pub trait Show {
    /// The right side of a TOML line; `None` when there is nothing to say.
    fn show(&self) -> Option<toml::Value>;
}

macro_rules! show {
    ($($type:ty: |$value:ident| $shown:expr;)*) => {
        $(impl Show for $type {
            fn show(&self) -> Option<toml::Value> {
                let $value = self;
                $shown
            }
        })*
    };
}

fn integer(number: u64) -> Option<toml::Value> {
    Some(toml::Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)))
}

fn string(text: impl ToString) -> Option<toml::Value> {
    Some(toml::Value::String(text.to_string()))
}

fn list<T: ToString>(items: &[T]) -> Option<toml::Value> {
    Some(toml::Value::Array(items.iter().map(|item| toml::Value::String(item.to_string())).collect()))
}

show! {
    u8: |n| integer(u64::from(*n));
    u16: |n| integer(u64::from(*n));
    u32: |n| integer(u64::from(*n));
    u64: |n| integer(*n);
    bool: |b| Some(toml::Value::Boolean(*b));
    String: |text| string(text);
    Secret: |_secret| None;
    PathBuf: |path| if path.as_os_str().is_empty() { None } else { string(path.display()) };
    Vec<IpAddr>: |items| list(items);
    Vec<HostPort>: |items| list(items);
    Duration: |time| {
        let ms = time.as_millis();
        if ms > 0 && ms.is_multiple_of(1000) { string(format!("{}s", ms / 1000)) } else { string(format!("{ms}ms")) }
    };
    Consistency: |it| string(match it { Consistency::Strong => "strong", Consistency::Async => "async" });
    LogFormat: |it| string(match it { LogFormat::Text => "text", LogFormat::Json => "json" });
    LossPolicy: |it| string(match it { LossPolicy::Empty => "empty", LossPolicy::Refuse => "refuse" });
}
