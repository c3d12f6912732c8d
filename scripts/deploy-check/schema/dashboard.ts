// What a dashboard of Kelp may hold, in Grafana's own types: a dashboard, and one type per kind of panel that is in
// use, with the query, options and field settings of that kind in place of the `any` of the general panel.
// README.md says how `dashboard.schema.json` is made from this.

import type * as dashboard from "@grafana/grafana-foundation-sdk/dashboard";
import type * as prometheus from "@grafana/grafana-foundation-sdk/prometheus";
import type * as stat from "@grafana/grafana-foundation-sdk/stat";
import type * as statetimeline from "@grafana/grafana-foundation-sdk/statetimeline";
import type * as timeseries from "@grafana/grafana-foundation-sdk/timeseries";

// In the schema a type has a name without its module: what is called alike in several modules gets a name of its own.
interface PrometheusQuery extends prometheus.Dataquery {}
interface StatOptions extends stat.Options {}
interface StateTimelineOptions extends statetimeline.Options {}
interface StateTimelineFields extends statetimeline.FieldConfig {}
interface TimeseriesOptions extends timeseries.Options {}
interface TimeseriesFields extends timeseries.FieldConfig {}

export type Board = Omit<dashboard.Dashboard, "panels"> & { panels: object[] };

export type Row = dashboard.RowPanel;

type PanelFields<Custom> = Omit<dashboard.FieldConfigSource, "defaults"> & {
  defaults: Omit<dashboard.FieldConfig, "custom"> & { custom?: Custom };
};

type QueryPanel<Kind, Options, Custom> = Omit<dashboard.Panel, "type" | "targets" | "options" | "fieldConfig"> & {
  type: Kind;
  targets: PrometheusQuery[];
  options: Options;
  fieldConfig: PanelFields<Custom>;
};

export type TimeseriesPanel = QueryPanel<"timeseries", TimeseriesOptions, TimeseriesFields>;

export type StatPanel = QueryPanel<"stat", StatOptions, Record<string, never>>;

export type StateTimelinePanel = QueryPanel<"state-timeline", StateTimelineOptions, StateTimelineFields>;
