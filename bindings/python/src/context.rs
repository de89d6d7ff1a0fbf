//! What the model sees, how much of it there is, and what is put into it besides prompts. Functions, as a class has one
//! block of methods. Structured results are JSON in the form of `branchline::session`.

use branchline::message::BashExecution;
use branchline::session::RunBashOptions;
use branchline::{CustomMessage, Delivery, PromptOptions, WhenRunning, json};
use pyo3::prelude::*;
use serde::Serialize;

use crate::error;
use crate::pending::Pending;
use crate::run::Run;
use crate::session::{Session, id_call, json_value};
use crate::siblings::read;

/// A call whose result is JSON.
pub(crate) fn told<T: Serialize + Send + 'static>(
    future: impl Future<Output = branchline::Result<T>> + Send + 'static,
) -> Pending {
    let text = async move { Ok(json::to_string(&future.await?)) };
    Pending::new(text, |py, text| Ok(text.into_pyobject(py)?.into_any()))
}

/// A call that gives an id, or `None` when the entry is stored later.
fn maybe_id(future: impl Future<Output = branchline::Result<Option<String>>> + Send + 'static) -> Pending {
    Pending::new(future, |py, id| Ok(id.into_pyobject(py)?))
}

pub(crate) fn when_running(py: Python<'_>, word: &str) -> PyResult<WhenRunning> {
    match word {
        "refuse" => Ok(WhenRunning::Refuse),
        "steer" => Ok(WhenRunning::Steer),
        "follow_up" => Ok(WhenRunning::FollowUp),
        _ => Err(error::invalid(py, "when_running is \"refuse\", \"steer\" or \"follow_up\"")),
    }
}

/// `CompactionResult` as JSON.
#[pyfunction]
pub(crate) fn compact(py: Python<'_>, session: &Session, instructions: Option<String>) -> PyResult<Pending> {
    let session = session.own(py)?;
    Ok(told(async move { session.compact(instructions.as_deref()).await }))
}

/// `SessionStats` as JSON.
#[pyfunction]
pub(crate) fn stats(py: Python<'_>, session: &Session) -> PyResult<Pending> {
    let session = session.own(py)?;
    Ok(told(async move { session.stats().await }))
}

/// `ContextUsage` as JSON.
#[pyfunction]
pub(crate) fn context_usage(py: Python<'_>, session: &Session) -> PyResult<Pending> {
    let session = session.own(py)?;
    Ok(told(async move { session.context_usage().await }))
}

/// A list of `ForkMessage` as JSON.
#[pyfunction]
pub(crate) fn fork_messages(py: Python<'_>, session: &Session) -> PyResult<Pending> {
    let session = session.own(py)?;
    Ok(told(async move { session.fork_messages().await }))
}

#[pyfunction]
pub(crate) fn set_queue_modes(
    py: Python<'_>,
    session: &Session,
    steer_all: Option<bool>,
    follow_up_all: Option<bool>,
) -> PyResult<Pending> {
    let session = session.own(py)?;
    Ok(Pending::unit(async move { session.set_queue_modes(steer_all, follow_up_all).await }))
}

#[pyfunction]
pub(crate) fn abort_retry(py: Python<'_>, session: &Session) -> PyResult<()> {
    session.get(py)?.abort_retry();
    Ok(())
}

#[pyfunction]
pub(crate) fn abort_summary(py: Python<'_>, session: &Session) -> PyResult<()> {
    session.get(py)?.abort_summary();
    Ok(())
}

/// The result is a `Run`.
#[pyfunction]
pub(crate) fn prompt_custom(
    py: Python<'_>,
    session: &Session,
    message_json: &str,
    when: &str,
    forced_prompt: Option<String>,
    capacity: usize,
) -> PyResult<Pending> {
    let message: CustomMessage = read(py, message_json)?;
    let mut options = PromptOptions::default().when_running(when_running(py, when)?).capacity(capacity);
    options.forced_prompt = forced_prompt;
    let session = session.own(py)?;
    Ok(Pending::new(async move { session.prompt_custom(message, options).await }, |py, run| {
        Ok(Bound::new(py, Run::new(run))?.into_any())
    }))
}

#[pyfunction]
pub(crate) fn send_custom_message(
    py: Python<'_>,
    session: &Session,
    message_json: &str,
    delivery: &str,
) -> PyResult<Pending> {
    let message: CustomMessage = read(py, message_json)?;
    let delivery = match delivery {
        "store" => Delivery::Store,
        "steer" => Delivery::Steer,
        "follow_up" => Delivery::FollowUp,
        "next_turn" => Delivery::NextTurn,
        _ => return Err(error::invalid(py, "delivery is \"store\", \"steer\", \"follow_up\" or \"next_turn\"")),
    };
    let session = session.own(py)?;
    Ok(maybe_id(async move { session.send_custom_message(message, delivery).await }))
}

#[pyfunction]
pub(crate) fn record_bash(py: Python<'_>, session: &Session, execution_json: &str) -> PyResult<Pending> {
    let execution: BashExecution = read(py, execution_json)?;
    let session = session.own(py)?;
    Ok(maybe_id(async move { session.record_bash(execution).await }))
}

#[pyfunction]
pub(crate) fn edit_context(
    py: Python<'_>,
    session: &Session,
    entry_id: String,
    replacement_json: &str,
) -> PyResult<Pending> {
    let replacement = json_value(py, replacement_json)?;
    let session = session.own(py)?;
    Ok(id_call(async move { session.edit_context(&entry_id, replacement).await }))
}

/// The result is a tuple `(output, exit code, cancelled, truncated, full output path)`.
#[pyfunction]
pub(crate) fn run_bash(
    py: Python<'_>,
    session: &Session,
    command: String,
    id: Option<String>,
    exclude_from_context: bool,
) -> PyResult<Pending> {
    let mut options = RunBashOptions::default().exclude_from_context(exclude_from_context);
    options.id = id;
    let session = session.own(py)?;
    Ok(Pending::new(async move { session.run_bash(&command, options).await }, |py, ended| {
        let row = (ended.output, ended.exit_code, ended.cancelled, ended.truncated, ended.full_output_path);
        Ok(row.into_pyobject(py)?.into_any())
    }))
}

#[pyfunction]
pub(crate) fn abort_bash(py: Python<'_>, session: &Session) -> PyResult<()> {
    session.get(py)?.abort_bash();
    Ok(())
}
