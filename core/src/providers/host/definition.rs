//! The definition of a provider as a host of another language writes it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{HostModel, HostProvider};
use crate::error::{Error, ErrorCode, Result};
use crate::providers::model::LEVELS;
use crate::providers::{Model, Prices, Rates};

/// Wire protocol of models that name none.
const API: &str = "host";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    name: String,
    models: Vec<Value>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GivenModel {
    id: String,
    name: Option<String>,
    api: Option<String>,
    #[serde(default)]
    context_window: u64,
    #[serde(default)]
    max_tokens: u64,
    input: Option<Vec<Input>>,
    reasoning: Option<bool>,
    thinking_levels: Option<Vec<String>>,
    cost: Option<GivenPrices>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Input {
    Text,
    Image,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct GivenPrices {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
    tiers: Vec<GivenTier>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct GivenTier {
    input_tokens_above: u64,
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
}

impl HostProvider {
    /// Reads `{name, models: [id or {id, name?, contextWindow?, maxTokens?, input?: ["text", "image"], reasoning?,
    /// thinkingLevels?, cost?, api?}]}`, the form in which hosts of other languages define a provider of their own; `cost` is in
    /// US dollars per million tokens, as in `models.json`.
    ///
    /// Errors: `invalid_argument`, naming the place.
    pub fn from_value(definition: Value, model: Arc<dyn HostModel>) -> Result<HostProvider> {
        let given: Given = crate::json::form(definition)
            .map_err(|error| invalid(format!("bad provider: {error}; it is {{name, models}}")))?;
        let name = given.name;
        check_name(&name)?;
        if given.models.is_empty() {
            return Err(invalid(format!("bad provider {name:?}: it has no models")));
        }
        let mut ids = HashSet::new();
        let mut models = Vec::new();
        for (at, value) in given.models.into_iter().enumerate() {
            let wrong = |problem: String| invalid(format!("bad provider {name:?}: models.{at}: {problem}"));
            let model = read(&name, value).map_err(wrong)?;
            if !ids.insert(model.id.clone()) {
                return Err(wrong(format!("there is another model {:?}", model.id)));
            }
            models.push(model);
        }
        Ok(HostProvider::new(name, models, model))
    }
}

/// A provider of the host's can be named in `provider/id`.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control()) {
        return Err(invalid(format!("bad provider: a name has no \"/\" and no spaces, unlike {name:?}")));
    }
    Ok(())
}

fn read(provider: &str, value: Value) -> Result<Model, String> {
    let given = match value {
        Value::String(id) => GivenModel { id, ..GivenModel::default() },
        value => crate::json::form(value).map_err(|error| error.to_string())?,
    };
    if given.id.trim().is_empty() {
        return Err("the id is empty".to_owned());
    }
    let mut model = Model::new(provider, given.id, given.api.unwrap_or_else(|| API.to_owned()));
    if let Some(name) = given.name {
        model.name = name;
    }
    model.context_window = given.context_window;
    model.max_tokens = given.max_tokens;
    model.images = given.input.is_some_and(|input| input.contains(&Input::Image));
    let levels = given.thinking_levels;
    let thinks = levels.as_ref().is_some_and(|levels| levels.iter().any(|level| level != "off"));
    if thinks && given.reasoning == Some(false) {
        return Err("it has thinkingLevels, but reasoning is false".to_owned());
    }
    if given.reasoning.unwrap_or(thinks) {
        model = model.reasoning();
        if let Some(levels) = levels {
            model.set_thinking_level_map(words(&levels)?);
        }
    }
    if let Some(cost) = given.cost {
        model.prices = prices(&cost)?;
    }
    Ok(model)
}

/// Every level that is not named is unsupported.
fn words(levels: &[String]) -> Result<BTreeMap<String, Option<String>>, String> {
    if let Some(level) = levels.iter().find(|level| !LEVELS.contains(&level.as_str())) {
        return Err(format!("{level:?} is no thinking level; there are {}", LEVELS.join(", ")));
    }
    let word = |level: &str| levels.iter().find(|known| *known == level).cloned();
    Ok(LEVELS.iter().map(|level| ((*level).to_owned(), word(level))).collect())
}

fn prices(given: &GivenPrices) -> Result<Prices, String> {
    let rates = |input, output, cache_read, cache_write| {
        let rates = Rates { input, output, cache_read, cache_write };
        match [input, output, cache_read, cache_write].iter().all(|rate| *rate >= 0.0) {
            true => Ok(rates),
            false => Err("a price is negative".to_owned()),
        }
    };
    let tier = |tier: &GivenTier| {
        let rates = rates(tier.input, tier.output, tier.cache_read, tier.cache_write)?;
        Ok((tier.input_tokens_above, rates))
    };
    Ok(Prices {
        rates: rates(given.input, given.output, given.cache_read, given.cache_write)?,
        tiers: given.tiers.iter().map(tier).collect::<Result<_, String>>()?,
    })
}

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}
