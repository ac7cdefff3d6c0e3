//! Entries against their parts.

use crate::store::{Entry, StringValue, Value};
use proptest::prelude::*;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(|number| Value::String(StringValue::Integer(number))),
        proptest::collection::vec(any::<u8>(), 0..700)
            .prop_map(|bytes| Value::String(StringValue::Bytes(bytes.into()))),
        proptest::collection::vec(any::<u8>(), 0..700)
            .prop_map(|bytes| Value::String(StringValue::Raw(bytes))),
    ]
}

proptest! {
    #[test]
    fn an_entry_gives_back_what_was_put_in(
        key in proptest::collection::vec(any::<u8>(), 0..600),
        steps in proptest::collection::vec((value(), any::<Option<u64>>(), any::<u32>(), 0..4u8), 1..6),
    ) {
        let (first, deadline, access, _) = &steps[0];
        let mut entry = Entry::new(&key, first.as_ref(), *deadline, *access);
        let (mut value, mut deadline, mut access) = (first.clone(), *deadline, *access);
        for (new_value, new_deadline, new_access, kind) in steps {
            match kind {
                0 => {
                    entry.replace(new_value.as_ref(), new_deadline, new_access);
                    (value, deadline, access) = (new_value, new_deadline, new_access);
                }
                1 => {
                    entry.set_deadline(new_deadline);
                    deadline = new_deadline;
                }
                2 => {
                    entry.touch(new_access);
                    access = new_access;
                }
                _ => prop_assert_eq!(&*entry.value_mut(), &value),
            }
            prop_assert_eq!(entry.key(), &key[..]);
            prop_assert_eq!(entry.value(), value.as_ref());
            prop_assert_eq!(entry.deadline_ms(), deadline);
            prop_assert_eq!(entry.access(), access);
            prop_assert_eq!(&entry.clone().into_value(), &value);
        }
    }
}
