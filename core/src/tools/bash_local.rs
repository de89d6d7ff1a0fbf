//! Commands on this machine: what `LocalCommands` does (T201–T206, T220–T230).

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::operations::{CommandEnd, CommandRequest, End, Operation};
use super::powershell;
use crate::system::process::{self, Ended};
use crate::system::spawn::Program;

pub(super) fn run(mut request: CommandRequest) -> Operation<CommandEnd> {
    // A future that is dropped takes its command with it.
    request.cancel = request.cancel.child_token();
    let guard = request.cancel.clone().drop_guard();
    let running = tokio::task::spawn_blocking(move || start(request));
    Box::pin(async move {
        let ended = running.await;
        drop(guard);
        ended.unwrap_or_else(|_| Err(io::Error::other("a command failed inside the library")))
    })
}

fn start(mut request: CommandRequest) -> io::Result<CommandEnd> {
    let path = match request.shell.take() {
        Some(shell) if !shell.exists() => {
            return Err(io::Error::other(format!("Custom shell path not found: {}", shell.display())));
        }
        Some(shell) => shell,
        None => usual_shell()?,
    };
    if !request.cwd.is_dir() {
        let (cwd, shell) =
            (request.cwd.display(), if powershell::is_powershell(&path) { "PowerShell" } else { "bash" });
        return Err(io::Error::other(format!(
            "Working directory does not exist: {cwd}\nCannot execute {shell} commands."
        )));
    }
    let mut arguments: Vec<OsString> = match powershell::is_powershell(&path) {
        true => powershell::ARGUMENTS.map(Into::into).into(),
        false => vec!["-c".into()],
    };
    arguments.push(powershell::wrap(&path, &request.command).into_owned().into());
    let program = Program { path, arguments, cwd: request.cwd.clone(), environment: request.environment.take() };
    let Ended { end, code, shell_time } =
        process::run(&program, &request.cancel, request.timeout, &mut request.output)?;
    let end = match end {
        process::End::Finished => End::Finished,
        process::End::TimedOut => End::TimedOut,
        process::End::Cancelled => End::Cancelled,
    };
    Ok(CommandEnd { code, shell_time, ..CommandEnd::stopped(end) })
}

/// `/bin/bash`, else a `bash`, else a `sh` (T201).
fn usual_shell() -> io::Result<PathBuf> {
    let usual = Path::new("/bin/bash");
    if usual.exists() {
        return Ok(usual.to_path_buf());
    }
    let found = find("bash").or_else(|| find("sh"));
    found.ok_or_else(|| io::Error::other("No shell found: there is neither /bin/bash nor a bash or sh in PATH"))
}

/// A program in `PATH`.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let runs = |path: &PathBuf| {
        path.is_absolute() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
    };
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(runs)
}
