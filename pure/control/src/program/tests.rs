//! The program on its degenerate cases.

use super::*;
