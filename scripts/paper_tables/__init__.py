"""The tables of docs/benchmarks.md, as `scripts/paper-tables` prints them: a file for each kind of table."""
