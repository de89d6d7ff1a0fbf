//! What a session knows of its project.

use branchline::ResourceOptions;
use branchline::json;
use napi_derive::napi;

use crate::failure::guard;
use crate::options;
use crate::outcome::Outcome;
use crate::session::Session;

#[napi]
impl Session {
    #[napi(getter)]
    pub fn resources(&self) -> napi::Result<String> {
        guard(|| self.shared.text(json::to_string(&*self.session.resources())))
    }

    #[napi]
    pub fn reload_resources(&self, ticket: u32) {
        self.call(ticket, |session| async move {
            let resources = session.reload_resources().await?;
            Ok(Outcome::Text(json::to_string(&*resources)))
        });
    }

    #[napi]
    pub fn set_resources(&self, ticket: u32, options: String) -> napi::Result<()> {
        let options: ResourceOptions = guard(|| options::read(&options))?;
        self.call(ticket, |session| async move {
            let resources = session.set_resources(options).await?;
            Ok(Outcome::Text(json::to_string(&*resources)))
        });
        Ok(())
    }
}
