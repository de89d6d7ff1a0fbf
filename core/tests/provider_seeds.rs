//! The seeds of the fuzz targets, as an ordinary test.

#[path = "../../fuzz/checks.rs"]
mod checks;

#[test]
fn every_seed_of_every_target() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    let mut count = 0;
    for target in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = target.file_name().unwrap().to_string_lossy().into_owned();
        for seed in std::fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().path()) {
            let data = std::fs::read(&seed).unwrap();
            checks::check(&name, &data);
            // Every beginning of it, too: connections break off anywhere.
            for end in (0..data.len()).step_by(7) {
                checks::check(&name, &data[..end]);
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}
