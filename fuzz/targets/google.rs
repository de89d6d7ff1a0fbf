#![no_main]

#[path = "../checks.rs"]
mod checks;
#[path = "../mutate.rs"]
mod mutate;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check("google", data));
libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::answer(data, size, max_size, seed)
});
