//! What a session tells the model of its project (S299–S306, P726, P751, P770–P776).

mod session_support;

use std::path::{Path, PathBuf};

use branchline::providers::scripted::ScriptControl;
use branchline::resources::{Discover, ResourceOptions, Section};
use branchline::{ErrorCode, PromptOptions, Session, SessionOptions, block_on};
use serde_json::{Value, json};
use session_support::{engine, scripted_with};

fn put(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn says(replies: usize) -> Value {
    (0..replies).map(|n| json!({"content": [{"type": "text", "text": n.to_string()}]})).collect()
}

fn prompt(session: &Session, text: &str) {
    let run = block_on(session.prompt(text, PromptOptions::default())).unwrap();
    block_on(run.result()).unwrap();
}

/// The system messages stored so far: name and text of each section.
fn stored(session: &Session) -> Vec<Vec<(String, Value)>> {
    let lines = session_support::lines(&session.path().unwrap());
    let systems = lines.iter().filter(|line| line["message"]["role"] == "system");
    systems
        .map(|line| {
            let sections = line["message"]["sections"].as_object().cloned().unwrap_or_default();
            sections.into_iter().collect()
        })
        .collect()
}

fn names(sections: &[(String, Value)]) -> Vec<&str> {
    sections.iter().map(|(name, _)| name.as_str()).collect()
}

fn text<'a>(sections: &'a [(String, Value)], name: &str) -> &'a str {
    sections.iter().find(|(known, _)| known == name).and_then(|(_, text)| text.as_str()).unwrap_or_default()
}

fn user_texts(control: &ScriptControl) -> Vec<String> {
    let last = control.requests().pop().unwrap();
    last.messages.iter().filter(|message| message.role().name() == "user").map(|message| message.text("")).collect()
}

/// A project with everything in it.
fn project(dir: &Path) -> PathBuf {
    let cwd = dir.join("project");
    put(cwd.join("AGENTS.md"), "Use tabs.\n");
    put(cwd.join("skills/deploy/SKILL.md"), "---\ndescription: deploy <it> & rest\n---\nPush.\n");
    put(cwd.join("prompts/fix.md"), "Fix $1 now.");
    cwd
}

/// By default a project says nothing to the model.
#[test]
fn nothing_is_read_unless_asked() {
    let dir = tempfile::tempdir().unwrap();
    let cwd = project(dir.path());
    put(cwd.join(".pi/SYSTEM.md"), "hostile");
    put(cwd.join(".pi/skills/s/SKILL.md"), "---\ndescription: hostile\n---\n");
    let engine = engine(dir.path());
    let (session, control) = scripted_with(&engine, &cwd, says(1), |options| options);
    prompt(&session, "/fix it");
    let stored = stored(&session);
    assert_eq!(names(&stored[0]), ["preamble", "tools", "rules", "docs", "cwd"]);
    assert!(!stored[0].iter().any(|(_, text)| text.as_str().unwrap().contains("hostile")));
    assert_eq!(user_texts(&control), ["/fix it"]);
}

/// P770–P776, S300: order, tags, escapes; and the order of the request.
#[test]
fn s300_sections_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let cwd = project(dir.path());
    let engine = engine(dir.path());
    let mut wanted = ResourceOptions::default();
    wanted.context_files = true;
    wanted.skills = vec!["skills".into()];
    wanted.append_system_prompt = Some("Be kind.".into());
    wanted.documentation = Some("https://example.org/manual".into());
    wanted.guidelines = vec!["Never use goto.".into(), "Never use goto.".into()];
    wanted.sections = vec![Section { name: "team".into(), text: "blue".into() }];
    let (session, _) = scripted_with(&engine, &cwd, says(2), |options| options.resources(wanted));
    prompt(&session, "go");
    prompt(&session, "again");
    let stored = stored(&session);
    assert_eq!(stored.len(), 1, "nothing is said twice");
    let sections = &stored[0];
    let order = ["preamble", "tools", "rules", "docs", "addendum", "project_context", "skills", "cwd", "team"];
    assert_eq!(names(sections), order);
    for (name, text) in &sections[1..] {
        let text = text.as_str().unwrap();
        assert!(text.starts_with(&format!("<{name}>\n")) && text.ends_with(&format!("\n</{name}>")), "{text}");
    }
    let agents = cwd.canonicalize().unwrap().join("AGENTS.md");
    let context = text(sections, "project_context");
    assert!(
        context.contains(&format!(
            "<project_instructions path=\"{}\">\nUse tabs.\n</project_instructions>",
            agents.display()
        )),
        "{context}"
    );
    assert!(text(sections, "skills").contains("<description>deploy &lt;it&gt; &amp; rest</description>"));
    assert!(text(sections, "docs").contains("https://example.org/manual"));
    let rules = text(sections, "rules");
    assert_eq!(rules.matches("goto").count(), 1);
    assert!(rules.contains("shell to list"), "bash without grep, find and ls: {rules}");
}

/// S299, S306: what changes on disk is told as a difference when the host asks for it, and only then.
#[test]
fn s299_changes_are_told_as_differences() {
    let dir = tempfile::tempdir().unwrap();
    let cwd = project(dir.path());
    let engine = engine(dir.path());
    let (session, _) = scripted_with(&engine, &cwd, says(3), |options| options.context_files(true).skill("skills"));
    prompt(&session, "one");
    put(cwd.join("AGENTS.md"), "Use spaces.");
    std::fs::remove_dir_all(cwd.join("skills")).unwrap();
    prompt(&session, "two");
    assert_eq!(stored(&session).len(), 1);
    let resources = block_on(session.reload_resources()).unwrap();
    assert_eq!((resources.skills.len(), resources.diagnostics.len()), (0, 1));
    prompt(&session, "three");
    let stored = stored(&session);
    assert_eq!(stored.len(), 2);
    assert_eq!(names(&stored[1]), ["project_context", "skills"]);
    assert!(text(&stored[1], "project_context").contains("Use spaces."));
    assert_eq!(stored[1][1].1, Value::Null);
}

/// S299: a session that is opened again says only what is different now, and a fork keeps what was read.
#[test]
fn s299_reopening_and_forking() {
    let dir = tempfile::tempdir().unwrap();
    let cwd = project(dir.path());
    let engine = engine(dir.path());
    let (session, _) = scripted_with(&engine, &cwd, says(4), |options| options.context_files(true));
    prompt(&session, "one");
    let path = session.path().unwrap();
    block_on(session.close()).unwrap();
    let options = SessionOptions::new("").model("scripted/test").prompt_template("prompts").context_files(true);
    let again = block_on(engine.open_session(&path, options)).unwrap();
    prompt(&again, "two");
    assert_eq!(stored(&again).len(), 1);
    std::fs::remove_file(cwd.join("AGENTS.md")).unwrap();
    let copy = block_on(again.clone_session()).unwrap();
    prompt(&copy, "three");
    assert_eq!(stored(&copy).len(), 1);
    assert_eq!(copy.resources().prompt_templates.len(), 1);
}

/// A project is trusted for itself: a session file of another project that is opened in its place finds no trust.
#[test]
fn trust_stays_in_its_project() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let place = |name: &str| {
        let cwd = dir.path().join(name);
        put(cwd.join(format!(".pi/skills/of-{name}/SKILL.md")), "---\ndescription: d\n---\n");
        put(cwd.join("AGENTS.md"), name);
        cwd
    };
    let (one, two) = (place("one"), place("two"));
    let (theirs, _) = scripted_with(&engine, &two, says(1), |options| options);
    prompt(&theirs, "go");
    let path = theirs.path().unwrap();
    block_on(theirs.close()).unwrap();
    let trusting = |options: SessionOptions| options.discover(Discover::Project).context_files(true);
    let (session, _) = scripted_with(&engine, &one, says(1), trusting);
    let skills = |session: &Session| -> Vec<String> {
        let found = session.resources();
        let ours = found.skills.iter().filter(|skill| skill.path.starts_with(dir.path().canonicalize().unwrap()));
        ours.map(|skill| skill.name.clone()).collect()
    };
    assert_eq!(skills(&session), ["of-one"]);
    let other = block_on(session.switch(&path, Default::default())).unwrap();
    assert!(skills(&other).is_empty());
    assert_eq!(other.resources().context_files.last().unwrap().content, "two");
}

/// P772: a custom prompt leaves only what is about the project.
#[test]
fn p772_a_prompt_of_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let cwd = project(dir.path());
    let engine = engine(dir.path());
    let (session, _) = scripted_with(&engine, &cwd, says(1), |options| {
        options.system_prompt("Mine.").context_files(true).append_system_prompt("More.")
    });
    prompt(&session, "go");
    assert_eq!(names(&stored(&session)[0]), ["preamble", "addendum", "project_context", "cwd"]);
}

/// P726, P751: prompts, steering and follow-ups are expanded; the host can say not to.
#[test]
fn p751_calls_in_prompts() {
    let dir = tempfile::tempdir().unwrap();
    let cwd = project(dir.path());
    let engine = engine(dir.path());
    let known = |options: SessionOptions| options.skill("skills").prompt_template("prompts");
    let (session, control) = scripted_with(&engine, &cwd, says(9), known);
    block_on(session.steer("/fix steered")).unwrap();
    block_on(session.follow_up("/fix later")).unwrap();
    prompt(&session, "/fix \"the parser\"");
    assert_eq!(user_texts(&control), ["Fix the parser now.", "Fix steered now.", "Fix later now."]);
    prompt(&session, "/skill:deploy today");
    let last = user_texts(&control).pop().unwrap();
    assert!(last.contains("Push.\n</skill>\n\ntoday"), "{last}");
    let run = block_on(session.prompt("/fix raw", PromptOptions::default().expand(false))).unwrap();
    block_on(run.result()).unwrap();
    assert_eq!(user_texts(&control).pop().unwrap(), "/fix raw");
    std::fs::remove_file(cwd.join("skills/deploy/SKILL.md")).unwrap();
    let error = block_on(session.prompt("/skill:deploy", PromptOptions::default())).err().unwrap();
    assert_eq!(error.code(), ErrorCode::StorageFailed);
}

/// P771: names of sections.
#[test]
fn p771_bad_section_names_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    for name in ["preamble", "", "Upper", "1st", "a b", "a>"] {
        let mut wanted = ResourceOptions::default();
        wanted.sections = vec![Section { name: name.into(), text: "x".into() }];
        let error = block_on(engine.create_session(SessionOptions::new(dir.path()).resources(wanted))).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument, "{name}");
    }
}

/// S305, P777: a forced prompt is the whole prompt of one run, also after a tool call, and stored nowhere; what the session
/// would say is stored all the same. The next run has the session's own again.
#[test]
fn s305_a_forced_prompt() {
    let dir = tempfile::tempdir().unwrap();
    let cwd = project(dir.path());
    let engine = engine(dir.path());
    let call = json!([{"content": [{"type": "toolCall", "id": "c1", "name": "ls", "arguments": {}}]},
        {"content": [{"type": "text", "text": "a"}]}, {"content": [{"type": "text", "text": "b"}]}]);
    let (session, control) = scripted_with(&engine, &cwd, call, |options| options.tools(["ls"]));
    let forced = PromptOptions::default().forced_prompt("Speak like a pirate.");
    block_on(block_on(session.prompt("one", forced)).unwrap().result()).unwrap();
    let requests = control.requests();
    for request in &requests[..2] {
        let systems: Vec<_> = request.messages.iter().filter(|message| message.role().name() == "system").collect();
        assert_eq!((systems.len(), systems[0].text("").as_str()), (1, "Speak like a pirate."));
        assert!(systems[0].get("sections").is_none() && request.messages[0].role().name() == "system");
    }
    assert_eq!(names(&stored(&session)[0]), ["preamble", "tools", "rules", "docs", "cwd"]);
    assert_eq!(requests[1].messages.last().unwrap().role().name(), "toolResult", "tools stay");
    assert!(!std::fs::read_to_string(session.path().unwrap()).unwrap().contains("pirate"));
    prompt(&session, "three");
    let last = control.requests().pop().unwrap();
    assert!(last.messages[0].get("sections").is_some() && last.messages[0].text("").is_empty());
    assert_eq!(stored(&session).len(), 1, "nothing is said twice");
}

/// S238, S305: a message of the host may have a prompt of its own run, too, and is not expanded.
#[test]
fn s305_a_forced_prompt_for_a_message_of_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let cwd = project(dir.path());
    let engine = engine(dir.path());
    let script = json!([{"content": [{"type": "text", "text": "a"}]}, {"content": [{"type": "text", "text": "b"}]}]);
    let (session, control) = scripted_with(&engine, &cwd, script, |options| options);
    let say = |options: PromptOptions| {
        let message = branchline::CustomMessage::new("note", "/fix this");
        block_on(block_on(session.prompt_custom(message, options)).unwrap().result()).unwrap();
        control.requests().pop().unwrap().messages
    };
    let sent = say(PromptOptions::default().forced_prompt("Speak like a pirate."));
    let systems: Vec<_> = sent.iter().filter(|message| message.role().name() == "system").collect();
    assert_eq!((systems.len(), systems[0].text("").as_str()), (1, "Speak like a pirate."));
    assert!(sent.last().unwrap().text("").contains("/fix this"));
    assert!(say(PromptOptions::default()).iter().all(|message| !message.text("").contains("pirate")));
}
