//! Finding a model by what somebody wrote (P90), and saying what is near when there is none.

use std::sync::Arc;

use super::Model;
use super::services::unsupported;
use crate::error::{Error, ErrorCode, Result};

/// The thinking levels, as suffixes.
const LEVELS: [&str; 7] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
/// Most names in an error.
const SHOWN: usize = 6;

/// A model that a text means, and the thinking level if the text names one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelChoice {
    /// The model.
    pub model: Arc<Model>,
    /// The level written behind it.
    pub thinking_level: Option<String>,
    /// What a person should know about the choice: nothing is known of the model, for example.
    pub warning: Option<String>,
}

impl ModelChoice {
    /// A model and nothing else.
    pub(crate) fn of(model: Arc<Model>) -> ModelChoice {
        ModelChoice { model, thinking_level: None, warning: None }
    }
}

/// The model written as `provider/id`, or as an id that one provider has; case does not matter.
///
/// `usable` breaks a tie between providers that have the same id: one with a key wins over one without. A provider that is
/// named is meant, whatever others have.
///
/// Errors: `unknown_model`, naming what is near or between what to choose.
pub(crate) fn find(models: &[Arc<Model>], name: &str, usable: impl Fn(&Model) -> bool) -> Result<Arc<Model>> {
    let name = name.trim();
    if let Some(model) = named(models, name) {
        return Ok(model.clone());
    }
    match exact(models, name, &usable)? {
        Some(model) => Ok(model),
        None => Err(unknown(models, name)),
    }
}

fn named<'a>(models: &'a [Arc<Model>], name: &str) -> Option<&'a Arc<Model>> {
    let (provider, id) = name.split_once('/')?;
    models.iter().find(|model| same(&model.provider, provider) && same(&model.id, id))
}

/// The model a text means: as [`find`], else the best one whose id or name holds the text; with `:level` behind it if the
/// whole text means nothing (P90).
pub(crate) fn choose(models: &[Arc<Model>], text: &str, usable: impl Fn(&Model) -> bool) -> Result<ModelChoice> {
    meant(models, text, &usable)?.ok_or_else(|| unknown(models, text.trim()))
}

/// The same; `None` when it means nothing.
pub(crate) fn meant(
    models: &[Arc<Model>],
    text: &str,
    usable: &impl Fn(&Model) -> bool,
) -> std::result::Result<Option<ModelChoice>, Tie> {
    let (mut rest, mut thinking_level) = (text.trim(), None);
    loop {
        let found = match exact(models, rest, usable) {
            Ok(None) => partial(models, rest, usable),
            // An id of a router's that begins like a provider: a part of what that provider has goes before it, if it can
            // be used.
            found if named(models, rest).is_none() => match at_provider(models, rest, usable) {
                Ok(Some(model)) if usable(&model) => Ok(Some(model)),
                _ => found,
            },
            found => found,
        };
        match found {
            Ok(Some(model)) => return Ok(Some(ModelChoice { thinking_level, ..ModelChoice::of(model) })),
            Ok(None) => {}
            Err(tie) => return Err(Tie { level: thinking_level, ..tie }),
        }
        // Of several levels the last one counts.
        let Some((before, level)) = split_level(rest) else { return Ok(None) };
        thinking_level.get_or_insert_with(|| level.to_owned());
        rest = before;
    }
}

/// Several providers have the model that is meant, and nothing tells which.
pub(crate) struct Tie {
    pub(super) models: Vec<Arc<Model>>,
    pub(super) level: Option<String>,
}

impl From<Tie> for Error {
    fn from(tie: Tie) -> Error {
        let names: Vec<String> = tie.models.iter().map(|model| model.full_name()).collect();
        let id = tie.models.first().map_or("", |model| model.id.as_str());
        let text = format!("several providers have a model {id:?}; write {}", names.join(" or "));
        Error::new(ErrorCode::UnknownModel, text)
    }
}

/// A text and the thinking level behind it.
pub(super) fn split_level(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once(':').filter(|(_, level)| LEVELS.contains(level))
}

/// The model found, if any; or a tie.
type Found = std::result::Result<Option<Arc<Model>>, Tie>;

fn exact(models: &[Arc<Model>], name: &str, usable: &impl Fn(&Model) -> bool) -> Found {
    let named = named(models, name);
    let raw: Vec<&Arc<Model>> = models.iter().filter(|model| same(&model.id, name)).collect();
    // A router's id may look like another provider's name for the same model.
    if let Some(named) = named {
        let other = raw.iter().filter(|model| usable(model)).collect::<Vec<_>>();
        return Ok(Some(match (usable(named), other.as_slice()) {
            (false, [other]) => Arc::clone(other),
            _ => named.clone(),
        }));
    }
    one_of(&raw, usable)
}

/// The only model of those with one id, or the only one that can be used.
fn one_of(models: &[&Arc<Model>], usable: &impl Fn(&Model) -> bool) -> Found {
    match models {
        [] => Ok(None),
        [model] => Ok(Some(Arc::clone(model))),
        _ => match models.iter().filter(|model| usable(model)).collect::<Vec<_>>().as_slice() {
            [model] => Ok(Some(Arc::clone(model))),
            _ => Err(Tie { models: models.iter().map(|model| Arc::clone(model)).collect(), level: None }),
        },
    }
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// The best model whose id or name holds the text: usable ones before others, ids without a date before dated ones, and of
/// those the lexically last.
fn partial(models: &[Arc<Model>], text: &str, usable: &impl Fn(&Model) -> bool) -> Found {
    if text.is_empty() {
        return Ok(None);
    }
    match at_provider(models, text, usable) {
        // The text may be a part of a router's id as well.
        Ok(None) => best(holding(models.iter(), text), usable),
        found => found,
    }
}

/// The same for `provider/part`, among the models of that provider.
fn at_provider(models: &[Arc<Model>], text: &str, usable: &impl Fn(&Model) -> bool) -> Found {
    let Some((provider, rest)) = text.split_once('/').filter(|(_, rest)| !rest.is_empty()) else { return Ok(None) };
    best(holding(models.iter().filter(|model| same(&model.provider, provider)), rest), usable)
}

fn best(mut found: Vec<&Arc<Model>>, usable: &impl Fn(&Model) -> bool) -> Found {
    if found.iter().any(|model| usable(model)) {
        found.retain(|model| usable(model));
    }
    let Some(best) = found.iter().max_by_key(|model| (!is_dated(&model.id), model.id.to_lowercase())) else {
        return Ok(None);
    };
    one_of(&found.iter().copied().filter(|model| same(&model.id, &best.id)).collect::<Vec<_>>(), usable)
}

/// The models whose id or name holds a text.
fn holding<'a>(models: impl Iterator<Item = &'a Arc<Model>>, text: &str) -> Vec<&'a Arc<Model>> {
    let text = text.to_lowercase();
    let holds =
        |model: &&Arc<Model>| model.id.to_lowercase().contains(&text) || model.name.to_lowercase().contains(&text);
    models.filter(holds).collect()
}

/// Whether an id ends with a date, `-YYYYMMDD`.
fn is_dated(id: &str) -> bool {
    id.rsplit_once('-').is_some_and(|(_, date)| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(crate) fn unknown(models: &[Arc<Model>], name: &str) -> Error {
    let provider = name.split_once('/').map(|(provider, _)| provider);
    let text = match provider {
        Some(provider) if unsupported(provider).is_some() => format!(
            "unknown model {name:?}: {} is not supported; use the vendor's own API or an OpenAI-compatible one",
            unsupported(provider).unwrap_or_default()
        ),
        _ => {
            let near = nearest(models, name);
            match near.as_slice() {
                [] => format!("unknown model {name:?}; models are called for example {}", examples(models).join(", ")),
                near => format!("unknown model {name:?}; did you mean {}?", near.join(" or ")),
            }
        }
    };
    Error::new(ErrorCode::UnknownModel, text)
}

/// One model of each provider.
fn examples(models: &[Arc<Model>]) -> Vec<String> {
    let mut providers: Vec<&str> = Vec::new();
    let first = models.iter().filter(|model| {
        let new = !providers.contains(&model.provider.as_str());
        if new {
            providers.push(&model.provider);
        }
        new
    });
    first.take(2 * SHOWN).map(|model| model.full_name()).collect()
}

/// The names nearest to one.
fn nearest(models: &[Arc<Model>], name: &str) -> Vec<String> {
    let wanted = name.to_lowercase();
    let (provider, id) = wanted.split_once('/').unwrap_or(("", &wanted));
    let distance_of = |model: &Model| {
        let theirs = model.id.to_lowercase();
        let of_id = distance(id, &theirs).min(distance(&wanted, &theirs));
        let of_id = if !id.is_empty() && theirs.contains(id) { of_id.min(2) } else { of_id };
        let other_provider = !provider.is_empty() && !same(&model.provider, provider);
        of_id + if other_provider { 1 + distance(provider, &model.provider.to_lowercase()).min(4) } else { 0 }
    };
    let mut ranked: Vec<(usize, String)> = models.iter().map(|model| (distance_of(model), model.full_name())).collect();
    ranked.sort();
    // What shares less than half of its letters is no help, unless there is little to choose from.
    let limit = if models.len() <= SHOWN { usize::MAX } else { (id.chars().count() / 2).max(3) };
    ranked.into_iter().take(SHOWN).filter(|(distance, _)| *distance <= limit).map(|(_, name)| name).collect()
}

/// How many letters have to be put in, taken out or replaced.
fn distance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 128;
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(LONGEST).collect(), b.chars().take(LONGEST).collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
