//! Faults of coding agents, each a test: running commands. The numbers are those of the list of bugs.

#[path = "tool_support/mod.rs"]
mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use branchline::tools::bash::{BashOptions, BashTool};
use branchline::tools::bash_user;
use branchline::tools::{Operations, Tool};
use serde_json::json;
use support::*;
use tokio_util::sync::CancellationToken;

fn bash(command: &str, cwd: &Path) -> branchline::tools::ToolResult {
    call("bash", json!({"command": command}), cwd).unwrap()
}

fn full_output(result: &branchline::tools::ToolResult) -> String {
    result.details.as_ref().unwrap()["fullOutputPath"].as_str().unwrap().to_owned()
}

#[test]
fn bug_050_processes_left_behind_do_not_hold_the_result() {
    let dir = tempfile::tempdir().unwrap();
    for command in [
        "sleep 30 & echo ok",
        "sleep 30 </dev/null >/dev/null & echo ok",
        "(setsid sleep 30 &) ; echo ok",
        "nohup sleep 30 >/dev/null 2>&1 & disown; echo ok",
    ] {
        let begun = Instant::now();
        let result = bash(command, dir.path());
        assert_eq!((text(&result), result.is_error), ("ok\n", false), "{command}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{command}: {:?}", begun.elapsed());
    }
    // All that was written just before the end is there.
    let result = bash("sleep 30 & head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end", dir.path());
    let output = result.structured_content.unwrap();
    assert_eq!(output["output"].as_str().unwrap().len(), 1_000_005);
}

#[test]
fn bug_051_a_writer_left_behind_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["(while :; do echo tick; sleep 0.02; done) & sleep 0.3; echo fg-done", "yes & echo fg-done"] {
        let begun = Instant::now();
        let result = bash(command, dir.path());
        assert!(!result.is_error);
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert!(text(&result).len() < 60_000);
        let all = match &result.details {
            Some(details) => std::fs::read_to_string(details["fullOutputPath"].as_str().unwrap()).unwrap(),
            None => text(&result).to_owned(),
        };
        assert!(all.contains("fg-done"));
        assert_eq!(text(&bash("echo next", dir.path())), "next\n", "later calls are not disturbed");
    }
}

#[test]
fn bug_053_the_end_of_a_command_is_told() {
    let dir = tempfile::tempdir().unwrap();
    for (command, code) in [
        ("printf before; kill -KILL $$", 137),
        ("printf before; kill -TERM $$", 143),
        ("printf before; bash -c 'kill -SEGV $$'; exit $?", 139),
        ("printf before; exit 7", 7),
        ("printf before; exec nonexistent-cmd", 127),
    ] {
        let result = bash(command, dir.path());
        assert!(result.is_error, "{command}");
        let shown = text(&result);
        assert!(
            shown.starts_with("before") && shown.ends_with(&format!("\n\nCommand exited with code {code}")),
            "{shown}"
        );
        assert_eq!(result.structured_content.unwrap()["exit_code"], code);
    }
    assert!(!bash("exit 0", dir.path()).is_error);
}

#[test]
fn bug_054_cut_output_is_in_a_file_whole() {
    let dir = tempfile::tempdir().unwrap();
    for (command, bytes) in [
        ("seq 3000", 13_893),
        ("for i in $(seq 200); do head -c 299 /dev/zero | tr '\\0' x; echo; done", 60_000),
        ("head -c 60000 /dev/zero | tr '\\0' y", 60_000),
        (
            "for i in $(seq 1500); do echo $i; echo e$i >&2; done",
            2 * 1500 + 2 * (9 + 90 * 2 + 900 * 3 + 501 * 4) + 1500,
        ),
    ] {
        let result = bash(command, dir.path());
        let path = full_output(&result);
        let all = std::fs::read_to_string(&path).unwrap();
        assert_eq!(all.len(), bytes, "{command}");
        let shown = text(&result).split("\n\n[Showing ").next().unwrap();
        assert!(all.trim_end_matches('\n').ends_with(shown), "{command}: the end is shown");
        assert!(text(&result).contains(&path));
    }
    let result = bash("seq 2000", dir.path());
    assert!(result.details.is_none() && text(&result).lines().count() == 2000);
}

#[test]
fn bug_054_two_hundred_megabytes_in_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let result = bash("yes 0123456789abcde | head -c 200000000", dir.path());
    let path = full_output(&result);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 200_000_000);
    assert_eq!(result.details.as_ref().unwrap()["truncation"]["totalLines"], 12_500_000);
    let output = result.structured_content.unwrap();
    assert_eq!(output["truncated"], true);
    assert!(output["output"].as_str().unwrap().len() < 1024 * 1024 + 100);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn bug_056_limits_are_bytes_and_cuts_are_between_characters() {
    let dir = tempfile::tempdir().unwrap();
    for command in [
        "for i in $(seq 2000); do printf '😀😀😀😀😀😀😀😀😀😀'; done",
        "for i in $(seq 3000); do echo 日本語日本語日本語日本語日本語日本語日本; done",
        "printf a; for i in $(seq 2000); do printf '😀😀😀😀😀😀😀😀😀😀'; done",
    ] {
        let shown = text(&bash(command, dir.path())).split("\n\n[Showing").next().unwrap().to_owned();
        assert!(shown.len() <= 51_200 && shown.len() > 51_000, "{}", shown.len());
        assert!(!shown.contains('\u{fffd}') && (shown.starts_with('😀') || shown.starts_with('日')));
    }
    // The other tools that show lines.
    let name = "日本語".repeat(25);
    for number in 0..260 {
        write(dir.path(), &format!("many/{name}{number:03}"), "日本語\n".repeat(40));
    }
    let sub = dir.path().join("many");
    for shown in [
        ok("ls", json!({}), &sub),
        ok("find", json!({"pattern": "*"}), &sub),
        ok("grep", json!({"pattern": "日", "limit": 20000}), &sub),
    ] {
        let listed = shown.split("\n\n[").next().unwrap();
        assert!(listed.len() <= 51_200 && listed.len() > 50_000 && !listed.contains('\u{fffd}'), "{}", listed.len());
        assert!(shown.ends_with("[50.0KB limit reached]"));
    }
}

/// What a person's command prints is made fit to be shown. The model's own `bash` gets it as it is (rule T213).
#[test]
fn bug_057_terminal_control_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let run = |command: &str| {
        let (operations, options, cancel) = (Operations::local(), BashOptions::default(), CancellationToken::new());
        let run = bash_user::execute(&operations, command, dir.path(), &options, &cancel, |_| {});
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(run).unwrap().output
    };
    assert_eq!(run("printf '\\033[31mred\\033[0m \\033]0;title\\007x\\n'"), "red x\n");
    assert_eq!(run("printf 'a\\033[2Kb\\010\\000\\001c\\n'"), "abc\n");
    assert_eq!(run("printf 'a\\033[3'; sleep 0.2; printf '1mb\\n'"), "ab\n", "split over two writes");
    let frames = run("for i in $(seq 100); do printf '%d%%\\r' $i; done; echo done");
    assert!(frames.ends_with("100%done\n") && !frames.contains('\r'), "{frames}");
    assert!(!frames.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
}

#[test]
fn bug_096_files_with_output_are_private_and_go_with_the_tool() {
    let dir = tempfile::tempdir().unwrap();
    let tool: std::sync::Arc<dyn Tool> = std::sync::Arc::new(BashTool::new());
    let result = run(&tool, new_call("bash", json!({"command": "umask 0; seq 30000"}), dir.path())).unwrap();
    let path = full_output(&result);
    let facts = std::fs::symlink_metadata(&path).unwrap();
    assert!(facts.is_file());
    assert_eq!(facts.permissions().mode() & 0o777, 0o600);
    let name = Path::new(&path).file_name().unwrap().to_str().unwrap();
    let random = name.strip_prefix("pi-bash-").unwrap().strip_suffix(".log").unwrap();
    assert!(random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    drop(tool);
    assert!(!Path::new(&path).exists(), "removed with the tool");

    let keeping: std::sync::Arc<dyn Tool> =
        std::sync::Arc::new(BashTool::with_options(BashOptions::default().keep_output(true)));
    let result = run(&keeping, new_call("bash", json!({"command": "seq 30000"}), dir.path())).unwrap();
    drop(keeping);
    std::fs::remove_file(full_output(&result)).unwrap();
}

#[test]
fn bug_096_secrets_of_the_host_stay_there() {
    // SAFETY: tests of this file that read the environment do so through `std`, which locks it.
    unsafe { std::env::set_var("SOME_SERVICE_API_KEY", "hush-hush") };
    let dir = tempfile::tempdir().unwrap();
    assert!(!ok("bash", json!({"command": "env"}), dir.path()).contains("hush-hush"));
}

#[test]
fn bug_110_names_and_directories_are_no_commands() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join("with 'quotes' \"and\" $(touch pwned) `touch pwned` spaces");
    std::fs::create_dir(&odd).unwrap();
    let shown = ok("bash", json!({"command": "pwd; ls -a"}), &odd);
    assert!(shown.starts_with(&*odd.canonicalize().unwrap().to_string_lossy()), "{shown}");
    assert!(!shown.contains("\npwned") && !dir.path().join("pwned").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn what_left_the_group_is_ended_too() {
    let dir = tempfile::tempdir().unwrap();
    let command = "setsid bash -c 'trap \"\" TERM; echo $$ > a; sleep 60' & \
                   set -m; bash -c 'echo $$ > b; sleep 60' & \
                   while [ ! -s a ] || [ ! -s b ]; do sleep 0.01; done; wait";
    let error = failure("bash", json!({"command": command, "timeout": 1}), dir.path());
    assert_eq!(error, "Command timed out after 1 seconds");
    std::thread::sleep(Duration::from_millis(100));
    for name in ["a", "b"] {
        let pid = std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(!alive(pid.trim()), "{name}");
    }
}
