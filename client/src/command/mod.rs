//! Typed methods, one command family a file, named as in the protocol and in the node.
//!
//! For: bytes in, Rust values out, without a look into the command table.
//! Not here: any command without a method: [`crate::Client::command`] takes it as it is.
//!
//! Commands on several keys are split into one command per slot (the cluster port takes no others), travel in one
//! write per node, and are gathered in the order of the keys.

mod key;
pub use key::TimeToLive;
mod string;

use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::decode::Reply;

use crate::client::Client;
use crate::error::Error;
use crate::request::Request;
use crate::target::by_slot;

/// A command on one key.
fn on_key(name: &'static str, reads_only: bool, key: &[u8], rest: &[&[u8]]) -> Request {
    let mut args = smallvec::SmallVec::<[&[u8]; 8]>::from_slice(&[name.as_bytes(), key]);
    args.extend_from_slice(rest);
    Request::known(name, slot_of(key), reads_only, &args)
}

impl Client {
    /// `name key [value] key [value] …`, split by slot: the positions of each part, and its answer.
    async fn split(
        &self,
        name: &'static str,
        reads_only: bool,
        keys: &[&[u8]],
        values: Option<&[&[u8]]>,
    ) -> Result<Vec<(Vec<usize>, Reply)>, Error> {
        let groups = by_slot(keys.iter().map(|key| slot_of(key)));
        let requests = groups.iter().map(|(slot, positions)| {
            let mut args: Vec<&[u8]> = vec![name.as_bytes()];
            for &position in positions {
                args.push(keys[position]);
                args.extend(values.map(|values| values[position]));
            }
            Request::known(name, *slot, reads_only, &args)
        });
        let answers = self.core().execute_all(requests.collect()).await;
        // An unknown outcome is what a caller must hear of first.
        if let Some(Err(unknown)) =
            answers.iter().find(|answer| matches!(answer, Err(error) if error.is_unknown_outcome()))
        {
            return Err(unknown.clone());
        }
        groups.into_iter().zip(answers).map(|((_, positions), answer)| Ok((positions, answer?))).collect()
    }

    /// The sum of the integers that the parts answer.
    async fn count(&self, name: &'static str, reads_only: bool, keys: &[&[u8]]) -> Result<u64, Error> {
        if let [key] = keys {
            return self.execute(on_key(name, reads_only, key, &[])).await;
        }
        let parts = self.split(name, reads_only, keys, None).await?;
        parts.into_iter().map(|(_, reply)| <u64 as crate::reply::FromReply>::from_reply(reply)).sum()
    }
}

/// Borrowed bytes of what a caller gave.
fn borrowed(items: &[impl AsRef<[u8]>]) -> Vec<&[u8]> {
    items.iter().map(AsRef::as_ref).collect()
}
