//! Makes a function of each Rust block in README.md and docs/*.md, for `src/main.rs` to compile and run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    println!("cargo::rerun-if-changed={}", root.join("docs").display());
    let docs = fs::read_dir(root.join("docs")).expect("docs");
    pages.extend(
        docs.map(|file| file.expect("a page").path()).filter(|path| path.extension().is_some_and(|it| it == "md")),
    );
    pages.sort();
    let mut code = String::new();
    let mut table = String::new();
    for page in pages {
        println!("cargo::rerun-if-changed={}", page.display());
        let name = page.file_name().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&page).expect("a page");
        let mut lines = text.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            if line != "```rust" {
                continue;
            }
            let body: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            let function = format!("{}_{}", name.replace(['.', '-'], "_").to_lowercase(), at + 1);
            writeln!(code, "pub(crate) async fn {function}(engine: Engine, session: Session) -> Outcome {{")
                .expect("memory");
            writeln!(code, "{}\nOk(())\n}}", body.join("\n")).expect("memory");
            writeln!(table, "(\"{name}:{}\", |engine, session| Box::pin({function}(engine, session))),", at + 1)
                .expect("memory");
        }
    }
    writeln!(code, "pub(crate) const ALL: &[(&str, Snippet)] = &[\n{table}];").expect("memory");
    let out = PathBuf::from(env::var("OUT_DIR").expect("OUT_DIR")).join("snippets.rs");
    fs::write(out, code).expect("a file");
}
