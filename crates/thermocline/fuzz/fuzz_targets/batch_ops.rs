#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| thermocline::fuzzing::batch_ops(bytes));
