//! What is said when no node answers.

use super::*;

#[test]
fn a_refusal_outweighs_nodes_that_are_not_there() {
    let absent = || Failure::new(Exit::Unavailable, "nobody there");
    let refusal = || Failure::new(Exit::Refused, "wrong certificate");
    let endpoints = ["a:1".to_owned(), "b:1".to_owned()];
    let check = |failures, expected| assert_eq!(no_answer(failures, &endpoints), expected);
    check(vec![absent(), refusal(), absent()], refusal());
    check(vec![absent(), absent()], absent());
}
