//! Programs of the agent's own directory come first in the `PATH` of commands, and a host's word on command, directory and
//! environment is the last (T207).

#[path = "session_support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use branchline::session::RunBashOptions;
use branchline::tools::bash::{BashOptions, BashTool};
use branchline::tools::environment::{Base, EnvironmentPolicy};
use branchline::tools::operations::{CommandEnd, CommandOperations, CommandRequest, LocalCommands, Operation};
use branchline::tools::{Operations, ToolResult, Toolbox};
use branchline::{Engine, EngineOptions, PromptOptions, block_on};
use serde_json::{Value, json};
use support::*;

fn text(result: &ToolResult) -> &str {
    result.content[0]["text"].as_str().unwrap()
}

fn shell(tools: &Toolbox, command: &str) -> String {
    text(&block_on(tools.call("bash", json!({"command": command})))).to_owned()
}

/// The directory of `engine`, with a program in it that stands before the system's.
fn program(dir: &Path) -> String {
    let bin = dir.join("agent/bin");
    fs::create_dir_all(&bin).unwrap();
    for name in ["ours", "ls"] {
        fs::write(bin.join(name), "#!/bin/sh\necho ours\n").unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    bin.to_str().unwrap().to_owned()
}

fn with(policy: EnvironmentPolicy) -> Arc<BashTool> {
    Arc::new(BashTool::with_options(BashOptions::default().environment(policy)))
}

#[test]
fn t207_programs_of_the_agent_directory_come_first() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, bin) = (engine(dir.path()), program(dir.path()));
    let ours = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let tools = engine.toolbox(dir.path());
    assert_eq!(shell(&tools, "ls; ours"), "ours\nours\n");
    for base in [Base::Scrubbed, Base::Inherit, Base::Clean] {
        tools.add(with(EnvironmentPolicy::new(base)));
        assert_eq!(shell(&tools, "echo $PATH").trim_end(), ours, "{base:?}");
    }
    // What the host says of `PATH` stands.
    tools.add(with(EnvironmentPolicy::default().set("PATH", "/bin")));
    assert_eq!(shell(&tools, "echo $PATH"), "/bin\n");
    tools.add(with(EnvironmentPolicy::default().drop("PATH")));
    assert_eq!(shell(&tools, "env | grep -c ^PATH=; ls | head -n 1").lines().next(), Some("0"));
    tools.add(with(EnvironmentPolicy::default().program_dir("/opt/mine")));
    assert!(shell(&tools, "echo $PATH").starts_with("/opt/mine:"));
}

#[test]
fn t207_sessions_and_every_shell_have_them() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, bin) = (engine(dir.path()), program(dir.path()));
    // It stands for a PowerShell: what it is given ends with the command.
    let shown = dir.path().join("pwsh");
    fs::write(&shown, "#!/bin/sh\necho \"$PATH\"\n").unwrap();
    fs::set_permissions(&shown, fs::Permissions::from_mode(0o755)).unwrap();
    engine.add_tool(Arc::new(BashTool::powershell_with_options(BashOptions::default().shell(&shown))));
    let call = |id: &str, name: &str| json!({"type": "toolCall", "id": id, "name": name, "arguments": {"command": "echo $PATH"}});
    let script = json!([
        {"content": [call("a", "bash"), call("b", "powershell")]},
        {"content": [{"type": "text", "text": "ok"}]}
    ]);
    let (session, _) = scripted_with(&engine, dir.path(), script, |options| options.tools(["bash", "powershell"]));
    block_on(block_on(session.prompt("go", PromptOptions::default())).unwrap().result()).unwrap();
    let results: Vec<Value> =
        lines(&session.path().unwrap()).into_iter().filter(|line| line["message"]["role"] == "toolResult").collect();
    assert_eq!(results.len(), 2);
    for line in results {
        let shown = line["message"]["content"][0]["text"].as_str().unwrap();
        assert!(shown.starts_with(&format!("{bin}:")), "{line}");
    }
    let typed = block_on(session.run_bash("echo $PATH; ours", RunBashOptions::default())).unwrap();
    assert!(typed.output.starts_with(&format!("{bin}:")) && typed.output.ends_with("\nours\n"), "{}", typed.output);
}

#[test]
fn t207_nothing_is_added_without_an_agent_directory() {
    let dir = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap();
    let engine = Engine::new(EngineOptions::default().worker_threads(1)).unwrap();
    assert_eq!(shell(&engine.toolbox(dir.path()), "echo $PATH").trim_end(), path);
    assert_eq!(shell(&Toolbox::new(dir.path()).unwrap(), "echo $PATH").trim_end(), path);
}

/// Says where commands run, with what, and what they are.
struct Elsewhere;

impl CommandOperations for Elsewhere {
    fn run(&self, mut request: CommandRequest) -> Operation<CommandEnd> {
        request.command = format!("set -u\n{}", request.command);
        request.cwd = request.cwd.join("inside");
        if let Some(environment) = &mut request.environment {
            environment.push(("HOST_SAYS".into(), "so".into()));
        }
        LocalCommands.run(request)
    }
}

#[test]
fn t207_a_host_rewrites_command_directory_and_environment() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("inside")).unwrap();
    let operations = Operations::local().commands(Elsewhere);
    let options = EngineOptions::default().worker_threads(1).operations(operations);
    let engine = Engine::new(options).unwrap();
    let shown = shell(&engine.toolbox(dir.path()), "basename \"$PWD\"; echo $HOST_SAYS; echo $NOTHING");
    assert!(shown.starts_with("inside\nso\n") && shown.contains("NOTHING: unbound variable"), "{shown}");
    let session = block_on(
        engine.create_session(branchline::SessionOptions::new(dir.path()).model("scripted/demo").in_memory(true)),
    );
    let typed = block_on(session.unwrap().run_bash("echo $HOST_SAYS", RunBashOptions::default())).unwrap();
    assert_eq!(typed.output, "so\n");
}
