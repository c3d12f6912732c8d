//! Reads expressions of Prometheus: whether they parse, and which series they are about.

use anyhow::{Result, anyhow};
use promql_parser::parser::{self, Expr, VectorSelector};
use promql_parser::util::{ExprVisitor, walk_expr};

/// What Grafana puts in place of its variables, here for a cluster whose job is `kelp`.
const VARIABLES: [(&str, &str); 3] = [
    ("$__rate_interval", "15s"),
    ("$instance", ".+"),
    ("$job", "kelp"),
];

/// The expression as Prometheus gets it.
pub(crate) fn filled(expression: &str) -> String {
    let mut filled = expression.to_owned();
    for (variable, value) in VARIABLES {
        filled = filled.replace(variable, value);
    }
    filled
}

/// Parses an expression of a panel or of an alert.
pub(crate) fn parse(expression: &str) -> Result<Expr> {
    let filled = filled(expression);
    if filled.contains('$') {
        return Err(anyhow!("unknown variable in {expression}"));
    }
    parser::parse(&filled).map_err(|error| anyhow!("{expression}: {error}"))
}

/// Every selection of series in an expression, without time ranges and offsets.
pub(crate) fn selectors(expression: &str) -> Result<Vec<String>> {
    let mut found = Selectors::default();
    let expression = parse(expression)?;
    walk_expr(&mut found, &expression).map_err(|error: std::convert::Infallible| match error {})?;
    found.0.sort();
    found.0.dedup();
    Ok(found.0)
}

#[derive(Default)]
struct Selectors(Vec<String>);

impl Selectors {
    fn add(&mut self, selector: &VectorSelector) {
        let plain = VectorSelector {
            offset: None,
            at: None,
            ..selector.clone()
        };
        self.0.push(plain.to_string());
    }
}

impl ExprVisitor for Selectors {
    type Error = std::convert::Infallible;

    fn pre_visit(&mut self, expression: &Expr) -> Result<bool, Self::Error> {
        match expression {
            Expr::VectorSelector(selector) => self.add(selector),
            Expr::MatrixSelector(selector) => self.add(&selector.vs),
            _ => {}
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_of_ranges_and_operands_are_found_once() {
        let expression =
            "sum(rate(a_total{job=\"$job\"}[$__rate_interval] offset 5m)) / b > 1 and b";
        let found = selectors(expression).expect("the expression parses");
        assert_eq!(found, ["a_total{job=\"kelp\"}", "b"]);
    }

    #[test]
    fn an_unknown_variable_and_a_broken_expression_are_errors() {
        assert!(parse("up{job=\"$other\"}").is_err());
        assert!(parse("sum(").is_err());
    }
}
