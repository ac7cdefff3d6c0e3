//! Flags, environment and file become one config.
//!
//! For: the order of the sources: a flag wins over the environment, that over the file, that over the defaults.
//! Not here: which settings there are (`settings`), what follows from them (`derive`).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::settings::{SETTINGS, Setting};
use super::{Config, Secret, derive};

/// What the process should do.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Run a node.
    Run(Box<Config>),
    /// Print this to the standard output and exit with 0: help, version, or the effective config.
    Print(String),
}

/// Why there is no config. The text names the setting, its value and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command line cannot be read.
    #[error("{0}")]
    Usage(String),
    /// A value is not allowed.
    #[error("{place}: '{value}' is not allowed; expected {allowed}")]
    Value {
        /// The flag, variable, or file and key.
        place: String,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// A key of the file is not known.
    #[error("{file}: unknown setting '{key}'; {hint}")]
    UnknownKey {
        /// The file.
        file: String,
        /// The key, with its table.
        key: String,
        /// What is known.
        hint: String,
    },
    /// A file cannot be read.
    #[error("cannot read {what} {file}")]
    File {
        /// What the file is for.
        what: &'static str,
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{file} is not TOML: {reason}")]
    Syntax {
        /// The file.
        file: String,
        /// Where and why.
        reason: String,
    },
    /// A port that follows from the client port does not exist.
    #[error("{flag} would be {port} + {offset} = {}, over 65535; give --{flag}, or a --port up to {}",
        u32::from(*port) + u32::from(*offset), 65535 - offset)]
    PortTooHigh {
        /// The derived port.
        flag: &'static str,
        /// The client port.
        port: u16,
        /// What is added to it.
        offset: u16,
    },
    /// Settings do not fit together.
    #[error("{0}")]
    Conflict(String),
}

/// The version that `--version` prints.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Config {
    /// Reads the arguments and the environment of this process.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn of_process() -> Result<Action, ConfigError> {
        let args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
        Self::load(args, &|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()))
    }

    /// Reads `args` (the program's name first) and the environment, given as a lookup, and the files that they name.
    ///
    /// # Errors
    /// When a source cannot be read, or says what is not allowed.
    pub fn load(
        args: impl IntoIterator<Item = String>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Action, ConfigError> {
        let matches = match command().try_get_matches_from(args) {
            Ok(matches) => matches,
            Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
                return Ok(Action::Print(error.to_string()));
            }
            Err(error) => return Err(ConfigError::Usage(error.to_string())),
        };
        let mut config = Config::default();
        let mut given = HashSet::new();
        let file = matches.get_one::<String>("config").cloned().or_else(|| variable("KORUM_CONFIG"));
        if let Some(file) = file.filter(|file| !file.is_empty()) {
            from_file(&mut config, &mut given, Path::new(&file))?;
        }
        from_environment(&mut config, &mut given, variable)?;
        from_flags(&mut config, &mut given, &matches)?;
        read_secret(&mut config, &given)?;
        derive::complete(&mut config, &given, variable)?;
        derive::check(&config)?;
        if matches.get_flag("print-config") {
            return Ok(Action::Print(config.to_toml()));
        }
        Ok(Action::Run(Box::new(config)))
    }

    /// The effective config as a file that reads back as the same; secrets are left out.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for setting in SETTINGS {
            if setting.section != section {
                section = setting.section;
                text.push_str(&format!("{}[{section}]\n", if text.is_empty() { "" } else { "\n" }));
            }
            match (setting.show)(self) {
                Some(value) => text.push_str(&format!("{} = {value}\n", setting.key)),
                None if setting.secret => text.push_str(&format!("# {} is never shown\n", setting.key)),
                None => {}
            }
        }
        text
    }
}

fn command() -> Command {
    let name = |setting: &Setting| Arg::new(setting.flag).long(setting.flag);
    let settings = SETTINGS.iter().map(|setting| {
        let value = if setting.switch { "yes|no" } else { "VALUE" };
        let arg =
            name(setting).value_name(value).help(format!("{} [env: {}]", setting.help, setting.variable()));
        let arg =
            if setting.switch { arg.num_args(0..=1).default_missing_value("yes") } else { arg.num_args(1) };
        let action = if setting.many { ArgAction::Append } else { ArgAction::Set };
        arg.action(action).allow_hyphen_values(setting.secret)
    });
    Command::new("korum-node")
        .version(VERSION)
        .about("A node of a Korum cache cluster; started alone it is a whole cluster on port 6379")
        .args_override_self(true)
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .help("TOML file with settings [env: KORUM_CONFIG]"),
        )
        .arg(
            Arg::new("print-config")
                .long("print-config")
                .action(ArgAction::SetTrue)
                .help("Print the effective settings as such a file, and exit"),
        )
        .args(settings)
}

fn apply(config: &mut Config, setting: &Setting, value: &str, place: String) -> Result<(), ConfigError> {
    (setting.read)(config, value).map_err(|allowed| {
        let value = if setting.secret { "(hidden)".to_owned() } else { value.to_owned() };
        ConfigError::Value { place, value, allowed }
    })
}

fn from_flags(
    config: &mut Config,
    given: &mut HashSet<&'static str>,
    matches: &ArgMatches,
) -> Result<(), ConfigError> {
    for setting in SETTINGS {
        let Some(values) = matches.get_many::<String>(setting.flag) else { continue };
        let value = values.map(String::as_str).collect::<Vec<_>>().join(",");
        apply(config, setting, &value, format!("--{}", setting.flag))?;
        given.insert(setting.flag);
    }
    Ok(())
}

fn from_environment(
    config: &mut Config,
    given: &mut HashSet<&'static str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(), ConfigError> {
    for setting in SETTINGS {
        let name = setting.variable();
        let Some(value) = variable(&name) else { continue };
        // Kubernetes sets KORUM_PORT=tcp://… in every pod beside a service that is called korum.
        if name.ends_with("_PORT") && value.starts_with("tcp://") {
            continue;
        }
        apply(config, setting, &value, name)?;
        given.insert(setting.flag);
    }
    Ok(())
}

fn from_file(config: &mut Config, given: &mut HashSet<&'static str>, path: &Path) -> Result<(), ConfigError> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::File {
        what: "the config file",
        file: file.clone(),
        source,
    })?;
    let tables: toml::Table = text.parse().map_err(|error: toml::de::Error| ConfigError::Syntax {
        file: file.clone(),
        reason: error.to_string(),
    })?;
    for (section, table) in &tables {
        let known = SETTINGS.iter().any(|setting| setting.section == section);
        let Some(table) = table.as_table().filter(|_| known) else {
            return Err(ConfigError::UnknownKey { file, key: section.clone(), hint: known_sections() });
        };
        for (key, value) in table {
            let name = format!("{section}.{key}");
            let setting = SETTINGS.iter().find(|setting| setting.section == section && setting.key == key);
            let Some(setting) = setting else {
                return Err(ConfigError::UnknownKey { file, key: name, hint: known_keys(section) });
            };
            let place = format!("{file}: {name}");
            let text = plain(value).ok_or_else(|| ConfigError::Value {
                place: place.clone(),
                value: if setting.secret { "(hidden)".to_owned() } else { value.to_string() },
                allowed: "a text, a number, true, false, or a list of texts".to_owned(),
            })?;
            apply(config, setting, &text, place)?;
            given.insert(setting.flag);
        }
    }
    Ok(())
}

fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(value) => Some(if *value { "yes" } else { "no" }.to_owned()),
        toml::Value::Array(items) => {
            let items: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            Some(items?.join(","))
        }
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

fn known_sections() -> String {
    let mut names: Vec<&str> = SETTINGS.iter().map(|setting| setting.section).collect();
    names.dedup();
    format!("the tables are [{}]", names.join("], ["))
}

fn known_keys(section: &str) -> String {
    let keys: Vec<&str> =
        SETTINGS.iter().filter(|setting| setting.section == section).map(|setting| setting.key).collect();
    format!("[{section}] has {}", keys.join(", "))
}

fn read_secret(config: &mut Config, given: &HashSet<&'static str>) -> Result<(), ConfigError> {
    let path: &PathBuf = &config.cluster.secret_file;
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    if given.contains("secret") {
        return Err(ConfigError::Conflict("give secret or secret-file, not both".to_owned()));
    }
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::File {
        what: "the secret file",
        file: file.clone(),
        source,
    })?;
    let secret = text.trim();
    if secret.is_empty() {
        return Err(ConfigError::Conflict(format!("the secret file {file} is empty")));
    }
    config.cluster.secret = Secret(secret.to_owned());
    Ok(())
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
