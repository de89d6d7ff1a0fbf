//! Another program appends in the very moment between our look at the file and our write. pi takes no lock, so it can.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use branchline::message::Message;
use branchline::tree::*;

const FOREIGN: &str = r#"{"type":"custom","customType":"x","id":"foreign","parentId":null,"timestamp":""}"#;

/// The operating system's files, with an intruder who writes a line just before our next append when armed.
#[derive(Debug, Clone, Default)]
struct Intruded {
    armed: Arc<AtomicBool>,
}

#[derive(Debug)]
struct IntrudedFile {
    file: Box<dyn StorageFile>,
    intruder: Option<Box<dyn StorageFile>>,
    armed: Arc<AtomicBool>,
}

impl Storage for Intruded {
    fn open(&self, path: &Path, mode: FileMode) -> io::Result<Box<dyn StorageFile>> {
        let file = OsStorage.open(path, mode)?;
        let intruder = match mode {
            FileMode::Read => None,
            FileMode::Append | FileMode::CreateNew => Some(OsStorage.open(path, FileMode::Append)?),
        };
        Ok(Box::new(IntrudedFile { file, intruder, armed: self.armed.clone() }))
    }
    fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        OsStorage.facts(path)
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        OsStorage.create_dir_all(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsStorage.rename(from, to)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        OsStorage.sync_dir(path)
    }
    fn copy_permissions(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsStorage.copy_permissions(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        OsStorage.remove(path)
    }
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        OsStorage.canonicalize(path)
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        OsStorage.list(directory)
    }
}

impl StorageFile for IntrudedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(intruder) = &self.intruder
            && self.armed.swap(false, Ordering::SeqCst)
        {
            intruder.append(format!("{FOREIGN}\n").as_bytes())?;
        }
        self.file.append(bytes)
    }
    fn appended_to(&self) -> io::Result<Option<u64>> {
        self.file.appended_to()
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
    fn facts(&self) -> io::Result<FileFacts> {
        self.file.facts()
    }
}

#[test]
fn s308_a_line_that_slips_in_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Intruded::default();
    let options = CreateOptions {
        session_dir: Some(dir.path().to_path_buf()),
        storage: Arc::new(storage.clone()),
        ..Default::default()
    };
    let tree = Tree::create("/work/demo", options).unwrap();
    let mut cursor = Cursor::new(tree.clone());
    let first = cursor.append_message(&Message::user("one", vec![], 1)).unwrap();
    storage.armed.store(true, Ordering::SeqCst);
    let second = cursor.append_label(&first, Some("mine")).unwrap();
    let third = cursor.append_message(&Message::user("three", vec![], 3)).unwrap();
    assert!(!storage.armed.load(Ordering::SeqCst), "the intruder was there");

    let ids: Vec<String> = tree.entries().map(|entry| entry.unwrap().id().to_owned()).collect();
    assert_eq!(ids, [&*first, "foreign", &second, &third]);
    for id in &ids {
        let entry = tree.entry(id).unwrap().unwrap();
        assert_eq!(entry.string("id").as_deref(), Some(&**id), "each id leads to its own line");
    }
    assert_eq!(tree.branch(cursor.leaf()).ids().collect::<Vec<_>>(), [first.as_str(), &second, &third]);
    assert_eq!(tree.label(&first).unwrap().text, "mine");
}
