//! Link arguments of libbranchline.so.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    match os.as_str() {
        "linux" => {
            // Programs record this name, so that a library with another ABI is never taken for this one.
            println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbranchline.so.0");
            // Worker threads may outlive dlclose(): the code they run must stay mapped.
            println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        }
        "macos" => println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libbranchline.0.dylib"),
        _ => {}
    }
}
