//! Which model a session begins with when nobody chose one (P92), and which one of a provider stands for it (P91).

use std::sync::Arc;

use super::Model;

/// The services in the order in which a session looks for one with a key, and the model of each it takes: one for everyday
/// work, neither the smallest nor the dearest.
const DEFAULTS: [(&str, &str); 9] = [
    ("anthropic", "claude-sonnet-5-5"),
    ("openai", "gpt-6.2-sol"),
    ("google", "gemini-4-argon"),
    ("xai", "grok-4.7"),
    ("deepseek", "deepseek-v4-pro"),
    ("moonshotai", "kimi-k3"),
    ("zai", "glm-5.3"),
    ("groq", "openai/gpt-oss-120b"),
    ("cerebras", "gpt-oss-120b"),
];

/// The model that stands for a provider: its default, else its first.
pub(super) fn default_of<'a>(models: &'a [Arc<Model>], provider: &str) -> Option<&'a Arc<Model>> {
    let usual = DEFAULTS.iter().find(|(name, _)| *name == provider).map(|(_, id)| *id);
    let theirs = || models.iter().filter(|model| model.provider == provider);
    theirs().find(|model| Some(model.id.as_str()) == usual).or_else(|| theirs().next())
}

/// The model to begin with: the default of the first service that can be used, else the first model that can (P92).
pub(crate) fn first(models: &[Arc<Model>], usable: impl Fn(&Model) -> bool) -> Option<Arc<Model>> {
    let known = |(provider, id): &(&str, &str)| {
        models.iter().find(|model| model.provider == *provider && model.id == *id && usable(model))
    };
    let found = DEFAULTS.iter().find_map(known).or_else(|| models.iter().find(|model| usable(model)));
    found.cloned()
}

/// Every default is a model that is built in.
#[cfg(test)]
mod tests {
    use super::DEFAULTS;

    #[test]
    fn p92_defaults_are_built_in() {
        let models = crate::providers::Catalogue::new(Default::default()).table().models.clone();
        for (provider, id) in DEFAULTS {
            assert!(models.iter().any(|model| model.provider == provider && model.id == id), "{provider}/{id}");
        }
        for model in &models {
            assert!(
                DEFAULTS.iter().any(|(provider, _)| *provider == model.provider),
                "{} has no default",
                model.provider
            );
        }
    }
}
