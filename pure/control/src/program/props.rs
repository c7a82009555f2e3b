//! The program against a solver.
