//! Builds metric families sample by sample, in the form that the `prometheus` crate encodes.

use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};

use super::metrics::{Family, Kind};

/// A family under construction.
pub(super) struct Samples {
    family: Family,
    metrics: Vec<Metric>,
}

impl Samples {
    pub(super) fn new(family: Family) -> Self {
        Self {
            family,
            metrics: Vec::new(),
        }
    }

    /// A family of one value without labels.
    pub(super) fn single(family: Family, value: f64) -> Self {
        let mut samples = Self::new(family);
        samples.add(&[], value);
        samples
    }

    /// A family of one value without labels, or of none.
    pub(super) fn optional(family: Family, value: Option<f64>) -> Self {
        let mut samples = Self::new(family);
        if let Some(value) = value {
            samples.add(&[], value);
        }
        samples
    }

    /// Adds the value of one counter or gauge; `labels` are the values of the family's labels.
    pub(super) fn add(&mut self, labels: &[&str], value: f64) {
        let mut metric = Metric::from_label(self.label_pairs(labels));
        match self.family.kind {
            Kind::Counter => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
            Kind::Gauge => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
            Kind::Histogram => unreachable!("histograms are added by add_histogram"),
        }
        self.metrics.push(metric);
    }

    /// Adds one histogram. `buckets` are {upper bound, count in this bucket alone} in order;
    /// `beyond` counts what is over the last bound.
    pub(super) fn add_histogram(
        &mut self,
        labels: &[&str],
        buckets: impl Iterator<Item = (f64, u64)>,
        beyond: u64,
        sum: f64,
    ) {
        let mut count = 0;
        let mut cumulative = Vec::new();
        for (bound, in_bucket) in buckets {
            count += in_bucket;
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound);
            bucket.set_cumulative_count(count);
            cumulative.push(bucket);
        }
        let mut histogram = Histogram::default();
        histogram.set_sample_count(count + beyond);
        histogram.set_sample_sum(sum);
        histogram.set_bucket(cumulative);
        let mut metric = Metric::from_label(self.label_pairs(labels));
        metric.set_histogram(histogram);
        self.metrics.push(metric);
    }

    fn label_pairs(&self, values: &[&str]) -> Vec<LabelPair> {
        let names = self.family.labels;
        assert_eq!(names.len(), values.len(), "labels of {}", self.family.name);
        let pair = |(name, value): (&&str, &&str)| {
            let mut pair = LabelPair::default();
            pair.set_name((*name).to_owned());
            pair.set_value((*value).to_owned());
            pair
        };
        names.iter().zip(values).map(pair).collect()
    }

    /// The finished family; a family without samples is left out of the exposition.
    pub(super) fn finish(self) -> MetricFamily {
        let mut family = MetricFamily::default();
        family.set_name(self.family.name.to_owned());
        family.set_help(self.family.help.to_owned());
        family.set_field_type(match self.family.kind {
            Kind::Counter => MetricType::COUNTER,
            Kind::Gauge => MetricType::GAUGE,
            Kind::Histogram => MetricType::HISTOGRAM,
        });
        family.set_metric(self.metrics);
        family
    }
}

/// An integer as a sample. Prometheus knows only doubles: beyond 2^53 the last digits are lost.
#[expect(
    clippy::cast_precision_loss,
    reason = "samples are doubles, which the format demands"
)]
pub(super) fn number(value: u64) -> f64 {
    value as f64
}

/// A count as a sample, see [`number`].
pub(super) fn count(value: usize) -> f64 {
    number(u64::try_from(value).unwrap_or(u64::MAX))
}

/// A yes or no as a sample.
pub(super) fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}
