//! What arguments become, and what is said of those that do not fit (T11, T12): schemas that host's tools bring along.

use branchline::tools::validate::Checker;
use serde_json::{Value, json};

/// The argument `p` after the check, or the lines about it.
fn checked(schema: &Value, value: Value) -> Result<Value, String> {
    let whole = json!({"type": "object", "properties": {"p": schema}, "required": ["p"]});
    match Checker::new(&whole).unwrap().check("demo", &json!({"p": value})) {
        Ok(arguments) => Ok(arguments["p"].clone()),
        Err(text) => Err(text.split("\n\n").next().unwrap().split_once('\n').unwrap().1.to_owned()),
    }
}

fn becomes(schema: &Value, value: Value, wanted: Value) {
    assert_eq!(checked(schema, value.clone()), Ok(wanted), "{schema} {value}");
}

fn refused(schema: &Value, value: Value, wanted: &str) {
    assert_eq!(checked(schema, value.clone()), Err(format!("  - {wanted}")), "{schema} {value}");
}

#[test]
fn of_several_types_the_first_that_plainly_takes_a_value() {
    let schema = json!({"type": ["number", "null"]});
    for (value, wanted) in
        [(json!("5"), json!(5)), (json!(" 7 "), json!(7)), (json!(""), json!(null)), (json!(true), json!(1))]
    {
        becomes(&schema, value, wanted);
    }
    for value in [" ", "true", "null", "x"] {
        refused(&schema, json!(value), "p: expected number or null, got string");
    }
    let schema = json!({"type": ["boolean", "integer"]});
    for (value, wanted) in
        [(json!("true"), json!(true)), (json!("1"), json!(1)), (json!("3.0"), json!(3)), (json!(null), json!(false))]
    {
        becomes(&schema, value, wanted);
    }
    refused(&schema, json!(2.5), "p: expected boolean or integer, got number");
    refused(&schema, json!("TRUE"), "p: expected boolean or integer, got string");
    becomes(&json!({"type": ["string", "number"]}), json!(null), json!(""));
    refused(&json!({"type": ["number"]}), json!(""), "p: expected number, got string");
    becomes(&json!({"type": "number"}), json!(""), json!(0));
}

#[test]
fn members_of_an_enum_are_found_before_types() {
    let schema = json!({"type": "number", "enum": [0, 2.5]});
    for value in [json!(""), json!("false"), json!(null), json!("0")] {
        becomes(&schema, value, json!(0));
    }
    refused(&schema, json!("5"), "p: expected one of [0,2.5]");
    // Nothing becomes null.
    refused(&json!({"enum": [1, null]}), json!("null"), "p: expected one of [1,null]");
    refused(&json!({"const": null}), json!(0), "p: expected null");
    refused(&json!({"const": "a"}), json!("b"), "p: expected \"a\"");
    let many: Vec<String> = (0..22).map(|number| number.to_string()).collect();
    let said = checked(&json!({"enum": many}), json!("x")).unwrap_err();
    assert!(said.ends_with("\"19\", ... and 2 more]"), "{said}");
}

#[test]
fn of_a_union_the_first_branch_of_the_right_type_speaks() {
    let object = json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]});
    refused(&json!({"anyOf": [{"type": "number"}, object]}), json!({}), "p.a: missing");
    refused(&json!({"anyOf": [{"type": "number"}, object]}), json!("x"), "p: expected number, got string");
    refused(
        &json!({"anyOf": [{"type": "string", "minLength": 3}, {"type": "number"}]}),
        json!("x"),
        "p: expected at least 3 characters",
    );
    let kind = |name: &str| json!({"type": "object", "properties": {"k": {"const": name}}, "required": ["k"]});
    refused(&json!({"oneOf": [kind("x"), kind("y")]}), json!({"k": "z"}), "p.k: expected one of [\"x\",\"y\"]");
}

/// Schemas of before the present draft are understood.
#[test]
fn tuples_as_a_list_of_items() {
    let schema = json!({"type": "array", "items": [{"type": "number"}, {"type": "string"}]});
    becomes(&schema, json!(["5"]), json!([5]));
    becomes(&schema, json!([1, 2, null]), json!([1, "2", null]));
    refused(&schema, json!("5"), "p: expected array, got string");
}
