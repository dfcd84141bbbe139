#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| thermocline_bench::fuzzing::settings(bytes));
