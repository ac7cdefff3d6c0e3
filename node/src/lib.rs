//! The Korum server, in the order in which a request passes through it.

#![deny(unsafe_code)]

pub mod config;
pub mod env;
pub mod executor;
pub mod server;
pub mod node;
pub mod net;
pub mod dispatch;
pub mod command;
pub mod store;
pub mod replication;
pub mod script;
pub mod cluster;
pub mod rebalance;
pub mod admin;
