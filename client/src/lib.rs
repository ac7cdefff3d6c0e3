//! The Korum client: every key's place is computed here, so a request goes straight to the node that serves it.
//!
//! ```no_run
//! # async fn example() -> Result<(), korum_client::Error> {
//! use korum_client::Client;
//! use std::time::Duration;
//!
//! // Any node is a way in; the others are found through it.
//! let client = Client::connect(["127.0.0.1:6379"]).await?;
//!
//! client.set("greeting", "hello").await?;
//! client.expire("greeting", Duration::from_secs(60)).await?;
//! assert_eq!(client.get("greeting").await?.as_deref(), Some(&b"hello"[..]));
//!
//! // Keys of several nodes: one write per node, answers in the order of the keys.
//! client.mset(&[("a", "1"), ("b", "2")]).await?;
//! let values = client.mget(&["a", "b", "nobody"]).await?;
//! assert_eq!(values.len(), 3);
//!
//! // Any other command.
//! let length: u64 = client.query(&["STRLEN", "greeting"]).await?;
//!
//! // A write whose answer was lost is never repeated behind your back.
//! match client.incr("visits", 1).await {
//!     Ok(visits) => println!("{visits} visits, {length} bytes"),
//!     Err(error) if error.is_unknown_outcome() => println!("perhaps counted: {error}"),
//!     Err(error) => return Err(error),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What holds, and why, stands in the crate's `DESIGN.md`. Modules in reading order.

#![forbid(unsafe_code)]

mod builder;
mod client;
mod command;
mod connection;
mod error;
mod execute;
mod links;
mod pipeline;
mod refresh;
mod reply;
mod request;
mod retry;
mod target;
#[cfg(test)]
mod testing;
mod topology;
mod transport;

pub use builder::ClientBuilder;
pub use client::{Client, Pipeline};
pub use command::TimeToLive;
pub use error::{AttemptError, Error, ServerError};
pub use korum_protocol::id::Epoch;
pub use korum_protocol::resp::decode::Reply;
pub use reply::FromReply;
#[cfg(feature = "sim")]
pub use transport::simulated;
