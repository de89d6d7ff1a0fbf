//! The session as JavaScript holds it.

use std::sync::Arc;

use branchline::{Result, SubscribeOptions};
use napi::Env;
use napi::bindgen_prelude::ObjectFinalize;
use napi_derive::napi;
use serde_json::json;

use crate::bridge::Shared;
use crate::engine::Lifeline;
use crate::failure::guard;
use crate::feed::Feed;
use crate::options;
use crate::outcome::{Outcome, SESSION_WEIGHT};
use crate::tree::Tree;

/// Dropped with its JavaScript object; the last handle of a session closes it.
#[napi(custom_finalize)]
pub struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) lifeline: Arc<Lifeline>,
    pub(crate) session: branchline::Session,
}

impl ObjectFinalize for Session {
    fn finalize(self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(-SESSION_WEIGHT).map(drop)
    }
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, lifeline: Arc<Lifeline>, session: branchline::Session) -> Session {
        Session { shared, lifeline, session }
    }

    /// Starts a call on a clone of the handle.
    pub(crate) fn call<F>(&self, ticket: u32, call: impl FnOnce(branchline::Session) -> F)
    where
        F: Future<Output = Result<Outcome>> + Send + 'static,
    {
        self.shared.start(ticket, call(self.session.clone()));
    }

    /// Starts a call that gives another session.
    pub(crate) fn next<F>(&self, ticket: u32, call: impl FnOnce(branchline::Session) -> F)
    where
        F: Future<Output = Result<branchline::Session>> + Send + 'static,
    {
        let (shared, lifeline) = (self.shared.clone(), self.lifeline.clone());
        let next = call(self.session.clone());
        self.shared.start(ticket, async move { Ok(Outcome::Session(Session::new(shared, lifeline, next.await?))) });
    }
}

#[napi]
impl Session {
    #[napi(getter)]
    pub fn id(&self) -> String {
        self.session.id()
    }

    #[napi(getter)]
    pub fn sibling(&self) -> u32 {
        self.session.sibling()
    }

    #[napi(getter)]
    pub fn path(&self) -> Option<String> {
        self.session.path().map(|path| path.to_string_lossy().into_owned())
    }

    #[napi(getter)]
    pub fn cwd(&self) -> String {
        self.session.cwd().to_string_lossy().into_owned()
    }

    #[napi(getter)]
    pub fn leaf(&self) -> Option<String> {
        self.session.leaf()
    }

    #[napi(getter)]
    pub fn name(&self) -> Option<String> {
        self.session.name()
    }

    #[napi(getter)]
    pub fn state(&self) -> napi::Result<String> {
        guard(|| self.shared.text(branchline::json::to_string(&self.session.state())))
    }

    #[napi]
    pub fn tree(&self) -> Tree {
        Tree::new(self.shared.clone(), self.session.tree())
    }

    #[napi]
    pub fn prompt(&self, ticket: u32, text: String, options: String) -> napi::Result<()> {
        let options = guard(|| options::read::<options::Prompt>(&options))?.into();
        let shared = self.shared.clone();
        self.call(ticket, |session| async move {
            let run = session.prompt(text, options).await?;
            Ok(Outcome::Feed(Feed::run(shared, run)))
        });
        Ok(())
    }

    #[napi]
    pub fn events(&self, capacity: Option<u32>) -> Feed {
        let mut options = SubscribeOptions::default();
        if let Some(capacity) = capacity {
            options = options.capacity(capacity as usize);
        }
        Feed::events(self.shared.clone(), self.session.subscribe(options))
    }

    #[napi]
    pub fn steer(&self, ticket: u32, text: String) {
        self.call(ticket, |session| async move { session.steer(text).await.map(nothing) });
    }

    #[napi]
    pub fn follow_up(&self, ticket: u32, text: String) {
        self.call(ticket, |session| async move { session.follow_up(text).await.map(nothing) });
    }

    #[napi]
    pub fn clear_queues(&self, ticket: u32) {
        self.call(ticket, |session| async move {
            let (steering, follow_up) = session.clear_queues().await?;
            Ok(Outcome::Text(json!({"steering": steering, "followUp": follow_up}).to_string()))
        });
    }

    #[napi]
    pub fn abort(&self, ticket: u32) {
        // The signal is given here; only the wait is left to the other thread.
        let idle = self.session.abort();
        self.shared.start(ticket, async move { idle.await.map(nothing) });
    }

    #[napi]
    pub fn wait_idle(&self, ticket: u32) {
        self.call(ticket, |session| async move { session.wait_idle().await.map(nothing) });
    }

    #[napi]
    pub fn navigate(&self, ticket: u32, entry_id: String, options: String) -> napi::Result<()> {
        let options = guard(|| options::read::<options::Navigate>(&options))?.into();
        self.call(ticket, |session| async move {
            let arrived = session.navigate(&entry_id, options).await?;
            Ok(Outcome::Text(branchline::json::to_string(&arrived)))
        });
        Ok(())
    }

    #[napi]
    pub fn fork(&self, ticket: u32, entry_id: String, options: String) -> napi::Result<()> {
        let position = guard(|| options::read::<options::Fork>(&options))?.into();
        let (shared, lifeline) = (self.shared.clone(), self.lifeline.clone());
        self.call(ticket, |session| async move {
            let fork = session.fork(&entry_id, position).await?;
            Ok(Outcome::Fork(Session::new(shared, lifeline, fork.session), fork.editor_text))
        });
        Ok(())
    }

    #[napi]
    pub fn clone_session(&self, ticket: u32) {
        self.next(ticket, |session| async move { session.clone_session().await });
    }

    #[napi]
    pub fn set_label(&self, ticket: u32, entry_id: String, label: Option<String>) {
        self.call(
            ticket,
            |session| async move { session.set_label(&entry_id, label.as_deref()).await.map(Outcome::Text) },
        );
    }

    #[napi]
    pub fn set_name(&self, ticket: u32, name: String) {
        self.call(ticket, |session| async move { session.set_name(&name).await.map(nothing) });
    }

    #[napi]
    pub fn set_model(&self, ticket: u32, name: String) {
        self.call(ticket, |session| async move { session.set_model(&name).await.map(nothing) });
    }

    #[napi]
    pub fn set_thinking_level(&self, ticket: u32, level: String) {
        self.call(ticket, |session| async move { session.set_thinking_level(&level).await.map(nothing) });
    }

    #[napi]
    pub fn set_tools(&self, ticket: u32, names: Vec<String>) {
        self.call(ticket, |session| async move { session.set_tools(names).await.map(nothing) });
    }

    #[napi]
    pub fn append_custom(&self, ticket: u32, custom_type: String, data: Option<String>) -> napi::Result<()> {
        let data = guard(|| data.as_deref().map(options::value).transpose())?;
        self.call(ticket, |session| async move { session.append_custom(custom_type, data).await.map(Outcome::Text) });
        Ok(())
    }

    #[napi]
    pub fn append_custom_message(
        &self,
        ticket: u32,
        custom_type: String,
        content: String,
        display: bool,
        details: Option<String>,
    ) -> napi::Result<()> {
        let content = guard(|| options::value(&content))?;
        let details = guard(|| details.as_deref().map(options::value).transpose())?;
        self.call(ticket, |session| async move {
            let id = session.append_custom_message(custom_type, content, display, details).await?;
            Ok(id.map_or(Outcome::Nothing, Outcome::Text))
        });
        Ok(())
    }

    #[napi]
    pub fn close(&self, ticket: u32) {
        self.call(ticket, |session| async move { session.close().await.map(nothing) });
    }
}

pub(crate) fn nothing((): ()) -> Outcome {
    Outcome::Nothing
}
