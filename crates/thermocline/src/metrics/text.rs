//! The metrics as text for people.
