//! Settings that say where sessions are and which tools they have (S38, S281).

#[path = "session_support/mod.rs"]
mod support;

use branchline::resources::settings::Settings;
use branchline::tree::ListOptions;
use branchline::{EngineOptions, PromptOptions, SessionOptions, block_on};
use serde_json::{Value, json};
use support::*;

fn settings(value: Value) -> Settings {
    Settings::from_values(value.as_object().unwrap().clone())
}

#[test]
fn session_dir_is_where_files_go_and_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("elsewhere");
    let options = EngineOptions::default().agent_dir(dir.path().join("agent"));
    let engine = branchline::Engine::new(options.settings(settings(json!({"sessionDir": there})))).unwrap();
    let make = |options: SessionOptions| block_on(engine.create_session(options.model("scripted/demo").tools([""; 0])));
    let session = make(SessionOptions::new(dir.path())).unwrap();
    block_on(block_on(session.prompt("hi", PromptOptions::default())).unwrap().result()).unwrap();
    assert_eq!(session.path().unwrap().parent().unwrap(), there);
    let listed = block_on(engine.list_sessions(Some(dir.path().to_path_buf()), ListOptions::default())).unwrap();
    assert_eq!(listed.len(), 1);
    // What the host says for one session is stronger.
    let own = make(SessionOptions::new(dir.path()).session_dir(dir.path().join("own"))).unwrap();
    assert_eq!(own.path().unwrap().parent().unwrap(), dir.path().join("own"));
    block_on(session.close()).unwrap();
    let recent = block_on(engine.continue_recent(SessionOptions::new(dir.path()))).unwrap();
    assert_eq!(recent.id(), session.id());
}

#[test]
fn default_tools_are_the_active_ones() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    for (given, active) in [
        (json!({}), vec!["read", "bash", "edit", "write"]),
        (json!({"defaultTools": ["grep", "read", "nosuch", "grep"]}), vec!["grep", "read"]),
        (json!({"defaultTools": []}), vec![]),
        (json!({"defaultTools": ["+grep", "-bash"]}), vec!["read", "edit", "write", "grep"]),
        (json!({"defaultTools": ["+grep", "bash", "-read"]}), vec!["bash", "grep"]),
        (json!({"defaultTools": ["+read"]}), vec!["read", "bash", "edit", "write"]),
    ] {
        let (session, _) = scripted_with(&engine, dir.path(), json!([]), |options| options.settings(settings(given)));
        assert_eq!(session.state().tools, active);
    }
    let (session, _) = scripted_with(&engine, dir.path(), json!([]), |options| {
        options.settings(settings(json!({"defaultTools": ["grep"]}))).tools(["ls"])
    });
    assert_eq!(session.state().tools, ["ls"], "a choice is stronger");
}

/// P800: a project's list of changes changes the user's list.
#[test]
fn p800_default_tools_are_changed_by_signs() {
    let mut both = settings(json!({"defaultTools": ["read", "grep"]}));
    both.merge(json!({"defaultTools": ["-read", "+ls", "+grep"]}).as_object().unwrap().clone());
    assert_eq!(both.default_tools(), ["grep", "ls"]);
    both.merge(json!({"defaultTools": ["-nothing"]}).as_object().unwrap().clone());
    assert_eq!(both.default_tools(), ["grep", "ls"]);
    both.merge(json!({"defaultTools": ["read"]}).as_object().unwrap().clone());
    assert_eq!(both.default_tools(), ["read"]);
}

/// S283: an old name that holds no number says nothing, and hides nothing.
#[test]
fn s283_old_names_that_are_wrong() {
    let mut both = settings(json!({"retry": {"provider": {"maxRetryDelayMs": 3}}}));
    both.merge(json!({"retry": {"maxDelayMs": "x"}}).as_object().unwrap().clone());
    assert_eq!(both.provider_max_retry_delay(), std::time::Duration::from_millis(3));
}

/// P801: shell and prefix of commands, for the model's tool and for the person; what the host chose itself is stronger.
#[test]
fn p801_shell_and_prefix() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let shell = dir.path().join("shell");
    std::fs::write(&shell, "#!/bin/sh\necho through-my-shell\nexec /bin/sh \"$@\"\n").unwrap();
    std::fs::set_permissions(&shell, std::fs::Permissions::from_mode(0o755)).unwrap();
    let values = json!({"shellPath": shell, "shellCommandPrefix": "MARK=prefixed"});
    let engine = engine(dir.path());
    let call = json!([{"content": [{"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "echo $MARK"}}]},
        {"content": [{"type": "text", "text": "ok"}]}]);
    let (session, control) =
        scripted_with(&engine, dir.path(), call.clone(), |options| options.settings(settings(values.clone())));
    block_on(block_on(session.prompt("go", PromptOptions::default())).unwrap().result()).unwrap();
    let result = |control: &branchline::providers::scripted::ScriptControl| {
        control.requests()[1].messages.last().unwrap().text("")
    };
    let text = result(&control);
    assert!(text.contains("through-my-shell") && text.contains("prefixed"), "{text}");
    let run = block_on(session.run_bash("echo $MARK", Default::default())).unwrap();
    assert!(run.output.contains("through-my-shell") && run.output.contains("prefixed"), "{}", run.output);

    let own = std::sync::Arc::new(branchline::tools::bash::BashTool::new());
    let (session, control) =
        scripted_with(&engine, dir.path(), call, |options| options.settings(settings(values)).custom_tool(own));
    block_on(block_on(session.prompt("go", PromptOptions::default())).unwrap().result()).unwrap();
    assert!(!result(&control).contains("through-my-shell"), "the host's tool");
}

/// P801: `images.autoResize` false leaves images as they are.
#[cfg(feature = "images")]
#[test]
fn p801_images_are_not_resized() {
    let dir = tempfile::tempdir().unwrap();
    let big = image::RgbImage::from_fn(2600, 40, |x, y| image::Rgb([x as u8, y as u8, 9]));
    big.save(dir.path().join("big.png")).unwrap();
    let width = |values: Value| {
        let engine = engine(dir.path());
        let call = json!([{"content": [{"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "big.png"}}]},
            {"content": [{"type": "text", "text": "ok"}]}]);
        let (session, control) = scripted_with(&engine, dir.path(), call, |options| options.settings(settings(values)));
        block_on(block_on(session.prompt("go", PromptOptions::default())).unwrap().result()).unwrap();
        let message = control.requests()[1].messages.last().unwrap().clone();
        let data = message.get("content").unwrap()[1]["data"].as_str().unwrap().to_owned();
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
        image::load_from_memory(&bytes).unwrap().width()
    };
    assert_eq!(width(json!({"images": {"autoResize": false}})), 2600);
    assert!(width(json!({})) < 2600);
}
