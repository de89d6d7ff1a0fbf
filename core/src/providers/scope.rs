//! A choice of models by patterns, as in the setting `enabledModels` (P91).

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};

use super::choose::{self, split_level};
use super::{Model, ModelChoice};

/// What patterns mean among the models that can be used.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelScope {
    /// The models, in the order of the patterns; each once, with the thinking level of the pattern that named it first.
    pub models: Vec<ModelChoice>,
    /// What was wrong with patterns, a sentence each.
    pub warnings: Vec<String>,
}

/// The models that patterns mean: globs on `provider/id` or `id` in any case, or texts as
/// [`find_model`](crate::Engine::find_model) takes them; each with an optional `:level` behind it.
pub(crate) fn scope<S: AsRef<str>>(models: &[Arc<Model>], patterns: &[S]) -> ModelScope {
    let mut scope = ModelScope::default();
    for pattern in patterns {
        let pattern = pattern.as_ref().trim();
        let found =
            if pattern.contains(['*', '?', '[']) { matching(models, pattern) } else { scope.named(models, pattern) };
        if found.is_empty() {
            scope.warnings.push(format!("no model that can be used matches {pattern:?}"));
        }
        for choice in found {
            if !scope.models.iter().any(|known| known.model.name_parts() == choice.model.name_parts()) {
                scope.models.push(choice);
            }
        }
    }
    scope
}

fn matching(models: &[Arc<Model>], pattern: &str) -> Vec<ModelChoice> {
    let glob = |pattern: &str| -> Option<GlobMatcher> {
        let glob = GlobBuilder::new(pattern).case_insensitive(true).literal_separator(true).build();
        Some(glob.ok()?.compile_matcher())
    };
    let (bare, level) = split_level(pattern).map_or((pattern, None), |(bare, level)| (bare, Some(level.to_owned())));
    let Some(glob) = glob(bare) else { return Vec::new() };
    let found = models.iter().filter(|model| glob.is_match(&model.id) || glob.is_match(model.full_name()));
    found.map(|model| ModelChoice { thinking_level: level.clone(), ..ModelChoice::of(model.clone()) }).collect()
}

impl ModelScope {
    /// The model a text means. One id at several providers means all of them: each can be used.
    fn named(&mut self, models: &[Arc<Model>], text: &str) -> Vec<ModelChoice> {
        match self.chosen(models, text) {
            found if !found.is_empty() => found,
            // A suffix that is no level may be a slip.
            _ => match text.rsplit_once(':') {
                Some((bare, word)) => {
                    let found = self.chosen(models, bare);
                    if !found.is_empty() {
                        self.warnings.push(format!("{word:?} in {text:?} is no thinking level"));
                    }
                    found
                }
                None => Vec::new(),
            },
        }
    }

    fn chosen(&mut self, models: &[Arc<Model>], text: &str) -> Vec<ModelChoice> {
        match choose::meant(models, text, &|_: &Model| true) {
            Ok(choice) => choice.into_iter().collect(),
            Err(tie) => {
                let names: Vec<String> = tie.models.iter().map(|model| model.full_name()).collect();
                self.warnings.push(format!("{text:?} means several models: {}", names.join(", ")));
                let choice = |model| ModelChoice { thinking_level: tie.level.clone(), ..ModelChoice::of(model) };
                tie.models.into_iter().map(choice).collect()
            }
        }
    }
}
