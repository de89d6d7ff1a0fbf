//! What a host says about its engine; further setters are beside what they are about, in `models` and `keys`.

use std::path::PathBuf;
use std::sync::Arc;

use crate::permissions::Permissions;
use crate::providers::{CatalogueOptions, Credentials, KeyOptions, NetworkOptions, PayloadHook, WireObserver};
use crate::resources::settings::Settings;
use crate::tools::Operations;

/// Settings of an [`Engine`](super::Engine).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Worker threads for everything the engine does; `None` is one for each processor, at most 4. At most 512.
    pub worker_threads: Option<usize>,
    /// Where sessions and settings live; `None` is `$PI_CODING_AGENT_DIR` or `~/.pi/agent` (S38). Commands find the
    /// programs in `bin` of one that is named here (T207).
    pub agent_dir: Option<PathBuf>,
    /// `provider/model` for sessions that choose none.
    pub default_model: Option<String>,
    /// Settings for sessions that bring none. Files are read only if the host does so, see [`Settings::load`].
    pub settings: Settings,
    /// The files and commands the tools of its sessions work with; the default is this machine's.
    pub operations: Operations,
    /// How services are reached.
    pub network: NetworkOptions,
    /// Which models of services are known.
    pub catalogue: CatalogueOptions,
    /// Where keys come from.
    pub keys: KeyOptions,
    /// Looks up keys in the place of everything in `keys`.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// Sees the traffic with services.
    pub wire_observer: Option<Arc<dyn WireObserver>>,
    /// May replace the body of a request before it is sent (P40).
    pub payload_hook: Option<Arc<dyn PayloadHook>>,
    /// A new file that records the traffic with services until the engine ends, see [`WireRecorder`](crate::providers::WireRecorder).
    pub record: Option<PathBuf>,
    /// What the tool calls of sessions may do that do not say; [`Preset::Ask`](crate::permissions::Preset) unless set.
    /// Toolboxes are not meant: a host that calls tools itself has decided.
    pub permissions: Permissions,
}

impl EngineOptions {
    /// Sets [`worker_threads`](Self::worker_threads).
    pub fn worker_threads(mut self, threads: usize) -> Self {
        self.worker_threads = Some(threads);
        self
    }

    /// Sets [`agent_dir`](Self::agent_dir).
    pub fn agent_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.agent_dir = Some(dir.into());
        self
    }

    /// Sets [`default_model`](Self::default_model).
    pub fn default_model(mut self, model: impl Into<String>) -> Self {
        self.default_model = Some(model.into());
        self
    }

    /// Sets [`settings`](Self::settings).
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets [`operations`](Self::operations).
    pub fn operations(mut self, operations: Operations) -> Self {
        self.operations = operations;
        self
    }

    /// Sets [`network`](Self::network).
    pub fn network(mut self, network: NetworkOptions) -> Self {
        self.network = network;
        self
    }

    /// Sets [`credentials`](Self::credentials).
    pub fn credentials(mut self, credentials: Arc<dyn Credentials>) -> Self {
        self.credentials = Some(credentials);
        self
    }

    /// Sets [`wire_observer`](Self::wire_observer).
    pub fn wire_observer(mut self, observer: Arc<dyn WireObserver>) -> Self {
        self.wire_observer = Some(observer);
        self
    }

    /// Sets [`payload_hook`](Self::payload_hook).
    pub fn payload_hook(mut self, hook: Arc<dyn PayloadHook>) -> Self {
        self.payload_hook = Some(hook);
        self
    }

    /// Sets [`permissions`](Self::permissions).
    pub fn permissions(mut self, permissions: impl Into<Permissions>) -> Self {
        self.permissions = permissions.into();
        self
    }
}
