//! What holds whatever is observed.
