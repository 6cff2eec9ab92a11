//! How a plan wants PHP run: inside Apache, or by processes of its own (FPM), and with which settings.

use super::as_text_if_any;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// PHP for the pages of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Php {
    /// Where it runs.
    pub way: PhpWay,
    /// The program of FPM; the system's own when absent.
    #[serde(serialize_with = "as_text_if_any")]
    pub program: Option<PathBuf>,
    /// Settings of every variant.
    pub settings: PhpSettings,
}

/// Where PHP runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhpWay {
    /// Inside each of Apache's processes: `mod_php`.
    Module,
    /// In processes of its own, which the server passes requests to.
    Fpm,
}

/// Settings of PHP, by their own names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhpSettings {
    /// Of FPM's pool: `pm.max_children`, `php_admin_value[memory_limit]`.
    pub pool: BTreeMap<String, PhpSetting>,
    /// Of php.ini: `memory_limit`.
    pub ini: BTreeMap<String, PhpSetting>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhpSetting {
    /// What is written for it.
    pub value: String,
    /// The key of the plan, for messages: `fpm.max_children`.
    pub key: String,
    /// Line in the plan.
    pub line: usize,
}

impl PhpSettings {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pool.is_empty() && self.ini.is_empty()
    }

    /// These, and then others, which win where both say the same.
    #[must_use]
    pub fn and(&self, others: &PhpSettings) -> PhpSettings {
        let mut both = self.clone();
        both.pool.extend(others.pool.clone());
        both.ini.extend(others.ini.clone());
        both
    }

    /// Every value becomes what `text` makes of it.
    pub(super) fn fill(&mut self, text: &dyn Fn(&str) -> String) {
        self.pool.values_mut().chain(self.ini.values_mut()).for_each(|setting| setting.value = text(&setting.value));
    }
}
