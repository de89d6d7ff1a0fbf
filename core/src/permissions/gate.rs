//! Judging calls: the one place that every call of every tool passes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::decision::{DecidedBy, PermissionDecision};
use super::fence::{Fence, Root};
use super::fenced_files::FencedFiles;
use super::grants::{Grants, Seen};
use super::handler::{self, Asked, PermissionAnswer, PermissionRequest};
use super::target::{self, Target};
use super::{Action, Effect, Permissions, Preset};
use crate::json;
use crate::message::JsonObject;
use crate::tools::{Operations, ToolDefinition, ToolError};

/// The policy of one session or toolbox, and what was answered in it so far.
pub(crate) struct Gate {
    policy: Permissions,
    cwd: PathBuf,
    /// Outside of these every path is refused; empty is the whole disk.
    roots: Vec<Root>,
    /// What counts as inside.
    area: Vec<Root>,
    grants: Mutex<Grants>,
}

/// A call to judge.
pub(crate) struct Asking<'a> {
    pub(crate) session_id: &'a str,
    pub(crate) sibling: u32,
    pub(crate) call_id: &'a str,
    pub(crate) definition: &'a ToolDefinition,
    pub(crate) arguments: &'a JsonObject,
    pub(crate) operations: &'a Operations,
    pub(crate) cancel: &'a CancellationToken,
}

/// What came of it.
pub(crate) struct Verdict {
    /// For the host; `None` when the policy decides nothing or the call has failed by itself.
    pub(crate) decision: Option<PermissionDecision>,
    /// The files and commands the call may use, or what the model reads instead.
    pub(crate) outcome: Result<Operations, ToolError>,
}

/// How far a call that was allowed may go.
enum Reach {
    Anywhere,
    /// Below what counts as inside.
    Area,
    /// There, and to what it names.
    Named,
}

impl Gate {
    /// The gate of a policy. Looks at the disk to see where the roots lead.
    pub(crate) fn new(policy: Permissions, cwd: &Path) -> Gate {
        let (mut roots, mut area) = (Vec::new(), Vec::new());
        if !policy.is_unrestricted() {
            roots = policy.roots.iter().map(|root| Root::directory(&cwd.join(root))).collect();
            let here = || vec![Root::directory(cwd)];
            if roots.is_empty() && matches!(policy.preset, Preset::ReadOnly | Preset::Workspace) {
                roots = here();
            }
            area = if roots.is_empty() { here() } else { roots.clone() };
        }
        Gate { policy, cwd: cwd.to_path_buf(), roots, area, grants: Mutex::default() }
    }

    /// Nothing is ever asked or refused.
    pub(crate) fn is_open(&self) -> bool {
        self.policy.is_unrestricted()
    }

    /// Judges a call. Waits for the handler where the policy asks.
    pub(crate) async fn judge(&self, call: Asking<'_>) -> Verdict {
        if self.is_open() {
            return Verdict { decision: None, outcome: Ok(call.operations.clone()) };
        }
        let found = target::of(call.definition, call.arguments, &self.cwd, call.operations, &self.area).await;
        let target = match found {
            Ok(target) => target,
            Err(error) => return Verdict { decision: None, outcome: Err(error) },
        };
        let mut decision = PermissionDecision {
            call_id: call.call_id.into(),
            tool: call.definition.name.as_str().into(),
            effect: target.effect,
            allowed: false,
            rule: "root".into(),
            by: DecidedBy::Policy,
            reason: None,
        };
        let judged = match self.outside(&target).await {
            Some(reason) => Err(reason),
            None => self.apply_rules(&call, &target, &mut decision).await,
        };
        match judged {
            Ok(reach) => {
                decision.allowed = true;
                let operations = self.operations(call.operations, reach, &target).await;
                Verdict { decision: Some(decision), outcome: Ok(operations) }
            }
            Err(_) if call.cancel.is_cancelled() => Verdict { decision: None, outcome: Err(ToolError::aborted()) },
            Err(reason) => {
                let text = format!("Permission denied: {reason}");
                decision.reason = Some(reason.into());
                Verdict { decision: Some(decision), outcome: Err(ToolError::new(text)) }
            }
        }
    }

    /// Why a call breaks the root, if it does.
    async fn outside(&self, target: &Target) -> Option<String> {
        if self.roots.is_empty() {
            return None;
        }
        if let Some(path) = target.paths.iter().find(|path| !path.inside) {
            let leads = if path.real == path.path { "lies" } else { "leads" };
            return Some(format!(
                "{} {leads} outside of the directories that are allowed. Stay inside of them.",
                path.path.display()
            ));
        }
        if target.effect == Effect::Execute {
            let cwd = self.cwd.clone();
            let real = tokio::task::spawn_blocking(move || target::prospective(&cwd).unwrap_or(cwd)).await;
            if !real.is_ok_and(|cwd| self.roots.iter().any(|root| root.contains(&cwd))) {
                return Some("the working directory lies outside of the directories that are allowed.".to_owned());
            }
        }
        None
    }

    /// What happens to a call that keeps within the root, and the rule that says so.
    fn rule(&self, tool: &str, target: &Target) -> (Action, String, bool) {
        if let Some((_, action)) = self.policy.tools.iter().find(|(name, _)| name == tool) {
            return (*action, format!("tool.{tool}"), false);
        }
        let effect = target.effect;
        if let Some((_, action)) = self.policy.effects.iter().find(|(known, _)| *known == effect) {
            return (*action, format!("effect.{effect}"), false);
        }
        let inside = target.paths.iter().all(|path| path.inside);
        let side = match (target.paths.is_empty(), inside) {
            (true, _) => "",
            (false, true) => ".inside",
            (false, false) => ".outside",
        };
        let preset = self.policy.preset;
        (preset.action(effect, inside), format!("{}.{effect}{side}", preset.name()), true)
    }

    async fn apply_rules(
        &self,
        call: &Asking<'_>,
        target: &Target,
        decision: &mut PermissionDecision,
    ) -> Result<Reach, String> {
        let tool = &call.definition.name;
        let (action, rule, by_preset) = self.rule(tool, target);
        decision.rule = rule.as_str().into();
        match action {
            Action::Allow if by_preset && self.policy.preset != Preset::Allow => return Ok(Reach::Area),
            Action::Allow => return Ok(Reach::Anywhere),
            Action::Deny => return Err(format!("the rule {rule:?} of this program's policy does not allow it.")),
            Action::Ask => {}
        }
        let reach = || if target.effect == Effect::Execute { Reach::Anywhere } else { Reach::Named };
        let plain = target.command.is_none() && target.paths.is_empty();
        let seen = Seen {
            tool,
            effect: target.effect,
            command: target.command.as_deref(),
            arguments: plain.then(|| json::to_string(call.arguments)),
            paths: &target.paths,
        };
        if self.grants().covers(&seen) {
            decision.by = DecidedBy::Earlier;
            return Ok(reach());
        }
        let Some(handler) = &self.policy.handler else {
            decision.by = DecidedBy::NoHandler;
            return Err(unasked(tool, target));
        };
        let request = PermissionRequest {
            session_id: call.session_id.to_owned(),
            sibling: call.sibling,
            call_id: call.call_id.to_owned(),
            tool: tool.clone(),
            effect: target.effect,
            arguments: call.arguments.clone(),
            command: target.command.clone(),
            paths: target.paths.clone(),
            cwd: self.cwd.clone(),
            rule,
            cancel: call.cancel.clone(),
        };
        let limit = self.policy.handler_timeout();
        match handler::ask(handler.clone(), request, limit).await {
            Asked::Answered(answer) => {
                decision.by = DecidedBy::Handler;
                match answer {
                    PermissionAnswer::Allow => Ok(reach()),
                    PermissionAnswer::AllowAlways(scope) => {
                        self.grants().add(scope, &seen);
                        Ok(reach())
                    }
                    PermissionAnswer::Deny(reason) => {
                        Err(reason.unwrap_or_else(|| "the person in charge said no.".to_owned()))
                    }
                }
            }
            Asked::Failed(error) => {
                decision.by = DecidedBy::HandlerFailed;
                Err(format!("the question for permission failed ({error})."))
            }
            Asked::Late => {
                decision.by = DecidedBy::Timeout;
                Err(format!("nobody answered the question for permission within {} seconds.", limit.as_secs()))
            }
            Asked::Aborted => Err("aborted".to_owned()),
        }
    }

    /// The files and commands of a call that was allowed.
    async fn operations(&self, base: &Operations, reach: Reach, target: &Target) -> Operations {
        let mut roots = match reach {
            _ if !self.roots.is_empty() => self.roots.clone(),
            Reach::Anywhere => return base.clone(),
            Reach::Area | Reach::Named => self.area.clone(),
        };
        if self.roots.is_empty() && matches!(reach, Reach::Named) {
            let paths = target.paths.clone();
            let named = move || paths.iter().map(|path| Root::named(&path.path, &path.real)).collect::<Vec<_>>();
            // What was named comes first: it may lie below a link that leads out of the area.
            let mut named = tokio::task::spawn_blocking(named).await.unwrap_or_default();
            named.append(&mut roots);
            roots = named;
        }
        let fence = Arc::new(Fence::new(roots, base.files.clone()));
        let mut operations = base.clone();
        operations.files = Arc::new(FencedFiles(fence.clone()));
        operations.fence = Some(fence);
        operations
    }

    fn grants(&self) -> std::sync::MutexGuard<'_, Grants> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a call that nobody can be asked about does not run, and which option changes that.
fn unasked(tool: &str, target: &Target) -> String {
    let enough = match target.effect {
        Effect::Write if target.paths.iter().all(|path| path.inside) => "\"workspace\"",
        _ => "\"allow\"",
    };
    format!(
        "{tool} needs permission to {}, and this program has nobody who answers. Whoever runs it can change that with the \
         option \"permissions\": a handler, or {enough}.",
        target.effect
    )
}
