//! Flags over environment over file over defaults, with the origin of each value.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::options::{OPTIONS, OptionSpec, Shape};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody gave one.
    Default,
    /// The TOML file at this path.
    File(PathBuf),
    /// The environment variable of this name.
    Environment(String),
    /// The command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File(path) => write!(formatter, "file {}", path.display()),
            Self::Environment(variable) => write!(formatter, "environment {variable}"),
            Self::Flag(flag) => write!(formatter, "flag {flag}"),
        }
    }
}

/// The text of an option and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// As given; the items of a list are joined by the option's separator.
    pub text: String,
    /// Who gave it.
    pub origin: Origin,
}

/// A configuration file that cannot be understood at all.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// Not TOML.
    #[error("{path}: {message}", path = path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What the parser says, with line and column.
        message: String,
    },
    /// A key that is no option.
    #[error("{path}: unknown key '{key}'{hint}", path = path.display())]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// The nearest known key, as a suggestion.
        hint: String,
    },
    /// A value of the wrong TOML type.
    #[error("{path}: '{key}' must be {expected}", path = path.display())]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// What would do.
        expected: &'static str,
    },
}

/// What was given, layer by layer, before it is merged.
#[derive(Debug, Default)]
pub struct Layers {
    flags: BTreeMap<&'static str, String>,
    environment: BTreeMap<&'static str, String>,
    file: BTreeMap<&'static str, String>,
    path: PathBuf,
}

impl Layers {
    /// Starts with the flags of the command line, by option name.
    pub fn with_flags(flags: BTreeMap<&'static str, String>) -> Self {
        Self {
            flags,
            ..Self::default()
        }
    }

    /// Adds the environment, asked variable by variable. An empty variable counts as not given.
    pub fn add_environment(&mut self, lookup: &dyn Fn(&str) -> Option<String>) {
        for spec in OPTIONS {
            if let Some(text) = lookup(&spec.variable()).filter(|text| !text.is_empty()) {
                self.environment.insert(spec.name, text);
            }
        }
    }

    /// Adds the text of the TOML file that lies at `path`, and returns every fault in it.
    pub fn add_file(&mut self, path: &Path, text: &str) -> Vec<FileError> {
        path.clone_into(&mut self.path);
        let table = match text.parse::<toml::Table>() {
            Ok(table) => table,
            Err(error) => {
                return vec![FileError::Syntax {
                    path: path.to_owned(),
                    message: error.to_string(),
                }];
            }
        };
        let mut faults = Vec::new();
        for (key, value) in table {
            let Some(spec) = OPTIONS.iter().find(|spec| spec.key() == key) else {
                faults.push(FileError::UnknownKey {
                    path: path.to_owned(),
                    hint: suggestion(&key),
                    key,
                });
                continue;
            };
            match text_of(spec, &value) {
                Ok(text) => {
                    self.file.insert(spec.name, text);
                }
                Err(expected) => faults.push(FileError::WrongType {
                    path: path.to_owned(),
                    key,
                    expected,
                }),
            }
        }
        faults
    }

    /// Takes for each option the value of the highest layer that has one.
    pub fn merge(&self) -> Merged {
        let mut values = BTreeMap::new();
        for spec in OPTIONS {
            let flag = self
                .flags
                .get(spec.name)
                .map(|text| (text.clone(), Origin::Flag(format!("--{}", spec.name))));
            let environment = || {
                let text = self.environment.get(spec.name)?;
                Some((text.clone(), Origin::Environment(spec.variable())))
            };
            let file = || {
                let text = self.file.get(spec.name)?;
                Some((text.clone(), Origin::File(self.path.clone())))
            };
            let default = || Some((spec.default?.to_owned(), Origin::Default));
            if let Some((text, origin)) = flag.or_else(environment).or_else(file).or_else(default) {
                values.insert(spec.name, Value { text, origin });
            }
        }
        Merged { values }
    }
}

/// The merged configuration, still as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    values: BTreeMap<&'static str, Value>,
}

impl Merged {
    /// The value of an option; `None` when it has neither value nor default.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// All options in the order of the table, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static OptionSpec, Option<&Value>)> {
        OPTIONS
            .iter()
            .map(|spec| (spec, self.values.get(spec.name)))
    }
}

/// The text of a TOML value, or what type it should have had.
fn text_of(spec: &OptionSpec, value: &toml::Value) -> Result<String, &'static str> {
    match (spec.shape, value) {
        (Shape::Switch, toml::Value::Boolean(yes)) => Ok(yes.to_string()),
        (Shape::Switch, _) => Err("true or false"),
        (Shape::Single, toml::Value::String(text)) => Ok(text.clone()),
        (Shape::Single, _) => Err("a text in quotes"),
        (Shape::List(separator), toml::Value::Array(items)) => {
            let items: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            items
                .map(|items| items.join(&separator.to_string()))
                .ok_or("a list of texts in quotes")
        }
        (Shape::List(_), _) => Err("a list of texts in quotes"),
    }
}

/// ", did you mean 'x'?" when a known key begins like the unknown one.
fn suggestion(key: &str) -> String {
    let plain = key.replace('-', "_");
    OPTIONS
        .iter()
        .map(OptionSpec::key)
        .find(|known| *known == plain || known.starts_with(&plain) || plain.starts_with(known))
        .map(|known| format!(", did you mean '{known}'?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
