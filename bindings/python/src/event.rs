//! Events. Each crosses as a row `(class name, sequence, raw event, fields…)`, from which `branchline.events` makes its
//! objects: what is small crosses at once, everything else as JSON when it is looked at.

use branchline::EventKind;
use branchline::providers::BlockEvent;
use pyo3::prelude::*;

/// `branchline::Event`. Belongs to no thread and no engine, so it outlives both, and a fork.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct RawEvent(branchline::Event);

#[pymethods]
impl RawEvent {
    #[getter]
    fn r#type(&self) -> &'static str {
        self.0.type_name()
    }

    #[getter]
    fn session_id(&self) -> &str {
        self.0.session_id()
    }

    #[getter]
    fn sibling(&self) -> u32 {
        self.0.sibling()
    }

    /// The event as one JSON object.
    fn to_json(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.to_json())
    }
}

pub(crate) fn row(py: Python<'_>, event: branchline::Event) -> PyResult<Bound<'_, PyAny>> {
    let kind = event.kind().clone();
    let sequence = event.sequence();
    let raw = Bound::new(py, RawEvent(event))?;
    macro_rules! row {
        ($class:literal $(, $field:expr)*) => {
            ($class, sequence, raw $(, $field)*).into_pyobject(py).map(Bound::into_any)
        };
    }
    match &kind {
        EventKind::AgentStart => row!("AgentStart"),
        EventKind::TurnStart => row!("TurnStart"),
        EventKind::MessageStart { message } => row!("MessageStart", message.role().name()),
        EventKind::MessageUpdate { update, .. } => match update {
            BlockEvent::TextDelta { index, delta } => row!("TextDelta", update.type_name(), *index, &**delta),
            BlockEvent::ThinkingDelta { index, delta } => row!("ThinkingDelta", update.type_name(), *index, &**delta),
            BlockEvent::ToolCallDelta { index, delta } => row!("ToolCallDelta", update.type_name(), *index, &**delta),
            _ => row!("MessageUpdate", update.type_name(), update.index()),
        },
        EventKind::MessageEnd { message, entry_id } => {
            row!("MessageEnd", message.role().name(), entry_id.as_deref())
        }
        EventKind::ToolExecutionStart { id, name, .. } => row!("ToolExecutionStart", &**id, &**name),
        EventKind::ToolExecutionUpdate { id, name, .. } => row!("ToolExecutionUpdate", &**id, &**name),
        EventKind::ToolExecutionEnd { id, name, is_error, duration_ms, .. } => {
            row!("ToolExecutionEnd", &**id, &**name, *is_error, *duration_ms)
        }
        EventKind::TurnEnd { .. } => row!("TurnEnd"),
        EventKind::AgentEnd { will_retry, .. } => row!("AgentEnd", *will_retry),
        EventKind::AgentSettled { aborted } => row!("AgentSettled", *aborted),
        EventKind::QueueUpdate { steering, follow_up } => {
            let texts = |list: &[std::sync::Arc<str>]| list.iter().map(|text| text.to_string()).collect::<Vec<_>>();
            row!("QueueUpdate", texts(steering), texts(follow_up))
        }
        EventKind::EntryAppended { .. } => row!("EntryAppended"),
        EventKind::SessionInfoChanged { name } => row!("SessionInfoChanged", name.as_deref()),
        EventKind::ThinkingLevelChanged { level } => row!("ThinkingLevelChanged", &**level),
        EventKind::PermissionDecision { decision } => row!(
            "PermissionDecision",
            &*decision.call_id,
            &*decision.tool,
            decision.effect.name(),
            decision.allowed,
            &*decision.rule,
            decision.by.name(),
            decision.reason.as_deref()
        ),
        EventKind::BudgetExceeded { over } => {
            row!("BudgetExceeded", over.limit.name(), over.used, over.max, over.price_unknown)
        }
        EventKind::BashExecutionUpdate { id, delta } => row!("BashExecutionUpdate", id.as_deref(), &**delta),
        EventKind::CompactionStart { reason } => row!("CompactionStart", reason.name()),
        EventKind::CompactionEnd { reason, aborted, will_retry, error, .. } => {
            row!("CompactionEnd", reason.name(), *aborted, *will_retry, error.as_deref())
        }
        EventKind::AutoRetryStart { wait } => {
            row!("AutoRetryStart", wait.attempt, wait.max_attempts, wait.delay_ms, &*wait.error)
        }
        EventKind::AutoRetryEnd { success, attempt, error } => {
            row!("AutoRetryEnd", *success, *attempt, error.as_deref())
        }
        EventKind::SummarizationRetryScheduled { wait } => {
            row!("SummarizationRetryScheduled", wait.attempt, wait.max_attempts, wait.delay_ms, &*wait.error)
        }
        EventKind::SummarizationRetryAttemptStart { compaction } => {
            row!("SummarizationRetryAttemptStart", compaction.map(|reason| reason.name()))
        }
        EventKind::SummarizationRetryFinished => row!("SummarizationRetryFinished"),
        _ => row!("Event"),
    }
}
