//! `bash`: a command in a shell (T200–T253), and `powershell` where there is one (T270–T272).
//!
//! The command runs through the replaceable operations, by default in a process tree of its own (`system::process`),
//! without input and without the host's secrets. Its output is kept in bounded memory and shown from the end.

use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bash_output::{Output, Report, Words};
use super::environment::EnvironmentPolicy;
use super::operations::{CommandEnd, CommandRequest, End};
use super::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult, powershell};

const DESCRIPTION: &str = "Run a command with bash in the working directory and get what it writes to stdout and stderr. \
Shows the last 2000 lines or 50 KB, whichever is less; longer output is kept in a temporary file that the result names. \
There is no input. Give a timeout in seconds for commands that may not end.";

/// Longest timeout in seconds.
const MAX_TIMEOUT: f64 = 2_147_483.647;

/// How commands are run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BashOptions {
    /// The shell; `None` is `/bin/bash`, or what there is instead.
    pub shell: Option<PathBuf>,
    /// Put on a line of its own before every command.
    pub prefix: Option<String>,
    /// What commands see of the host's environment.
    pub environment: EnvironmentPolicy,
    /// Files with long output stay when the tool goes. By default they are removed when the engine or toolbox that has
    /// the tool is gone.
    pub keep_output: bool,
}

impl BashOptions {
    /// Sets [`shell`](Self::shell).
    pub fn shell(mut self, shell: impl Into<PathBuf>) -> Self {
        self.shell = Some(shell.into());
        self
    }

    /// Sets [`prefix`](Self::prefix).
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Sets [`environment`](Self::environment).
    pub fn environment(mut self, environment: EnvironmentPolicy) -> Self {
        self.environment = environment;
        self
    }

    /// Sets [`keep_output`](Self::keep_output).
    pub fn keep_output(mut self, keep: bool) -> Self {
        self.keep_output = keep;
        self
    }

    pub(super) fn command(&self, command: &str) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}\n{command}"),
            None => command.to_owned(),
        }
    }
}

/// Files with long output. Removed when the last owner is gone.
#[derive(Default)]
pub(super) struct Files(Mutex<Vec<PathBuf>>);

impl Files {
    pub(super) fn add(&self, path: PathBuf) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in self.0.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The tool.
pub struct BashTool {
    definition: ToolDefinition,
    options: BashOptions,
    words: Words,
    files: Arc<Files>,
}

impl BashTool {
    /// The tool with its standard definition and options.
    pub fn new() -> BashTool {
        BashTool::with_options(BashOptions::default())
    }

    /// The tool with options. Add it to an engine to replace the standard one.
    pub fn with_options(options: BashOptions) -> BashTool {
        let mut definition = definition("bash", DESCRIPTION.to_owned());
        definition.snippet = Some("run a command".to_owned());
        BashTool { definition, options, words: Words { shell: "bash", files: "pi-bash" }, files: Arc::default() }
    }

    /// `powershell`, if there is one in `PATH`: `pwsh`, else `powershell` (T271).
    pub fn powershell() -> Option<BashTool> {
        powershell::find().map(|shell| BashTool::powershell_with_options(BashOptions::default().shell(shell)))
    }

    /// `powershell` with options, of which [`shell`](BashOptions::shell) names the program: its name, `pwsh` or
    /// `powershell`, tells how commands are handed to it (T272).
    pub fn powershell_with_options(options: BashOptions) -> BashTool {
        let mut definition = definition("powershell", DESCRIPTION.replace("bash", "PowerShell"));
        definition.snippet = Some("run a PowerShell command".to_owned());
        let words = Words { shell: "PowerShell", files: "pi-powershell" };
        BashTool { definition, options, words, files: Arc::default() }
    }
}

fn definition(name: &str, description: String) -> ToolDefinition {
    let parameters = json!({
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "Command to run"},
            "timeout": {"type": "number", "description": "Seconds after which it is stopped. Default: never"}
        },
        "required": ["command"]
    });
    let mut definition = ToolDefinition::new(name, description, parameters);
    definition.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
    definition
}

impl Default for BashTool {
    fn default() -> Self {
        BashTool::new()
    }
}

impl Tool for BashTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn execute(&self, call: ToolCall) -> ToolFuture {
        let (options, words) = (self.options.clone(), self.words);
        let files = (!options.keep_output).then(|| self.files.clone());
        Box::pin(async move { run(&call, &options, words, files.as_deref()).await })
    }
}

async fn run(
    call: &ToolCall,
    options: &BashOptions,
    words: Words,
    files: Option<&Files>,
) -> Result<ToolResult, ToolError> {
    let command = call.arguments.get("command").and_then(Value::as_str);
    let command = command.ok_or_else(|| ToolError::new("command must be a string"))?;
    let timeout = call.arguments.get("timeout").filter(|value| !value.is_null());
    let limit = timeout.map(seconds).transpose()?;
    if call.cancel.is_cancelled() {
        return Err(ToolError::aborted());
    }
    let output = Arc::new(Output::new(words.files));
    let sink = output.clone();
    let mut request =
        CommandRequest::new(options.command(command), call.cwd.clone(), Box::new(move |data: &[u8]| sink.push(data)));
    request.shell.clone_from(&options.shell);
    request.environment = Some(options.environment.build(call.program_dir.as_deref(), &call.session_variables));
    request.timeout = limit;
    request.cancel = call.cancel.clone();

    let begun = Instant::now();
    call.progress.offer(ToolResult::default());
    let mut report = Report::new(&call.progress, &output);
    let mut running = pin!(call.operations.commands.run(request));
    let ended = loop {
        tokio::select! {
            biased;
            ended = running.as_mut() => break ended,
            () = report.due() => report.tell(),
        }
    };
    output.finish();
    report.tell();
    let ended = ended.map_err(|error| could_not_run(&error, words))?;
    let result = result(&output, ended, timeout, words, begun.elapsed());
    if let Some(path) = output.keep()
        && let Some(files) = files
    {
        files.add(path);
    }
    result
}

/// A `timeout` argument (T205).
fn seconds(value: &Value) -> Result<Duration, ToolError> {
    match value.as_f64() {
        Some(seconds) if seconds > MAX_TIMEOUT => {
            Err(ToolError::new(format!("timeout is too long: the maximum is {MAX_TIMEOUT} seconds")))
        }
        Some(seconds) if seconds > 0.0 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(ToolError::new("timeout must be a finite number of seconds above 0")),
    }
}

/// A sentence of the operations stands for itself; an error of the system needs some words.
fn could_not_run(error: &io::Error, words: Words) -> ToolError {
    match error.raw_os_error() {
        Some(_) => ToolError::new(format!("Cannot run {}: {error}", words.shell)),
        None => ToolError::new(error.to_string()),
    }
}

fn result(
    output: &Output,
    ended: CommandEnd,
    timeout: Option<&Value>,
    words: Words,
    took: Duration,
) -> Result<ToolResult, ToolError> {
    let (mut text, details) = output.shown();
    let separate = |text: &str, line: String| if text.is_empty() { line } else { format!("{text}\n\n{line}") };
    match ended.end {
        End::TimedOut => {
            let seconds = timeout.map(crate::json::to_string).unwrap_or_default();
            let mut line = format!("Command timed out after {seconds} seconds");
            if let (Some(time), Some(code)) = (ended.shell_time, ended.code) {
                let (shell, time) = (words.shell, tenths(time));
                line.push_str(&format!(
                    " ({shell} exited with code {code} after {time} seconds, but background processes kept writing)"
                ));
            }
            return Err(ToolError::new(separate(&text, line)));
        }
        End::Cancelled => return Err(ToolError::new(separate(&text, "Command aborted".to_owned()))),
        End::Finished => {}
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    let failure = match ended.code {
        Some(0) => None,
        Some(code) => Some(format!("Command exited with code {code}")),
        None => Some("The command ended without an exit code.".to_owned()),
    };
    let is_error = failure.is_some();
    if let Some(failure) = failure {
        text = separate(&text, failure);
    }
    let structured_content = Some(output.structured(ended.code, &tenths(took)));
    Ok(ToolResult { details, is_error, structured_content, ..ToolResult::text(text) })
}

/// Seconds with one decimal, or none where that is 0.
fn tenths(time: Duration) -> serde_json::Number {
    let tenths = (time.as_secs_f64() * 10.0).round() as u64;
    let exact = || serde_json::Number::from_f64(tenths as f64 / 10.0);
    if tenths.is_multiple_of(10) { (tenths / 10).into() } else { exact().unwrap_or_else(|| 0.into()) }
}
