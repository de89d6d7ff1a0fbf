//! Tells the linker that Node provides the `napi_*` symbols.

fn main() {
    napi_build::setup();
}
