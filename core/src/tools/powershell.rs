//! `powershell`: the same as `bash` with another shell, where there is one (T270–T272).
//!
//! On Unix that is PowerShell 7 (`pwsh`), and below the Windows Subsystem for Linux also Windows' own `powershell.exe`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::bash_local;

/// What commands begin with: without it output comes in the console's own encoding.
const UTF8: &str = "[Console]::OutputEncoding = [System.Text.Encoding]::UTF8";

/// What Windows PowerShell 5.1 needs at a command's end. It takes text that a program writes to stderr for an error of its
/// own; where nothing else went wrong and the program says that it ended well, the command did.
const RESULT_OF_5_1: &str = "\
if ($?) { exit 0 }
$others = @($Error | Where-Object { $_.FullyQualifiedErrorId -notlike 'NativeCommandError*' })
if ($LASTEXITCODE -eq 0 -and $others.Count -eq 0) { exit 0 }
exit 1";

/// The arguments before the command (T271).
pub(super) const ARGUMENTS: [&str; 5] = ["-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-Command"];

/// A PowerShell in `PATH`: the newer one if there are both (T271).
pub(super) fn find() -> Option<PathBuf> {
    ["pwsh", "pwsh.exe", "powershell", "powershell.exe"].iter().find_map(|name| bash_local::find(name))
}

/// Whether a shell is a PowerShell, by its name.
pub(super) fn is_powershell(shell: &Path) -> bool {
    shell.file_stem().is_some_and(|name| name == "pwsh" || name == "powershell")
}

/// A command as the shell gets it (T272).
pub(super) fn wrap<'a>(shell: &Path, command: &'a str) -> Cow<'a, str> {
    if !is_powershell(shell) {
        return Cow::Borrowed(command);
    }
    let old = shell.file_stem().is_some_and(|name| name == "powershell");
    // A backtick at the end goes on with the next line.
    match old && !command.ends_with('`') {
        true => Cow::Owned(format!("{UTF8}\n{command}\n{RESULT_OF_5_1}")),
        false => Cow::Owned(format!("{UTF8}\n{command}")),
    }
}
