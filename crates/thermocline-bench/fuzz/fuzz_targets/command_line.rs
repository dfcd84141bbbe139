#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| thermocline_bench::fuzzing::command_line(bytes));
