#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| thermocline::fuzzing::ralt_state(bytes));
