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
    let text = text.trim();
    let (mut rest, mut thinking_level) = (text, None);
    loop {
        let found = match exact(models, rest, &usable)? {
            None => partial(models, rest, &usable)?,
            found => found,
        };
        if let Some(model) = found {
            return Ok(ModelChoice { model, thinking_level });
        }
        // Of several levels the last one counts.
        let Some((before, level)) = split_level(rest) else { return Err(unknown(models, text)) };
        thinking_level.get_or_insert_with(|| level.to_owned());
        rest = before;
    }
}

/// A text and the thinking level behind it.
fn split_level(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once(':').filter(|(_, level)| LEVELS.contains(level))
}

fn exact(models: &[Arc<Model>], name: &str, usable: &impl Fn(&Model) -> bool) -> Result<Option<Arc<Model>>> {
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
fn one_of(models: &[&Arc<Model>], usable: &impl Fn(&Model) -> bool) -> Result<Option<Arc<Model>>> {
    match models {
        [] => Ok(None),
        [model] => Ok(Some(Arc::clone(model))),
        [first, ..] => match models.iter().filter(|model| usable(model)).collect::<Vec<_>>().as_slice() {
            [model] => Ok(Some(Arc::clone(model))),
            _ => {
                let names: Vec<String> = models.iter().map(|model| model.full_name()).collect();
                let text = format!("several providers have a model {:?}; write {}", first.id, names.join(" or "));
                Err(Error::new(ErrorCode::UnknownModel, text))
            }
        },
    }
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// The best model whose id or name holds the text: usable ones before others, ids without a date before dated ones, and of
/// those the lexically last.
fn partial(models: &[Arc<Model>], text: &str, usable: &impl Fn(&Model) -> bool) -> Result<Option<Arc<Model>>> {
    if text.is_empty() {
        return Ok(None);
    }
    let of_provider = text.split_once('/').filter(|(_, rest)| !rest.is_empty());
    let mut found = match of_provider {
        Some((provider, rest)) => holding(models.iter().filter(|model| same(&model.provider, provider)), rest),
        None => Vec::new(),
    };
    // The text may be a part of a router's id as well.
    if found.is_empty() {
        found = holding(models.iter(), text);
    }
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

fn unknown(models: &[Arc<Model>], name: &str) -> Error {
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
