//! Siblings, explorations, and what leads from one session to the next.

use std::sync::Arc;

use branchline::session::{AdoptOptions, BranchForm, ExploreOptions, ExplorePrompt, NewSessionOptions, SwitchOptions};
use branchline::{Error, ErrorCode};
use napi_derive::napi;

use crate::bridge::Shared;
use crate::engine::Lifeline;
use crate::failure::guard;
use crate::feed::Feed;
use crate::options;
use crate::outcome::Outcome;
use crate::session::Session;

#[napi]
impl Session {
    #[napi]
    pub fn branch(&self, ticket: u32, options: String, budgets: Vec<u32>) -> napi::Result<()> {
        let mut form: BranchForm = guard(|| options::read(&options))?;
        form.options.budgets = guard(|| self.shared.budgets(&budgets))?;
        self.next(ticket, |session| async move { session.branch(form.at, form.options).await });
        Ok(())
    }

    #[napi]
    pub fn is_sibling_of(&self, other: &Session) -> bool {
        self.session.is_sibling_of(&other.session)
    }

    #[napi]
    pub fn adopt(&self, ticket: u32, winner: &Session, options: String) -> napi::Result<()> {
        let options: AdoptOptions = guard(|| options::read(&options))?;
        let winner = winner.session.clone();
        self.call(ticket, |session| async move {
            let arrived = session.adopt(&winner, options).await?;
            Ok(Outcome::Text(branchline::json::to_string(&arrived)))
        });
        Ok(())
    }

    #[napi]
    pub fn new_session(&self, ticket: u32, options: String) -> napi::Result<()> {
        let options: NewSessionOptions = guard(|| options::read(&options))?;
        self.next(ticket, |session| async move { session.new_session(options).await });
        Ok(())
    }

    #[napi]
    pub fn switch(&self, ticket: u32, path: String, options: String) -> napi::Result<()> {
        let options: SwitchOptions = guard(|| options::read(&options))?;
        self.next(ticket, |session| async move { session.switch(path, options).await });
        Ok(())
    }

    #[napi]
    pub fn import_session(&self, ticket: u32, path: String, options: String) -> napi::Result<()> {
        let options: SwitchOptions = guard(|| options::read(&options))?;
        self.next(ticket, |session| async move { session.import_session(path, options).await });
        Ok(())
    }

    #[napi]
    pub fn explore(&self, ticket: u32, prompts: String, options: String, budgets: Vec<u32>) -> napi::Result<()> {
        let prompts: Vec<ExplorePrompt> = guard(|| options::read(&prompts))?;
        let mut options: ExploreOptions = guard(|| options::read(&options))?;
        options.branch.budgets = guard(|| self.shared.budgets(&budgets))?;
        let (shared, lifeline) = (self.shared.clone(), self.lifeline.clone());
        self.call(ticket, |session| async move {
            let exploration = Arc::new(session.explore(prompts, options).await?);
            Ok(Outcome::Exploration(Exploration { shared, lifeline, exploration }))
        });
        Ok(())
    }
}

/// Dropped with its JavaScript object, which ends what still runs.
#[napi]
pub struct Exploration {
    shared: Arc<Shared>,
    lifeline: Arc<Lifeline>,
    exploration: Arc<branchline::Exploration>,
}

#[napi]
impl Exploration {
    /// The events of all.
    #[napi]
    pub fn feed(&self) -> Feed {
        Feed::exploration(self.shared.clone(), self.exploration.clone())
    }

    /// Waits until all are done; their events have to be read meanwhile.
    #[napi]
    pub fn done(&self, ticket: u32) {
        let done = self.exploration.done();
        self.shared.start(ticket, async move {
            done.await;
            Ok(Outcome::Nothing)
        });
    }

    /// The siblings, in the order of their prompts.
    #[napi]
    pub fn siblings(&self, ticket: u32) {
        let siblings = self.exploration.siblings().iter();
        let sessions = siblings.map(|session| (self.wrap(session.clone()), String::new())).collect();
        self.shared.start(ticket, async move { Ok(Outcome::Explored(sessions)) });
    }

    /// Waits until all are done, discarding events; gives sessions and everything else as JSON.
    #[napi]
    pub fn results(&self, ticket: u32) {
        let exploration = self.exploration.clone();
        let (shared, lifeline) = (self.shared.clone(), self.lifeline.clone());
        self.shared.start(ticket, async move {
            let results = exploration.results().await?;
            let row = |result: branchline::ExploreResult| {
                let json = result.to_json();
                (Session::new(shared.clone(), lifeline.clone(), result.session), json)
            };
            Ok(Outcome::Explored(results.into_iter().map(row).collect()))
        });
    }

    /// Gives the signal now; the wait is until all are idle.
    #[napi]
    pub fn abort(&self, ticket: u32) {
        let idle = self.exploration.abort();
        self.shared.start(ticket, async move {
            idle.await;
            Ok(Outcome::Nothing)
        });
    }

    #[napi]
    pub fn abort_one(&self, prompt: f64) -> napi::Result<()> {
        guard(|| {
            if prompt < 0.0 || prompt.fract() != 0.0 {
                let text = format!("the position of a prompt is a whole number from 0, not {prompt}");
                return Err(Error::new(ErrorCode::InvalidArgument, text));
            }
            self.exploration.abort_one(prompt as usize)
        })
    }

    fn wrap(&self, session: branchline::Session) -> Session {
        Session::new(self.shared.clone(), self.lifeline.clone(), session)
    }
}
