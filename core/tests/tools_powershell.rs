//! `powershell` (T270–T272), with programs that stand for one: they print what they were given.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use branchline::block_on;
use branchline::tools::bash::{BashOptions, BashTool};
use branchline::tools::{self, ToolResult, Toolbox};
use serde_json::{Value, json};

/// Prints its arguments, one a line, or runs the second line of its last one.
const FAKE: &str = r#"#!/bin/bash
for last; do :; done
case "$last" in
*RUN*) eval "$(printf '%s' "$last" | sed -n 's/.*RUN //p')" ;;
*) printf '<%s>\n' "$@" ;;
esac
"#;

fn fake(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, FAKE).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn call(shell: &Path, cwd: &Path, arguments: Value) -> ToolResult {
    let tools = Toolbox::new(cwd).unwrap();
    tools.add(Arc::new(BashTool::powershell_with_options(BashOptions::default().shell(shell))));
    block_on(tools.call("powershell", arguments))
}

fn text(result: &ToolResult) -> &str {
    result.content[0]["text"].as_str().unwrap()
}

#[test]
fn commands_are_handed_over_as_each_kind_needs_them() {
    let dir = tempfile::tempdir().unwrap();
    let (new, old) = (fake(dir.path(), "pwsh"), fake(dir.path(), "powershell.exe"));
    let shown = |shell: &Path, command: &str| {
        let result = call(shell, dir.path(), json!({"command": command}));
        assert!(!result.is_error, "{}", text(&result));
        text(&result).to_owned()
    };
    let begin = "<-NoProfile>\n<-NonInteractive>\n<-ExecutionPolicy>\n<Bypass>\n<-Command>\n<[Console]::OutputEncoding";
    let plain = shown(&new, "Get-Date");
    assert!(plain.starts_with(begin) && plain.ends_with("\nGet-Date>\n"), "{plain}");
    // Windows PowerShell 5.1 needs its result worked out, unless that would become part of the command.
    let wrapped = shown(&old, "Get-Date");
    assert!(
        wrapped.starts_with(begin) && wrapped.contains("\nGet-Date\n") && wrapped.ends_with("exit 1>\n"),
        "{wrapped}"
    );
    assert!(shown(&old, "Get-Date `").ends_with("\nGet-Date `>\n"));
}

#[test]
fn results_and_errors_are_those_of_bash_with_its_own_name() {
    let dir = tempfile::tempdir().unwrap();
    let shell = fake(dir.path(), "pwsh");
    let result = call(&shell, dir.path(), json!({"command": "RUN echo part; exit 3"}));
    assert!(result.is_error && text(&result) == "part\n\n\nCommand exited with code 3", "{}", text(&result));
    assert_eq!(result.structured_content.unwrap()["exit_code"], 3);

    let long = call(&shell, dir.path(), json!({"command": "RUN seq 1 3000"}));
    let details = long.details.unwrap();
    let file = Path::new(details["fullOutputPath"].as_str().unwrap()).file_name().unwrap().to_owned();
    assert!(file.to_str().unwrap().starts_with("pi-powershell-"), "{details}");

    let missing = call(&shell, &dir.path().join("gone"), json!({"command": "x"}));
    assert!(
        missing.is_error && text(&missing).ends_with("\nCannot execute PowerShell commands."),
        "{}",
        text(&missing)
    );
    let late = call(&shell, dir.path(), json!({"command": "RUN sleep 30", "timeout": 0.2}));
    assert!(late.is_error && text(&late).contains("Command timed out after 0.2 seconds"), "{}", text(&late));
}

/// Run by the next test in a process of its own, whose `PATH` is what it should be.
#[test]
#[ignore = "part of another test"]
#[allow(clippy::print_stdout)] // read by the other test
fn child_that_looks_for_a_powershell() {
    let names: Vec<String> = tools::builtin().iter().map(|tool| tool.definition().name.clone()).collect();
    let tools = Toolbox::new("/").unwrap();
    let result = block_on(tools.call("powershell", json!({"command": "RUN echo \"by $0\""})));
    println!("RESULT {} {}", names.last().unwrap(), text(&result));
}

#[test]
fn one_in_path_is_found_and_the_newer_one_first() {
    let dir = tempfile::tempdir().unwrap();
    let look = || {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_looks_for_a_powershell", "--ignored", "--nocapture"])
            .env("PATH", format!("{}:/usr/bin:/bin", dir.path().display()))
            .output()
            .unwrap();
        let out = String::from_utf8(child.stdout).unwrap();
        out.lines().find_map(|line| line.split_once("RESULT ").map(|(_, rest)| rest.to_owned())).unwrap()
    };
    if ["/usr/bin/pwsh", "/bin/pwsh"].iter().any(|path| Path::new(path).exists()) {
        return; // a real one, which no fake stands for
    }
    assert_eq!(look(), "ls Tool powershell not found");
    fake(dir.path(), "powershell");
    assert_eq!(look(), format!("powershell by {}/powershell", dir.path().display()));
    fake(dir.path(), "pwsh");
    assert_eq!(look(), format!("powershell by {}/pwsh", dir.path().display()));
}
