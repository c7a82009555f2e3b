//! What a control interval costs: the whole of Maestro's law over 10 to 1,000 applications with 16 ports each, and of that the linear
//! program. The budget is 2 ms for 1,000.

fn main() {}
