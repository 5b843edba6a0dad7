use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue::{self, N, S};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use comeback_delivery::dynamodb::{Attributes, Sender, Table, Write};

use crate::{example, in_calls, on_ministack};

async fn table(client: &Client, name: &str, keys: &[(&str, KeyType, ScalarAttributeType)]) {
    let mut call = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    for (key, role, of_type) in keys {
        let schema = KeySchemaElement::builder().attribute_name(*key).key_type(role.clone()).build().unwrap();
        let defined = AttributeDefinition::builder().attribute_name(*key).attribute_type(of_type.clone());
        call = call.key_schema(schema).attribute_definitions(defined.build().unwrap());
    }
    call.send().await.expect("a table");
}

async fn items(client: &Client, table: &str) -> Vec<Attributes> {
    let pages = client.scan().table_name(table).into_paginator().items().send();
    pages.collect::<Result<Vec<_>, _>>().await.expect("items")
}

fn order(customer: u32, number: u32, state: &str) -> Attributes {
    let [customer, number]: [(String, AttributeValue); 2] =
        [("customer".into(), S(customer.to_string())), ("number".into(), N(number.to_string()))];
    let state = Some(("state".into(), S(state.into()))).filter(|_| !state.is_empty());
    [customer, number].into_iter().chain(state).collect()
}

#[test]
fn a_thousand_items_are_put_counted_and_deleted() {
    on_ministack(async |server| {
        let client = Client::new(server.config());
        let (hash, range) = (KeyType::Hash, KeyType::Range);
        let (text, number) = (ScalarAttributeType::S, ScalarAttributeType::N);
        table(&client, "orders", &[("customer", hash.clone(), text.clone()), ("number", range, number)])
            .await;
        table(&client, "customers", &[("customer", hash, text)]).await;
        let tables = [Table::new("orders", "customer").sort("number"), Table::new("customers", "customer")];
        let deliver = Sender::new(client.clone(), tables);

        let orders = (0..800).map(|index| Write::put("orders", order(index % 40, index, "new")));
        let customer = |index: u32| {
            Write::put("customers", Attributes::from([("customer".into(), S(index.to_string()))]))
        };
        let delivered = deliver.send(orders.chain((0..200).map(customer))).await.unwrap();
        assert_eq!(delivered.count(), 1_000);
        in_calls(40, delivered.calls, delivered.retries);
        assert_eq!(items(&client, "orders").await.len(), 800);
        assert_eq!(items(&client, "customers").await.len(), 200);

        let deletes = (0..800).step_by(2).map(|index| Write::delete("orders", order(index % 40, index, "")));
        assert_eq!(deliver.send(deletes).await.unwrap().count(), 400);
        let left = items(&client, "orders").await;
        assert_eq!(left.len(), 400);
        assert!(left.iter().all(|item| item["number"].as_n().unwrap().parse::<u32>().unwrap() % 2 == 1));
    });
}

#[test]
fn the_example() {
    on_ministack(async |server| {
        let client = Client::new(server.config());
        table(&client, "example", &[("id", KeyType::Hash, ScalarAttributeType::S)]).await;
        let printed = example(server, "dynamodb", "example");
        assert!(printed.starts_with("300 writes in "), "{printed}");
        assert_eq!(items(&client, "example").await.len(), 100);
    });
}
