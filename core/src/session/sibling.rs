//! Sibling sessions: further live sessions over the same tree and file, each with a leaf, queues, a model, tools, events
//! and a run of its own.
//!
//! The tree puts appends one after the other, so any number of siblings may run at once: an entry's parent is the leaf of
//! the session that appends it, whatever others appended in between, and each line is written whole. Branching writes
//! nothing (S45).

use std::sync::Arc;

use super::Session;
use super::actor::Actor;
use super::command::Command;
use super::explore::Group;
use super::family::{Family, Footing, Origin};
use super::open::{Choices, take_up};
use super::shared::Shared;
use super::state::{Phase, SessionState};
use crate::agent::{Budget, Projection, Toolset};
use crate::engine::EngineShared;
use crate::error::{Error, ErrorCode, Result};
use crate::tree::Cursor;

/// The entry a sibling begins at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BranchPoint {
    /// Where the session stands.
    #[default]
    Leaf,
    /// This entry, whatever its kind: what is said next follows it. To ask a question in other words, begin at the parent
    /// of the user message.
    Entry(String),
    /// Before the first entry: what is said next is a new root.
    Start,
}

impl From<&str> for BranchPoint {
    fn from(id: &str) -> BranchPoint {
        BranchPoint::Entry(id.to_owned())
    }
}

impl From<&String> for BranchPoint {
    fn from(id: &String) -> BranchPoint {
        BranchPoint::Entry(id.clone())
    }
}

impl From<String> for BranchPoint {
    fn from(id: String) -> BranchPoint {
        BranchPoint::Entry(id)
    }
}

/// Details of [`Session::branch`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BranchOptions {
    /// `provider/model`; `None` is what the path to the entry says (S119), else the session's own.
    pub model: Option<String>,
    /// A thinking level; `None` is what the path says, else the session's own.
    pub thinking_level: Option<String>,
    /// Names of the active tools; `None` is what the path declares (S304), else the session's own.
    pub tools: Option<Vec<String>>,
    /// Limits of what it may spend, besides those of the session, which it shares.
    pub budgets: Vec<Budget>,
}

impl BranchOptions {
    /// Sets [`model`](Self::model).
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets [`thinking_level`](Self::thinking_level).
    pub fn thinking_level(mut self, level: impl Into<String>) -> Self {
        self.thinking_level = Some(level.into());
        self
    }

    /// Sets [`tools`](Self::tools).
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Adds one of the [`budgets`](Self::budgets).
    pub fn budget(mut self, budget: &Budget) -> Self {
        self.budgets.push(budget.clone());
        self
    }
}

impl Session {
    /// Opens another live session over the same tree and file: a sibling. It begins at the given entry, at the leaf or
    /// before the first entry, and from then on nothing it does moves this session, nor the other way round. Any number
    /// may run at once. Legal at any time, also while this session runs.
    ///
    /// Hooks, tools of the host, system prompt, resources, settings and durability are this session's. Events carry the same
    /// session id; [`Event::sibling`](super::Event::sibling) tells them apart. Every sibling, this session among them,
    /// may be closed first: the file stays open for writing until the last one is closed. A session without a file gets
    /// it with the first message of any of them (S42).
    ///
    /// Errors: `entry_not_found`, `unknown_model`, `unknown_tool`, `closed`, `storage_failed`.
    pub async fn branch(&self, at: impl Into<BranchPoint>, options: BranchOptions) -> Result<Session> {
        let at = at.into();
        let footing = self.footing(at).await?;
        self.sibling_on(footing, options, None).await
    }

    /// Which of the sessions over its file this is: 0 for the one that opened or made the file, 1, 2, … in the order of
    /// branching for the others. Events and states carry it.
    pub fn sibling(&self) -> u32 {
        self.shared().sibling
    }

    /// Whether both are sessions over one tree.
    pub fn is_sibling_of(&self, other: &Session) -> bool {
        self.shared().tree.is_same(&other.shared().tree)
    }

    /// What a sibling finds at a place, read only if no other one has read it.
    pub(super) async fn footing(&self, at: BranchPoint) -> Result<Arc<Footing>> {
        let family = self.shared().family()?;
        let here = self.leaf();
        let leaf = match at {
            BranchPoint::Leaf => here.clone(),
            BranchPoint::Entry(id) => Some(id),
            BranchPoint::Start => None,
        };
        if let Some(footing) = family.footing(leaf.as_deref()) {
            return Ok(footing);
        }
        let known = match leaf == here {
            true => self.ask(|reply| Command::Context { leaf: leaf.clone(), reply }).await?,
            false => None,
        };
        let block_images = self.shared().choices_made().settings.block_images();
        let read = move || {
            let tree = family.tree();
            if let Some(id) = leaf.as_deref().filter(|id| !tree.knows(id)) {
                return Err(Error::new(ErrorCode::EntryNotFound, format!("the session has no entry {id:?}")));
            }
            let footing = Arc::new(Footing::read(tree, leaf, known, block_images)?);
            family.remember(&footing);
            Ok(footing)
        };
        self.engine().blocking(read).await
    }

    /// A sibling that begins there.
    pub(super) async fn sibling_on(
        &self,
        footing: Arc<Footing>,
        options: BranchOptions,
        group: Option<Arc<Group>>,
    ) -> Result<Session> {
        let family = self.shared().family()?;
        let parent = self.shared().clone();
        let engine = self.engine().clone();
        let origin = Origin { footing, group };
        let (actor, shared) = engine
            .blocking({
                let engine = engine.clone();
                move || prepare(engine, &family, &parent, origin, options)
            })
            .await?;
        take_up(&engine, actor, shared)
    }
}

fn prepare(
    engine: Arc<EngineShared>,
    family: &Arc<Family>,
    parent: &Shared,
    origin: Origin,
    options: BranchOptions,
) -> Result<(Actor, Arc<Shared>)> {
    let footing = origin.footing.clone();
    let theirs = parent.state();
    let model = match &options.model {
        Some(name) => Some(engine.model(name)?),
        None => {
            let on_path = footing.model.as_ref().and_then(|name| engine.model(name).ok());
            on_path.or_else(|| theirs.model.as_ref().and_then(|name| engine.model(name).ok()))
        }
    };
    let mut choices = Choices { tools: parent.choices_made().tools.clone(), ..parent.choices() };
    choices.budgets.extend(options.budgets);
    choices.settings.compaction(model.as_deref().map(|model| model.name_parts()))?;
    let level = options.thinking_level.or_else(|| footing.projection.level().map(str::to_owned));
    let level = level.unwrap_or(theirs.thinking_level);

    let registered = super::tool_settings::tools(&engine, &choices.custom_tools, &choices.settings);
    let tools = match (&options.tools, &footing.tools) {
        (Some(names), _) => Toolset::chosen(registered, names)?,
        (None, Some(declared)) => {
            let mut tools = Toolset::usual(registered, &choices.settings.default_tools());
            let (names, mentioned) = declared.tool_names();
            tools.restore(&names, mentioned);
            tools
        }
        (None, None) => Toolset::chosen(registered, &theirs.tools)?,
    };

    let cursor = Cursor::at(family.tree().clone(), footing.leaf.as_deref())?;
    let projection = footing.projection.clone();
    let state = SessionState {
        phase: Phase::Idle,
        running: false,
        sibling: family.next_sibling(),
        leaf: footing.leaf.clone(),
        model: model.as_ref().map(|model| model.full_name()),
        model_notice: None,
        thinking_level: String::new(),
        tools: tools.names(),
        steering: Vec::new(),
        follow_up: Vec::new(),
        pending_bash: 0,
        context_messages: projection.len(),
    };
    let shared = Arc::new(Shared::new(family.clone(), state, choices, parent.resources(), Some(origin)));
    family.join(&shared);
    let actor = Actor::new(engine, shared.clone(), cursor, projection, tools, model, level);
    Ok((actor, shared))
}

impl Actor {
    /// What the model sees at this leaf, if the session rests there. In the middle of a run it may be about to change.
    pub(crate) fn context_at(&mut self, leaf: Option<&str>) -> Option<Projection> {
        (self.activity.is_none() && self.cursor.leaf() == leaf).then(|| self.projection.share())
    }

    /// A sibling that begins a new root records its model and level there, so that whoever opens the file later finds
    /// them on the path (S297 leaves that open). Nothing is written before it says something.
    pub(crate) fn record_new_root(&mut self) -> Result<()> {
        if self.shared.origin.is_none() || self.projection.len() > 0 {
            return Ok(());
        }
        let recorded = self.cursor.tree().settings_at(self.cursor.leaf())?.1;
        if recorded.is_none()
            && let Some(model) = self.model.clone()
        {
            self.append(|cursor| cursor.append_model(&model.provider, &model.id))?;
        }
        if self.projection.level().is_none() {
            self.record_level()?;
        }
        Ok(())
    }
}
