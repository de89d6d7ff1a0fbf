//! Making a session: its tree, then its first settings, then its actor (S289–S293).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::actor::Actor;
use super::family::Family;
use super::options::SessionOptions;
use super::state::{Phase, SessionState};
use super::{Session, Shared, tool_settings};
use crate::agent::{Budget, Projection, SystemState, ToolHook, Toolset};
use crate::engine::EngineShared;
use crate::error::{Error, ErrorCode, Result};
use crate::permissions::Permissions;
use crate::providers::Model;
use crate::resources::settings::Settings;
use crate::resources::{ResourceOptions, Resources};
use crate::tools::Tool;
use crate::tree::{CreateOptions, Cursor, Durability, OpenOptions, OsStorage, Tree};

/// Where a session's tree comes from.
pub(crate) enum Source {
    New,
    File(PathBuf),
    Recent,
}

/// What a host chose for a session, as far as it outlives the making of its tree.
#[derive(Clone, Default)]
pub(crate) struct Choices {
    pub(crate) name: Option<String>,
    pub(crate) model: Option<String>,
    /// The model when there is no other: that of the session this one takes the place of.
    pub(crate) last_resort_model: Option<String>,
    pub(crate) thinking_level: Option<String>,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) custom_tools: Vec<Arc<dyn Tool>>,
    pub(crate) hooks: Vec<Arc<dyn ToolHook>>,
    pub(crate) permissions: Permissions,
    pub(crate) budgets: Vec<Budget>,
    pub(crate) system_prompt: Option<String>,
    pub(crate) resources: ResourceOptions,
    /// What was read already, by the session this one is copied from.
    pub(crate) loaded: Option<Arc<Resources>>,
    pub(crate) settings: Settings,
    pub(crate) durability: Durability,
    pub(crate) read_only: bool,
}

pub(crate) async fn start(engine: &Arc<EngineShared>, source: Source, mut options: SessionOptions) -> Result<Session> {
    options.resources.check()?;
    let choices = Choices {
        name: options.name.clone(),
        model: options.model.clone(),
        last_resort_model: None,
        thinking_level: options.thinking_level.clone(),
        tools: options.tools.clone(),
        custom_tools: options.custom_tools.clone(),
        hooks: options.tool_hooks.clone(),
        budgets: options.budgets.clone(),
        permissions: options.permissions.clone().unwrap_or_else(|| engine.options.permissions.clone()),
        system_prompt: options.system_prompt.clone(),
        resources: options.resources.clone(),
        loaded: None,
        settings: options.settings.clone().unwrap_or_else(|| engine.options.settings.clone()),
        durability: options.durability,
        read_only: options.read_only,
    };
    options.session_dir = options.session_dir.or_else(|| choices.settings.session_directory());
    let agent_dir = engine.options.agent_dir.clone();
    let tree = engine.blocking(move || make_tree(source, options, agent_dir)).await?;
    launch(engine, tree, choices).await
}

pub(crate) fn make_tree(source: Source, options: SessionOptions, agent_dir: Option<PathBuf>) -> Result<Tree> {
    let storage = options.storage.unwrap_or_else(|| Arc::new(OsStorage));
    let create = CreateOptions {
        session_dir: options.session_dir.clone(),
        agent_dir,
        id: options.id,
        parent_session: options.parent_session,
        in_memory: options.in_memory,
        durability: options.durability,
        storage: storage.clone(),
        ..CreateOptions::default()
    };
    match source {
        Source::New => Tree::create(&options.cwd, create),
        Source::Recent => Tree::continue_recent(&options.cwd, create),
        Source::File(path) => {
            let must_exist = options.cwd.as_os_str().is_empty() && !options.read_only;
            let open = OpenOptions {
                cwd: (!options.cwd.as_os_str().is_empty()).then_some(options.cwd),
                session_dir: options.session_dir,
                read_only: options.read_only,
                durability: options.durability,
                storage,
                ..OpenOptions::default()
            };
            let tree = Tree::open(&path, open)?;
            if must_exist && !tree.cwd().is_dir() {
                return Err(cwd_missing(&path, tree.cwd()));
            }
            Ok(tree)
        }
    }
}

/// Tools would run somewhere else than the session says (S191).
fn cwd_missing(path: &Path, cwd: &Path) -> Error {
    let text = format!(
        "the session's working directory {} does not exist; open the session with a cwd that does, or read-only",
        cwd.display()
    );
    Error::new(ErrorCode::WorkingDirectoryMissing, text).at(path)
}

/// Gives a tree its session.
pub(crate) async fn launch(engine: &Arc<EngineShared>, tree: Tree, choices: Choices) -> Result<Session> {
    let theirs = engine.clone();
    let (actor, shared) = engine.blocking(move || prepare(theirs, tree, choices)).await?;
    take_up(engine, actor, shared)
}

/// Lets a session's actor begin.
pub(crate) fn take_up(engine: &Arc<EngineShared>, actor: Actor, shared: Arc<Shared>) -> Result<Session> {
    engine.register(&shared)?;
    let (commands, inbox) = async_channel::unbounded();
    let session = Session::new(shared, engine.clone(), commands);
    engine.handle.spawn(actor.run(inbox));
    Ok(session)
}

/// The tools that a path declares, if it has any system message: all of them count, not only those in context (S304).
pub(crate) fn declared_tools(tree: &Tree, leaf: Option<&str>) -> Result<Option<SystemState>> {
    let messages = tree.system_messages(leaf)?;
    let mut declared = SystemState::default();
    messages.iter().for_each(|message| declared.apply(message));
    Ok(declared.is_known().then_some(declared))
}

/// The model a session begins with, the level chosen with it, and what its host should know about the choice (S292, P92).
struct Beginning {
    model: Option<Arc<Model>>,
    level: Option<String>,
    notice: Option<String>,
}

fn beginning(engine: &EngineShared, choices: &Choices, stored: Option<String>, new: bool) -> Result<Beginning> {
    let plain = |model| Ok(Beginning { model: Some(model), level: None, notice: None });
    if let Some(name) = &choices.model {
        return plain(engine.model(name)?);
    }
    let known = stored.as_ref().and_then(|name| engine.model(name).ok());
    if let Some(model) = known.as_ref().filter(|model| engine.is_usable(model)) {
        return plain(model.clone());
    }
    let mut level = None;
    let default = engine.options.default_model.as_ref().map(|name| engine.model(name)).transpose()?;
    let model = default.filter(|model| known.is_none() || engine.is_usable(model));
    let model = model.or_else(|| choices.last_resort_model.as_ref().and_then(|name| engine.model(name).ok()));
    let model = model.or_else(|| {
        let choice = engine.initial_model(&choices.settings, new)?;
        level = choice.thinking_level;
        Some(choice.model)
    });
    // Without a better one the session keeps its own: a prompt then says which key is missing.
    let model = model.filter(|model| known.is_none() || engine.is_usable(model)).or(known);
    let other = model.as_ref().filter(|model| stored.as_ref().is_some_and(|stored| *stored != model.full_name()));
    let notice = other.map(|model| {
        let stored = stored.as_deref().unwrap_or_default();
        let why = if engine.model(stored).is_ok() { "there is no key for it" } else { "it is not known" };
        format!("the session's model {stored} cannot be used: {why}; {} is used instead", model.full_name())
    });
    Ok(Beginning { model, level, notice })
}

fn prepare(engine: Arc<EngineShared>, tree: Tree, choices: Choices) -> Result<(Actor, Arc<Shared>)> {
    let mut cursor = Cursor::new(tree.clone());
    let context = tree.context(cursor.leaf())?;
    let existing = context.messages().next().is_some();
    let projection = Projection::new(&context, choices.settings.block_images());

    let stored = context.model().map(|(provider, id)| format!("{provider}/{id}")).filter(|_| existing);
    let Beginning { model, level, notice } = beginning(&engine, &choices, stored, !existing)?;
    // A wrong number is said now, not when it is needed in the middle of a run (S282).
    choices.settings.compaction(model.as_deref().map(Model::name_parts))?;
    let wished = match &choices.thinking_level {
        Some(level) => level.clone(),
        None if existing && projection.level().is_some() => projection.level().unwrap_or_default().to_owned(),
        None if level.is_some() => level.unwrap_or_default(),
        None => {
            let for_model = model.as_ref().filter(|_| !existing);
            let for_model =
                for_model.and_then(|model| choices.settings.model_thinking_level(&model.provider, &model.id));
            for_model.unwrap_or(choices.settings.default_thinking_level()).to_owned()
        }
    };

    let registered = tool_settings::tools(&engine, &choices.custom_tools, &choices.settings);
    let tools = match &choices.tools {
        Some(names) => Toolset::chosen(registered, names)?,
        None => {
            let mut tools = Toolset::usual(registered, &choices.settings.default_tools());
            if let Some(declared) = declared_tools(&tree, cursor.leaf())? {
                let (names, mentioned) = declared.tool_names();
                tools.restore(&names, mentioned);
            }
            tools
        }
    };

    let state = SessionState {
        phase: Phase::Idle,
        running: false,
        sibling: 0,
        leaf: cursor.leaf().map(str::to_owned),
        model: model.as_ref().map(|model| model.full_name()),
        model_notice: notice,
        thinking_level: String::new(),
        tools: tools.names(),
        steering: Vec::new(),
        follow_up: Vec::new(),
        pending_bash: 0,
        context_messages: projection.len(),
    };
    if !choices.read_only
        && let Some(name) = &choices.name
    {
        cursor.append_name(name)?;
    }
    let read_only = choices.read_only;
    let resources = match &choices.loaded {
        Some(loaded) => loaded.clone(),
        None => Arc::new(Resources::load(&choices.resources, &choices.settings, &engine.agent_dir(), tree.cwd())),
    };
    let family = Family::new(tree);
    let shared = Arc::new(Shared::new(family.clone(), state, choices, resources, None));
    family.join(&shared);
    let mut actor = Actor::new(engine, shared.clone(), cursor, projection, tools, model, wished);
    if !read_only {
        actor.record_start(existing)?;
    }
    Ok((actor, shared))
}
