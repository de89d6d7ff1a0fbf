//! Settings files and what they mean (S280–S283).
//!
//! Settings stay the JSON they are; a value is judged when it is asked for, so that a setting this library does not
//! know, or one that is wrong and never needed, stops nothing.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use super::settings_file::{changed_tools, merge, migrate, read};
use crate::error::{Error, ErrorCode, Result};
use crate::tree::location;

/// Settings that are lists of places.
const RESOURCE_LISTS: [&str; 4] = ["skills", "prompts", "packages", "extensions"];

/// Merged settings: the project's over the user's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    values: Map<String, Value>,
    /// The lists of places as each file, or the host, has them: what they say holds for their own side only (P721).
    places: Vec<(Origin, Map<String, Value>)>,
}

/// Who says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The host, about everything.
    Host,
    /// The user's file, about the user's places.
    User,
    /// The project's file, about the project's.
    Project,
}

/// A settings file that was treated as empty.
#[derive(Debug, Clone)]
pub struct SettingsProblem {
    /// The file.
    pub path: PathBuf,
    /// What was wrong with it.
    pub message: String,
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.path.display())
    }
}

/// When queued messages are delivered (S231).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueMode {
    /// The oldest message per drain.
    #[default]
    OneAtATime,
    /// Everything that is queued.
    All,
}

impl QueueMode {
    /// As written in settings.
    pub fn name(self) -> &'static str {
        match self {
            QueueMode::OneAtATime => "one-at-a-time",
            QueueMode::All => "all",
        }
    }
}

/// When and how far to compact (S281, S282).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Compaction starts by itself.
    pub enabled: bool,
    /// Tokens of the window kept free.
    pub reserve_tokens: u64,
    /// Tokens of recent conversation kept as they are.
    pub keep_recent_tokens: u64,
}

/// Summaries of branches that are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchSummarySettings {
    /// Tokens of the window kept free in a summary request.
    pub reserve_tokens: u64,
    /// Interactive hosts do not ask whether to summarise.
    pub skip_prompt: bool,
}

/// Retrying failed requests (S242–S244).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// Failed requests are repeated.
    pub enabled: bool,
    /// How often in a row.
    pub max_retries: u64,
    /// The first wait.
    pub base_delay_ms: u64,
    /// The longest wait.
    pub max_agent_delay_ms: u64,
}

impl RetrySettings {
    /// The wait before retry number `attempt`, counted from 1 (S244).
    pub fn delay(&self, attempt: u32) -> Duration {
        let factor = 1_u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX);
        Duration::from_millis(self.base_delay_ms.saturating_mul(factor).min(self.max_agent_delay_ms))
    }
}

impl Settings {
    /// Reads `<agent dir>/settings.json` and, only if the project is trusted, `<cwd>/.pi/settings.json` (S280).
    /// A file that cannot be read or parsed counts as empty and is reported; a missing one is simply empty.
    pub fn load(agent_dir: &Path, cwd: &Path, project_trusted: bool) -> (Settings, Vec<SettingsProblem>) {
        let mut problems = Vec::new();
        let mut settings = Settings::default();
        let project = project_trusted.then(|| (Origin::Project, cwd.join(".pi").join("settings.json")));
        for (origin, path) in std::iter::once((Origin::User, agent_dir.join("settings.json"))).chain(project) {
            match read(&path) {
                Ok(Some(values)) => settings.merge_from(origin, values),
                Ok(None) => {}
                Err(message) => problems.push(SettingsProblem { path, message }),
            }
        }
        (settings, problems)
    }

    /// Settings given by a host. Old names are understood (S283).
    pub fn from_values(values: Map<String, Value>) -> Settings {
        let mut settings = Settings::default();
        settings.merge(values);
        settings
    }

    /// Lays `values` over these settings: objects merge, lists of resources are put in front of those that are there, the
    /// signs of a `defaultTools` of `+name` and `-name` change the one that is there, anything else replaces (P800).
    pub fn merge(&mut self, values: Map<String, Value>) {
        self.merge_from(Origin::Host, values);
    }

    fn merge_from(&mut self, origin: Origin, mut values: Map<String, Value>) {
        migrate(&mut values);
        let lists = RESOURCE_LISTS.into_iter().filter_map(|key| Some((key.to_owned(), values.get(key)?.clone())));
        self.places.push((origin, lists.collect()));
        for key in RESOURCE_LISTS {
            if let Some(Value::Array(list)) = values.get_mut(key)
                && let Some(Value::Array(known)) = self.values.get(key)
            {
                list.extend(known.iter().cloned());
            }
        }
        if let Some(Value::Array(list)) = values.get_mut("defaultTools") {
            *list = changed_tools(self, list);
        }
        merge(&mut self.values, values);
    }

    /// The entries of a list of places, and who has them; what was laid over the rest comes first.
    pub(super) fn places(&self, key: &str) -> impl Iterator<Item = (Origin, &str)> {
        let lists = self.places.iter().rev();
        let lists = lists.filter_map(move |(origin, lists)| Some((*origin, lists.get(key)?.as_array()?)));
        lists.flat_map(|(origin, list)| list.iter().filter_map(move |entry| Some((origin, entry.as_str()?))))
    }

    /// The merged JSON, for settings this type has no reader for.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// `steeringMode`.
    pub fn steering_mode(&self) -> QueueMode {
        self.queue_mode("steeringMode")
    }

    /// `followUpMode`.
    pub fn follow_up_mode(&self) -> QueueMode {
        self.queue_mode("followUpMode")
    }

    /// `compaction` as it applies to a model given as provider and model id (S282).
    ///
    /// # Errors
    /// A number that is there but is not a non-negative safe integer, even when an override would win over it.
    pub fn compaction(&self, model: Option<(&str, &str)>) -> Result<CompactionSettings> {
        let overrides = match model.and_then(|(provider, id)| {
            self.get(&["compaction", "modelOverrides"]).and_then(|all| all.get(format!("{provider}/{id}")))
        }) {
            None => None,
            Some(Value::Object(values)) => Some(values),
            Some(_) => return Err(invalid("compaction.modelOverrides", "must hold an object for each model")),
        };
        let number = |key: &str, default: u64| -> Result<u64> {
            let ordinary = self.get(&["compaction", key]).map(|value| safe_integer(key, value)).transpose()?;
            let matching =
                overrides.and_then(|values| values.get(key)).map(|value| safe_integer(key, value)).transpose()?;
            Ok(matching.or(ordinary).unwrap_or(default))
        };
        Ok(CompactionSettings {
            enabled: self.bool(&["compaction", "enabled"], true),
            reserve_tokens: number("reserveTokens", 16_384)?,
            keep_recent_tokens: number("keepRecentTokens", 20_000)?,
        })
    }

    /// `branchSummary`.
    pub fn branch_summary(&self) -> BranchSummarySettings {
        BranchSummarySettings {
            reserve_tokens: self.number(&["branchSummary", "reserveTokens"], 16_384),
            skip_prompt: self.bool(&["branchSummary", "skipPrompt"], false),
        }
    }

    /// `retry`.
    pub fn retry(&self) -> RetrySettings {
        RetrySettings {
            enabled: self.bool(&["retry", "enabled"], true),
            max_retries: self.number(&["retry", "maxRetries"], 3),
            base_delay_ms: self.number(&["retry", "baseDelayMs"], 2_000),
            max_agent_delay_ms: self.number(&["retry", "maxAgentDelayMs"], 60_000),
        }
    }

    /// `retry.provider.maxRetries`: repeats inside one request.
    pub fn provider_max_retries(&self) -> u64 {
        self.number(&["retry", "provider", "maxRetries"], 0)
    }

    /// `retry.provider.timeoutMs`: the longest wait for the beginning of an answer; `None` when it is not set, or 0.
    pub fn provider_timeout(&self) -> Option<Duration> {
        let ms = self.get(&["retry", "provider", "timeoutMs"]).and_then(integer).filter(|ms| *ms > 0)?;
        Some(Duration::from_millis(ms))
    }

    /// `retry.provider.maxRetryDelayMs`: the longest wait a service may ask for.
    pub fn provider_max_retry_delay(&self) -> Duration {
        Duration::from_millis(self.number(&["retry", "provider", "maxRetryDelayMs"], 60_000))
    }

    /// `defaultThinkingLevel`.
    pub fn default_thinking_level(&self) -> &str {
        self.str(&["defaultThinkingLevel"]).unwrap_or("medium")
    }

    /// `defaultThinkingLevel`, if it is set.
    pub fn set_thinking_level(&self) -> Option<&str> {
        self.str(&["defaultThinkingLevel"])
    }

    /// The level set for one model in `modelThinkingLevels`.
    pub fn model_thinking_level(&self, provider: &str, model: &str) -> Option<&str> {
        self.get(&["modelThinkingLevels"])?.get(format!("{provider}/{model}"))?.as_str()
    }

    /// `defaultProvider`; `None` means automatic.
    pub fn default_provider(&self) -> Option<&str> {
        self.str(&["defaultProvider"])
    }

    /// `defaultModel`; `None` means automatic.
    pub fn default_model(&self) -> Option<&str> {
        self.str(&["defaultModel"])
    }

    /// `enabledModels`: patterns of the models to choose from; `None` when it is not set, or empty.
    pub fn enabled_models(&self) -> Option<Vec<&str>> {
        let list = self.get(&["enabledModels"]).and_then(Value::as_array)?;
        let patterns: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
        (!patterns.is_empty()).then_some(patterns)
    }

    /// `defaultTools`.
    pub fn default_tools(&self) -> Vec<String> {
        let tools = self.get(&["defaultTools"]).and_then(Value::as_array);
        tools.map_or_else(
            || ["read", "bash", "edit", "write"].map(str::to_owned).to_vec(),
            |tools| tools.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        )
    }

    /// `images.autoResize`.
    pub fn auto_resize_images(&self) -> bool {
        self.bool(&["images", "autoResize"], true)
    }

    /// `images.blockImages`.
    pub fn block_images(&self) -> bool {
        self.bool(&["images", "blockImages"], false)
    }

    /// `shellPath`: the shell of the `bash` tool; `~` is the home directory.
    pub fn shell_path(&self) -> Option<PathBuf> {
        let path = self.str(&["shellPath"]).filter(|path| !path.is_empty())?;
        Some(location::expand_home(Path::new(path)))
    }

    /// `shellCommandPrefix`: a line in front of every command.
    pub fn shell_command_prefix(&self) -> Option<&str> {
        self.str(&["shellCommandPrefix"]).filter(|prefix| !prefix.is_empty())
    }

    /// `sessionDir`.
    pub fn session_dir(&self) -> Option<&str> {
        self.str(&["sessionDir"])
    }

    /// `sessionDir` as the place it names (S38): `~` is the home directory. `None` when it is not set, or when the
    /// environment names another, which is stronger.
    pub fn session_directory(&self) -> Option<PathBuf> {
        if location::session_dir_override().is_some() {
            return None;
        }
        let given = self.session_dir().filter(|given| !given.is_empty())?;
        Some(location::given(Path::new(given)))
    }

    fn queue_mode(&self, key: &str) -> QueueMode {
        if self.str(&[key]) == Some("all") { QueueMode::All } else { QueueMode::OneAtATime }
    }

    fn get(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.values.get(*first)?, |value, key| value.get(key))
    }

    fn str(&self, path: &[&str]) -> Option<&str> {
        self.get(path).and_then(Value::as_str)
    }

    fn bool(&self, path: &[&str], default: bool) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or(default)
    }

    fn number(&self, path: &[&str], default: u64) -> u64 {
        self.get(path).and_then(integer).unwrap_or(default)
    }
}

/// A non-negative integer that a double can hold exactly.
fn integer(value: &Value) -> Option<u64> {
    const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
    let number = value.as_f64()?;
    (number.fract() == 0.0 && (0.0..=MAX_SAFE).contains(&number)).then_some(number as u64)
}

fn safe_integer(key: &str, value: &Value) -> Result<u64> {
    integer(value).ok_or_else(|| invalid(&format!("compaction.{key}"), "must be a whole number that is not negative"))
}

fn invalid(setting: &str, problem: &str) -> Error {
    Error::new(ErrorCode::InvalidArgument, format!("the setting {setting} {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(value: Value) -> Settings {
        Settings::from_values(value.as_object().unwrap().clone())
    }

    #[test]
    fn compaction_numbers_are_resolved_one_by_one() {
        let with =
            settings(json!({"compaction": {"reserveTokens": 7, "modelOverrides": {"p/a/b": {"keepRecentTokens": 3}}}}));
        let resolved = with.compaction(Some(("p", "a/b"))).unwrap();
        assert_eq!((resolved.reserve_tokens, resolved.keep_recent_tokens), (7, 3));
        assert_eq!(with.compaction(Some(("p", "A/b"))).unwrap().keep_recent_tokens, 20_000);
        for wrong in [json!(-1), json!(1.5), json!("9"), json!(9_007_199_254_740_992_u64)] {
            let wrong = settings(
                json!({"compaction": {"reserveTokens": wrong, "modelOverrides": {"p/m": {"reserveTokens": 2}}}}),
            );
            assert_eq!(wrong.compaction(Some(("p", "m"))).unwrap_err().code(), ErrorCode::InvalidArgument);
        }
    }

    #[test]
    fn old_names() {
        let old = settings(json!({"queueMode": "all", "retry": {"maxDelayMs": 5}, "websockets": true,
            "skills": {"enableSkillCommands": false, "customDirectories": ["x"]}}));
        assert_eq!(old.steering_mode(), QueueMode::All);
        assert_eq!(old.provider_max_retry_delay(), Duration::from_millis(5));
        assert_eq!(old.values().get("transport"), Some(&json!("websocket")));
        assert_eq!(old.values().get("skills"), Some(&json!(["x"])));
        assert_eq!(old.values().get("enableSkillCommands"), Some(&json!(false)));
    }

    #[test]
    fn delays_double_up_to_the_limit() {
        let retry = Settings::default().retry();
        let delays: Vec<_> = [1, 2, 6, 60, 1000].into_iter().map(|attempt| retry.delay(attempt).as_millis()).collect();
        assert_eq!(delays, [2000, 4000, 60000, 60000, 60000]);
    }

    #[test]
    fn files_merge_and_a_broken_one_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("project");
        std::fs::create_dir_all(project.join(".pi")).unwrap();
        std::fs::write(dir.path().join("settings.json"), "\u{feff}{\"retry\":{\"maxRetries\":1,\"baseDelayMs\":2}}")
            .unwrap();
        std::fs::write(project.join(".pi/settings.json"), "{\"retry\":{\"maxRetries\":9}}").unwrap();
        let retry = |trusted| Settings::load(dir.path(), &project, trusted).0.retry();
        assert_eq!((retry(true).max_retries, retry(true).base_delay_ms), (9, 2));
        assert_eq!(retry(false).max_retries, 1);
        std::fs::write(project.join(".pi/settings.json"), "{").unwrap();
        let (broken, problems) = Settings::load(dir.path(), &project, true);
        assert_eq!((broken.retry().max_retries, problems.len()), (1, 1));
    }
}
