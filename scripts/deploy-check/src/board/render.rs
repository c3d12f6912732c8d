//! Turns a page into the JSON that Grafana loads.

use serde_json::{Map, Value, json};

use super::{Board, COLUMNS, Kind, Panel, Query, Row};

/// The version of the dashboard format, that of Grafana 11.
const SCHEMA_VERSION: u32 = 39;

/// Marks the moments at which a node came into a new term.
pub(super) const ELECTIONS: &str =
    "max by (group) (changes(kelp_raft_term{job=\"$job\"}[$__rate_interval])) > 0";

/// Grid units of a row's heading.
const HEADING_HEIGHT: u32 = 1;

impl Board {
    /// The dashboard as Grafana stores it.
    pub(crate) fn render(&self) -> Value {
        json!({
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["kelp"],
            "schemaVersion": SCHEMA_VERSION,
            "editable": true,
            "graphTooltip": 1,
            "refresh": "10s",
            "time": { "from": "now-30m", "to": "now" },
            "timezone": "browser",
            "links": [links()],
            "annotations": { "list": [elections()] },
            "templating": { "list": self.variables() },
            "panels": self.render_rows(),
        })
    }

    fn variables(&self) -> Vec<Value> {
        let mut variables = vec![
            json!({
                "type": "datasource",
                "name": "datasource",
                "label": "Data source",
                "query": "prometheus",
                "refresh": 1,
            }),
            variable("job", "Cluster", "label_values(kelp_node_build_info, job)"),
        ];
        if self.choose_nodes {
            let nodes = "label_values(kelp_node_build_info{job=\"$job\"}, instance)";
            let mut nodes = variable("instance", "Node", nodes);
            let fields = nodes.as_object_mut().expect("a variable is an object");
            fields.insert("multi".into(), true.into());
            fields.insert("includeAll".into(), true.into());
            let all = json!({ "text": "All", "value": "$__all" });
            fields.insert("current".into(), all);
            variables.push(nodes);
        }
        variables
    }

    fn render_rows(&self) -> Vec<Value> {
        let mut panels = Vec::new();
        let mut y = 0;
        for row in &self.rows {
            panels.push(json!({
                "id": panels.len() + 1,
                "type": "row",
                "title": row.title,
                "collapsed": false,
                "gridPos": { "h": HEADING_HEIGHT, "w": COLUMNS, "x": 0, "y": y },
                "panels": [],
            }));
            y = row.render(y + HEADING_HEIGHT, &mut panels);
        }
        panels
    }
}

impl Row {
    /// Places the panels from left to right and returns where the next row begins.
    fn render(&self, top: u32, panels: &mut Vec<Value>) -> u32 {
        let (mut x, mut y) = (0, top);
        for panel in &self.panels {
            if x + panel.width > COLUMNS {
                x = 0;
                y += self.height;
            }
            let place = json!({ "h": self.height, "w": panel.width, "x": x, "y": y });
            panels.push(panel.render(panels.len() + 1, &place));
            x += panel.width;
        }
        y + self.height
    }
}

impl Panel {
    fn render(&self, id: usize, place: &Value) -> Value {
        let (kind, options) = match self.kind {
            Kind::Graph => ("timeseries", graph_options()),
            Kind::Stat => ("stat", stat_options(self.named)),
            Kind::States => ("state-timeline", states_options()),
        };
        let queries = self.queries.iter().zip('A'..='Z');
        let targets = queries.map(|(query, letter)| query.render(letter));
        json!({
            "id": id,
            "type": kind,
            "title": self.title,
            "description": self.description.trim_end(),
            "datasource": datasource(),
            "gridPos": place,
            "fieldConfig": { "defaults": self.fields(), "overrides": [] },
            "options": options,
            "targets": targets.collect::<Vec<_>>(),
        })
    }

    fn fields(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("unit".into(), self.unit.as_str().into());
        let numbers = [("min", self.min), ("max", self.max)];
        for (name, number) in numbers {
            if let Some(number) = number {
                fields.insert(name.into(), number.into());
            }
        }
        if self.kind == Kind::Stat {
            fields.insert("noValue".into(), "–".into());
        }
        if let Some(decimals) = self.decimals {
            fields.insert("decimals".into(), decimals.into());
        }
        let mode = match self.kind {
            Kind::Graph => "palette-classic",
            Kind::Stat | Kind::States => "thresholds",
        };
        fields.insert("color".into(), json!({ "mode": mode }));
        let mut steps = vec![json!({ "color": "green", "value": null })];
        let limits = self.thresholds.iter();
        steps.extend(limits.map(|step| json!({ "color": step.color, "value": step.from })));
        let thresholds = json!({ "mode": "absolute", "steps": steps });
        fields.insert("thresholds".into(), thresholds);
        let words = self.words.iter().map(|word| {
            let result = json!({ "text": word.text, "color": word.color });
            (word.value.to_string(), result)
        });
        let words: Map<String, Value> = words.collect();
        if !words.is_empty() {
            let mapping = json!([{ "type": "value", "options": words }]);
            fields.insert("mappings".into(), mapping);
        }
        match self.kind {
            Kind::Graph => fields.insert("custom".into(), self.lines()),
            Kind::States => fields.insert(
                "custom".into(),
                json!({ "lineWidth": 0, "fillOpacity": 70 }),
            ),
            Kind::Stat => None,
        };
        fields.into()
    }

    fn lines(&self) -> Value {
        let (stacking, fill) = if self.stack {
            ("normal", 40)
        } else {
            ("none", 8)
        };
        let limits = if self.thresholds.is_empty() {
            "off"
        } else {
            "dashed"
        };
        json!({
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": fill,
            "showPoints": "never",
            "spanNulls": false,
            "stacking": { "mode": stacking, "group": "A" },
            "thresholdsStyle": { "mode": limits },
        })
    }
}

impl Query {
    fn render(&self, letter: char) -> Value {
        json!({
            "refId": letter.to_string(),
            "datasource": datasource(),
            "editorMode": "code",
            "expr": self.expr,
            "legendFormat": self.legend,
            "range": true,
        })
    }
}

fn datasource() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

fn variable(name: &str, label: &str, query: &str) -> Value {
    json!({
        "type": "query",
        "name": name,
        "label": label,
        "datasource": datasource(),
        "query": query,
        "definition": query,
        "refresh": 2,
        "sort": 1,
    })
}

fn links() -> Value {
    json!({
        "title": "Kelp",
        "type": "dashboards",
        "icon": "external link",
        "tooltip": "The other dashboards of Kelp",
        "tags": ["kelp"],
        "asDropdown": false,
        "targetBlank": false,
        "includeVars": true,
        "keepTime": true,
    })
}

fn elections() -> Value {
    json!({
        "name": "Elections",
        "datasource": datasource(),
        "enable": true,
        "hide": false,
        "iconColor": "orange",
        "expr": ELECTIONS,
        "titleFormat": "A new term",
    })
}

fn graph_options() -> Value {
    json!({
        "legend": {
            "displayMode": "list",
            "placement": "bottom",
            "showLegend": true,
            "calcs": [],
        },
        "tooltip": { "mode": "multi", "sort": "desc" },
    })
}

fn stat_options(named: bool) -> Value {
    let text = if named { "name" } else { "auto" };
    json!({
        "colorMode": "value",
        "graphMode": "area",
        "justifyMode": "auto",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false },
        "showPercentChange": false,
        "textMode": text,
        "wideLayout": true,
    })
}

fn states_options() -> Value {
    json!({
        "showValue": "auto",
        "rowHeight": 0.9,
        "mergeValues": true,
        "alignValue": "left",
        "legend": {
            "displayMode": "list",
            "placement": "bottom",
            "showLegend": true,
            "calcs": [],
        },
        "tooltip": { "mode": "single", "sort": "none" },
    })
}
