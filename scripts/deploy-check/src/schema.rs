//! Compares a dashboard with Grafana's own types, which `schema/dashboard.schema.json` holds.
//!
//! Each panel is compared with the type of its kind alone, so that a fault names the field and not
//! all the kinds that the panel is not.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../schema/dashboard.schema.json");

/// What does not fit; each with its place.
pub(crate) fn faults(dashboard: &Value) -> Result<Vec<String>> {
    let mut faults = against("Board", dashboard, "dashboard")?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    for panel in panels {
        let title = panel["title"].as_str().unwrap_or("?");
        let kind = match panel["type"].as_str() {
            Some("row") => "RowPanel",
            Some("timeseries") => "TimeseriesPanel",
            Some("stat") => "StatPanel",
            Some("state-timeline") => "StateTimelinePanel",
            kind => {
                faults.push(format!("{title}: no schema for a panel of kind {kind:?}"));
                continue;
            }
        };
        faults.extend(against(kind, panel, title)?);
    }
    Ok(faults)
}

fn against(definition: &str, value: &Value, place: &str) -> Result<Vec<String>> {
    let mut schema: Value = serde_json::from_str(SCHEMA).context("the schema is no JSON")?;
    schema["$ref"] = json!(format!("#/definitions/{definition}"));
    let validator = jsonschema::validator_for(&schema).context("the schema is no schema")?;
    let errors = validator.iter_errors(value);
    let texts = errors.map(|error| format!("{place} {}: {error}", error.instance_path()));
    Ok(texts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dashboard(panel: &Value) -> Value {
        json!({
            "schemaVersion": 39,
            "templating": { "list": [] },
            "annotations": { "list": [] },
            "panels": [panel],
        })
    }

    #[test]
    fn a_misspelt_field_and_a_wrong_type_are_found() {
        let row = json!({ "type": "row", "id": 1, "collapsed": false, "panels": [] });
        assert!(faults(&dashboard(&row)).expect("it runs").is_empty());
        let mut misspelt = row.clone();
        misspelt["colapsed"] = json!(true);
        assert_eq!(faults(&dashboard(&misspelt)).expect("it runs").len(), 1);
        let mut wrong = row;
        wrong["id"] = json!("one");
        assert_eq!(faults(&dashboard(&wrong)).expect("it runs").len(), 1);
        let unknown = json!({ "type": "piechart" });
        assert_eq!(faults(&dashboard(&unknown)).expect("it runs").len(), 1);
    }
}
