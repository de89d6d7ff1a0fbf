//! JSON text as session files hold it (rules S1–S6): JavaScript's numbers and escapes, any depth, any length.
