//! Storing keys and logins in `auth.json` (P31, P32).

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use branchline::host::{HostLogins, Notice, RequestKind, requests};
use branchline::providers::{Auth, KeyOptions, Login, LoginFuture, LoginSource, StoredKey};
use branchline::{Engine, EngineOptions, ErrorCode, block_on};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

const CLAUDE: &str = "anthropic/claude-fable-5";

fn keys(file: &Path) -> KeyOptions {
    KeyOptions::default().environment(false).auth_file(file)
}

fn engine(keys: KeyOptions) -> Engine {
    Engine::new(EngineOptions::default().worker_threads(2).keys(keys)).unwrap()
}

fn resolve(engine: &Engine, name: &str) -> branchline::Result<Auth> {
    let model = engine.find_model(name).unwrap().model;
    block_on(engine.credentials().resolve(&model))
}

fn key(engine: &Engine, name: &str) -> String {
    let auth = resolve(engine, name).unwrap();
    auth.key.map(|key| key.expose_secret().to_owned()).unwrap_or_default()
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn lock_of(file: &Path) -> PathBuf {
    PathBuf::from(format!("{}.lock", file.display()))
}

/// P31: the file and its directory appear for their owner only; what was there stays as it was, in its order.
#[test]
fn p31_storing_keys() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent/auth.json");
    let engine = engine(keys(&file));
    assert_eq!(block_on(engine.stored_keys()).unwrap(), []);
    assert!(!file.exists() && !file.parent().unwrap().exists(), "a look makes nothing");
    assert!(!block_on(engine.forget_stored("anthropic")).unwrap());
    block_on(engine.store_key("anthropic", StoredKey::new("k1"))).unwrap();
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        text, "{\n  \"anthropic\": {\n    \"type\": \"api_key\",\n    \"key\": \"k1\"\n  }\n}",
        "as pi writes it"
    );
    assert_eq!(key(&engine, CLAUDE), "k1");

    let theirs = json!({
        "zzz": {"type": "of another program", "x": [1, 2.5, {"y": null}]},
        "openai": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1893456000000_u64, "more": true},
        "anthropic": {"type": "api_key", "key": "k1"},
        "aaa": 7,
    });
    std::fs::write(&file, format!("\u{feff}{theirs}")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let stored = StoredKey::new("k2").variable("CLOUDFLARE_ACCOUNT_ID", "acc");
    block_on(engine.store_key("anthropic", stored)).unwrap();
    block_on(engine.store_key("google", StoredKey::configured("$G"))).unwrap();
    let now = read(&file);
    let names: Vec<&str> = now.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["zzz", "openai", "anthropic", "aaa", "google"]);
    let wanted = json!({"type": "api_key", "key": "k2", "env": {"CLOUDFLARE_ACCOUNT_ID": "acc"}});
    assert_eq!((&now["anthropic"], &now["google"]["key"]), (&wanted, &json!("$G")));
    assert_eq!((&now["zzz"], &now["openai"], &now["aaa"]), (&theirs["zzz"], &theirs["openai"], &theirs["aaa"]));
    assert_eq!(mode(&file), 0o600);
    assert_eq!(key(&engine, CLAUDE), "k2");
    let listed = block_on(engine.stored_keys()).unwrap();
    let listed: Vec<(&str, &str)> = listed.iter().map(|it| (it.provider.as_str(), it.kind.as_str())).collect();
    assert_eq!(listed[..3], [("zzz", "of another program"), ("openai", "oauth"), ("anthropic", "api_key")]);
    assert!(block_on(engine.forget_stored("anthropic")).unwrap());
    assert_eq!(read(&file).get("anthropic"), None);
    assert_eq!(key(&engine, CLAUDE), "");
    let left: Vec<_> = std::fs::read_dir(file.parent().unwrap()).unwrap().flatten().map(|it| it.file_name()).collect();
    assert_eq!(left, ["auth.json"], "neither locks nor temporary files stay");
}

/// P34: a stored key is the key, whatever characters it has.
#[test]
fn p34_stored_keys_stand_for_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(keys(&dir.path().join("auth.json")).commands(true));
    for text in ["!echo no", "$HOME", "a$b$$c", "$!x", "${X}", "plain"] {
        block_on(engine.store_key("anthropic", StoredKey::new(text))).unwrap();
        assert_eq!(key(&engine, CLAUDE), text);
    }
}

/// What cannot be understood is somebody's keys all the same.
#[test]
fn p31_a_broken_file_stays() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("auth.json");
    let engine = engine(keys(&file));
    for broken in ["{\"a\": \"secret-x", "[1]"] {
        std::fs::write(&file, broken).unwrap();
        let error = block_on(engine.store_key("anthropic", StoredKey::new("k"))).unwrap_err();
        assert_eq!(error.code(), ErrorCode::StorageFailed);
        assert!(!error.to_string().contains("secret-x"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), broken);
        assert!(!lock_of(&file).exists());
    }
    std::fs::write(&file, "").unwrap();
    block_on(engine.store_key("anthropic", StoredKey::new("k"))).unwrap();
    let none = self::engine(KeyOptions::default().environment(false));
    for error in [
        block_on(none.store_key("anthropic", StoredKey::new("k"))).unwrap_err(),
        block_on(engine.store_key(" ", StoredKey::new("k"))).unwrap_err(),
    ] {
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
    }
}

/// P31: the lock is on the real file, and that one is replaced; a link stays a link.
#[test]
fn p31_links_and_locks() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real/keys.json"), dir.path().join("auth.json"));
    std::fs::create_dir(dir.path().join("real")).unwrap();
    symlink("real/keys.json", &link).unwrap();
    let engine = engine(keys(&link));
    block_on(engine.store_key("anthropic", StoredKey::new("k1"))).unwrap();
    assert_eq!(read(&real)["anthropic"]["key"], "k1");
    // Somebody works on it: the change waits until they are done.
    let lock = lock_of(&real.canonicalize().unwrap());
    std::fs::create_dir(&lock).unwrap();
    let seen = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            let seen = read(&real)["anthropic"]["key"].clone();
            std::fs::remove_dir(&lock).unwrap();
            seen
        });
        block_on(engine.store_key("anthropic", StoredKey::new("k2"))).unwrap();
        theirs.join().unwrap()
    });
    assert_eq!((seen, &read(&real)["anthropic"]["key"]), (json!("k1"), &json!("k2")));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    // A lock that was left behind half a minute ago belongs to nobody.
    std::fs::create_dir(&lock).unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(31);
    std::fs::File::open(&lock).unwrap().set_modified(old).unwrap();
    block_on(engine.store_key("anthropic", StoredKey::new("k3"))).unwrap();
    assert_eq!(read(&real)["anthropic"]["key"], "k3");
    assert!(!lock.exists());
    // A reader does not wait for ever, and takes no part of the lock away.
    std::fs::create_dir(&lock).unwrap();
    assert_eq!(key(&engine, CLAUDE), "k3");
    assert!(lock.exists());
}

/// P31: programs that store at the same time lose nothing of each other.
#[test]
fn p31_many_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("auth.json");
    let engines = [engine(keys(&file)), engine(keys(&file))];
    std::thread::scope(|scope| {
        for n in 0..12 {
            let engine = &engines[n % 2];
            scope.spawn(move || {
                block_on(engine.store_key(&format!("p{n}"), StoredKey::new(format!("k{n}")))).unwrap();
            });
        }
    });
    let now = read(&file);
    assert_eq!(now.as_object().unwrap().len(), 12);
    assert!((0..12).all(|n| now[format!("p{n}")]["key"] == format!("k{n}")));
}

/// Makes logins anew: the n-th time with the token `new-n`.
struct Logins {
    asked: AtomicUsize,
    takes: Duration,
    answer: Mutex<Result<u64, String>>,
}

impl LoginSource for Logins {
    fn refresh(&self, login: Login) -> LoginFuture {
        let n = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let (takes, answer) = (self.takes, self.answer.lock().unwrap().clone());
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            let mut entry = login.entry;
            entry.insert("access".to_owned(), format!("new-{n}").into());
            entry.insert("expires".to_owned(), answer?.into());
            Ok(entry)
        })
    }
}

fn now_ms() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64
}

fn logins(takes: u64, answer: Result<u64, String>) -> Arc<Logins> {
    Arc::new(Logins { asked: AtomicUsize::new(0), takes: Duration::from_millis(takes), answer: Mutex::new(answer) })
}

fn stored_login(file: &Path, minutes: i64) {
    let expires = now_ms() as i64 + minutes * 60_000;
    let entries = json!({"other": 1, "anthropic": {"type": "oauth", "access": "old", "refresh": "r", "expires": expires, "mine": "x"}});
    std::fs::write(file, entries.to_string()).unwrap();
}

/// P32: a login is made anew when fewer than five minutes remain, once, and stored.
#[test]
fn p32_logins_are_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("auth.json");
    let source = logins(50, Ok(now_ms() + 3_600_000));
    let engines = [engine(keys(&file).logins(source.clone())), engine(keys(&file).logins(source.clone()))];
    stored_login(&file, 6);
    let auth = resolve(&engines[0], CLAUDE).unwrap();
    assert_eq!((auth.key.unwrap().expose_secret(), auth.bearer), ("old", true), "it is good for six minutes");
    stored_login(&file, 4);
    let tokens: Vec<String> = std::thread::scope(|scope| {
        let ask = |n: usize| engines.get(n % 2).map(|engine| scope.spawn(move || key(engine, CLAUDE)));
        (0..6).filter_map(ask).collect::<Vec<_>>().into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!((tokens, source.asked.load(Ordering::SeqCst)), (vec!["new-1".to_owned(); 6], 1));
    let now = read(&file);
    assert_eq!((&now["anthropic"]["access"], &now["anthropic"]["mine"]), (&json!("new-1"), &json!("x")));
    assert_eq!((now.as_object().unwrap().keys().next().unwrap().as_str(), mode(&file)), ("other", 0o600));
    assert!(engines[0].available_models().iter().any(|model| model.provider == "anthropic"), "P36");
    // A token goes where its provider is and nowhere else.
    let mut elsewhere = branchline::providers::Model::new("anthropic", "m", "anthropic-messages");
    elsewhere.base_url = "https://evil.example".to_owned();
    let error = block_on(engines[0].credentials().resolve(&elsewhere)).unwrap_err();
    assert!(error.message().contains("another address"), "{error}");
}

/// P32: what was begun is finished and stored, whoever asked for it.
#[test]
fn p32_an_abort_does_not_lose_a_login() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("auth.json");
    stored_login(&file, 1);
    let source = logins(300, Ok(now_ms() + 3_600_000));
    let engine = engine(keys(&file).logins(source.clone()));
    let model = engine.find_model(CLAUDE).unwrap().model;
    let credentials = engine.credentials();
    let mut asked = credentials.resolve(&model);
    let begun = std::time::Instant::now();
    while source.asked.load(Ordering::SeqCst) == 0 {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(asked.as_mut().poll(&mut context).is_pending(), "it is not made anew yet");
        std::thread::sleep(Duration::from_millis(1));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    drop(asked);
    while read(&file)["anthropic"]["access"] != "new-1" {
        assert!(begun.elapsed() < Duration::from_secs(20), "it was given up");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(key(&engine, CLAUDE), "new-1");
    assert_eq!(source.asked.load(Ordering::SeqCst), 1);
}

/// P32: a refresh that fails leaves the file alone; a token that still lives is used up.
#[test]
fn p32_failures() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("auth.json");
    let source = logins(0, Err("the service said no".to_owned()));
    let engine = engine(keys(&file).logins(source));
    stored_login(&file, 2);
    assert_eq!(key(&engine, CLAUDE), "old");
    stored_login(&file, -2);
    let before = std::fs::metadata(&file).unwrap().ino();
    let error = resolve(&engine, CLAUDE).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NoCredentials);
    assert!(error.message().contains("the service said no") && error.message().contains("log in again"), "{error}");
    assert_eq!(std::fs::metadata(&file).unwrap().ino(), before);
    assert!(!lock_of(&file).exists());
    // A login that the host stores itself.
    let entry = json!({"access": "fresh", "refresh": "r", "expires": now_ms() + 3_600_000});
    let login = Login::new("anthropic", entry.as_object().cloned().unwrap());
    assert!(!format!("{login:?}").contains("fresh"));
    block_on(engine.store_login(login)).unwrap();
    assert_eq!(read(&file)["anthropic"]["type"], "oauth");
    assert_eq!(key(&engine, CLAUDE), "fresh");
}

/// A source that stores something itself, before it gives a future and in it.
struct Storing {
    engine: Mutex<Option<branchline::Engine>>,
    elsewhere: branchline::Engine,
    told: Mutex<Vec<ErrorCode>>,
}

impl LoginSource for Storing {
    fn refresh(&self, login: Login) -> LoginFuture {
        let engine = self.engine.lock().unwrap().clone().unwrap();
        block_on(self.elsewhere.store_key("beside", StoredKey::new("k"))).unwrap();
        let refused = [
            block_on(engine.forget_stored("other")).unwrap_err(),
            block_on(engine.store_key("other", StoredKey::new("k"))).unwrap_err(),
            block_on(engine.stored_keys()).unwrap_err(),
        ];
        self.told.lock().unwrap().extend(refused.map(|error| error.code()));
        // Another thread is another writer: it waits until this is over.
        let later = engine.clone();
        std::thread::spawn(move || block_on(later.store_key("later", StoredKey::new("l"))).unwrap());
        Box::pin(async move {
            let error = engine.store_login(login.clone()).await.unwrap_err();
            let mut entry = login.entry;
            entry.insert("access".to_owned(), error.to_string().into());
            entry.insert("expires".to_owned(), (now_ms() + 3_600_000).into());
            Ok(entry)
        })
    }
}

/// P32: a source of logins that stores into the file which is locked for it hears so at once, and does not wait for itself.
#[test]
fn p32_a_source_does_not_wait_for_itself() {
    let (dir, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = dir.path().join("auth.json");
    stored_login(&file, -2);
    let source = Arc::new(Storing {
        engine: Mutex::default(),
        elsewhere: engine(keys(&beside.path().join("auth.json"))),
        told: Mutex::default(),
    });
    let engine = engine(keys(&file).logins(source.clone()));
    *source.engine.lock().unwrap() = Some(engine.clone());
    let token = key(&engine, CLAUDE);
    assert!(token.contains("under the lock") && token.contains("auth.json"), "{token}");
    assert_eq!(*source.told.lock().unwrap(), [ErrorCode::WouldDeadlock; 3]);
    let begun = std::time::Instant::now();
    while read(&file).get("later").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(20), "another thread waits and then stores");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(read(&file)["other"], 1, "and what was refused did nothing");
    source.engine.lock().unwrap().take();
}

/// P32: a host in another language makes logins anew by requests. The source may be changed while the engine runs.
#[test]
fn p32_logins_by_requests() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("auth.json");
    let engine = engine(keys(&file));
    stored_login(&file, -2);
    let error = resolve(&engine, CLAUDE).unwrap_err();
    assert!(error.message().contains("no source of logins"), "{error}");
    let (asker, questions) = requests();
    engine.set_login_source(Some(Arc::new(HostLogins::new(asker, 4))));
    let ask = |answer: &dyn Fn(branchline::host::Request)| {
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| resolve(&engine, CLAUDE));
            let Some(Notice::Asked(request)) = block_on(questions.next()) else { panic!("nobody asks") };
            answer(request);
            asking.join().unwrap()
        })
    };
    let failed = ask(&|request| request.fail("the door is shut").unwrap()).unwrap_err();
    assert!(failed.message().contains("the door is shut"), "{failed}");
    let failed = ask(&drop).unwrap_err();
    assert!(failed.message().contains("gave no answer"), "{failed}");
    let auth = ask(&|request| {
        assert_eq!((request.kind(), request.name(), request.target()), (RequestKind::Login, "anthropic", 4));
        assert_eq!(request.arguments()["login"]["refresh"], "r");
        assert!(!format!("{request:?}").contains("old"), "no secrets");
        let mut entry = request.arguments()["login"].clone();
        let error = request.complete(json!({"access": "sk-x"})).unwrap_err();
        assert!(error.code() == ErrorCode::InvalidArgument && !error.message().contains("sk-x"), "{error}");
        entry["access"] = "new".into();
        entry["expires"] = (now_ms() + 3_600_000).into();
        entry.as_object_mut().unwrap().remove("type"); // it stays a login all the same
        request.complete(entry).unwrap();
    });
    let auth = auth.unwrap();
    assert_eq!((auth.key.unwrap().expose_secret(), auth.bearer), ("new", true));
    let now = read(&file);
    assert_eq!((&now["anthropic"]["type"], &now["anthropic"]["mine"]), (&json!("oauth"), &json!("x")));
    assert_eq!(key(&engine, CLAUDE), "new");

    // The host is gone: that is told.
    stored_login(&file, -2);
    drop(questions);
    let error = resolve(&engine, CLAUDE).unwrap_err();
    assert!(error.message().contains("takes no more questions"), "{error}");
    engine.set_login_source(None);
    assert!(resolve(&engine, CLAUDE).unwrap_err().message().contains("no source of logins"));
}
