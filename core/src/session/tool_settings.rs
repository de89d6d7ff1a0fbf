//! What settings say about tools (P801): `images.autoResize`, `shellPath`, `shellCommandPrefix`.

use std::sync::Arc;

use crate::engine::EngineShared;
use crate::resources::settings::Settings;
use crate::tools::Tool;
use crate::tools::bash::{BashOptions, BashTool};
use crate::tools::image::ImageOptions;
use crate::tools::read::ReadTool;

/// The tools of a session: the engine's and its own, the built-in ones as the settings want them. A tool that the host put in
/// the place of a built-in one is the host's business.
pub(super) fn tools(engine: &EngineShared, custom: &[Arc<dyn Tool>], settings: &Settings) -> Vec<Arc<dyn Tool>> {
    let mut tools = engine.tools(custom);
    for tool in &mut tools {
        if engine.builtin.iter().any(|known| Arc::ptr_eq(known, tool))
            && let Some(other) = instead(&tool.definition().name, settings)
        {
            *tool = other;
        }
    }
    tools
}

fn instead(name: &str, settings: &Settings) -> Option<Arc<dyn Tool>> {
    match name {
        "read" if !settings.auto_resize_images() => {
            Some(Arc::new(ReadTool::with_images(ImageOptions::default().auto_resize(false))))
        }
        "bash" => {
            let options = shell(BashOptions::default(), settings);
            let differs = options.shell.is_some() || options.prefix.is_some();
            differs.then(|| Arc::new(BashTool::with_options(options)) as Arc<dyn Tool>)
        }
        _ => None,
    }
}

/// Shell and prefix of the settings, where the options have none.
pub(super) fn shell(mut options: BashOptions, settings: &Settings) -> BashOptions {
    options.shell = options.shell.or_else(|| settings.shell_path());
    options.prefix = options.prefix.or_else(|| settings.shell_command_prefix().map(str::to_owned));
    options
}
