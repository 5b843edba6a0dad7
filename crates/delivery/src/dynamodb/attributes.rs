use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

/// Attributes by name: an item, or its key.
pub type Attributes = HashMap<String, AttributeValue>;
