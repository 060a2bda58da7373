//! Pure: headers of every AMQP type as JSON.

use lapin::types::{AMQPValue, FieldTable};
use serde_json::{Map, Value, json};

use crate::rabbitmq::topology::Declaration;

/// The arguments of `queue`, as the management API shows them.
pub fn arguments_json(queue: &Declaration) -> Value {
    to_json(&queue.arguments)
}

pub(super) fn to_json(table: &FieldTable) -> Value {
    let fields = table.inner().iter();
    Value::Object(
        fields
            .map(|(name, value)| (name.to_string(), one(value)))
            .collect::<Map<_, _>>(),
    )
}

fn one(value: &AMQPValue) -> Value {
    match value {
        AMQPValue::Boolean(it) => json!(it),
        AMQPValue::ShortShortInt(it) => json!(it),
        AMQPValue::ShortShortUInt(it) => json!(it),
        AMQPValue::ShortInt(it) => json!(it),
        AMQPValue::ShortUInt(it) => json!(it),
        AMQPValue::LongInt(it) => json!(it),
        AMQPValue::LongUInt(it) => json!(it),
        AMQPValue::LongLongInt(it) => json!(it),
        AMQPValue::Float(it) => json!(it),
        AMQPValue::Double(it) => json!(it),
        AMQPValue::Timestamp(it) => json!(it),
        AMQPValue::ShortString(it) => json!(it.as_str()),
        AMQPValue::LongString(it) => json!(String::from_utf8_lossy(it.as_bytes())),
        AMQPValue::FieldArray(it) => it.as_slice().iter().map(one).collect(),
        AMQPValue::FieldTable(it) => to_json(it),
        AMQPValue::Void => Value::Null,
        other => json!(format!("{other:?}")),
    }
}
