//! The commands of the program, one file for each. Code that several of them share lies beside this folder.

pub(crate) mod check;
pub(crate) mod controller;
pub(crate) mod demo;
pub(crate) mod doc;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod grants;
pub(crate) mod lab;
pub(crate) mod load;
pub(crate) mod node;
pub(crate) mod nodes;
pub(crate) mod objects;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod serve;
pub(crate) mod set;
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod throttle;
pub(crate) mod transfers;
pub(crate) mod what_if;
pub(crate) mod why;
