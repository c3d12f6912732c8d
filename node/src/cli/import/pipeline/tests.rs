//! Order, bounds and the acknowledged prefix, against a sink whose answers the test decides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::*;
use crate::cli::record::RecordFormat;

type Answer = oneshot::Sender<Result<Certainty, ClientError>>;

/// Keeps every write open until the test answers it.
#[derive(Clone, Default)]
struct Held {
    open: Arc<Mutex<BTreeMap<String, Answer>>>,
    most: Arc<Mutex<usize>>,
}

impl Held {
    fn answer(&self, name: &str, result: Result<Certainty, ClientError>) {
        let answer = self.open.lock().unwrap().remove(name).unwrap();
        answer.send(result).unwrap();
    }

    fn names(&self) -> Vec<String> {
        self.open.lock().unwrap().keys().cloned().collect()
    }
}

impl Sink for Held {
    fn put(&self, record: Record) -> BoxFuture<'static, Result<Certainty, ClientError>> {
        let (sender, receiver) = oneshot::channel();
        let key = String::from_utf8_lossy(&record.key);
        let name = format!("{key}={}", String::from_utf8_lossy(&record.value));
        let mut open = self.open.lock().unwrap();
        open.insert(name, sender);
        let mut most = self.most.lock().unwrap();
        *most = (*most).max(open.len());
        Box::pin(async move { receiver.await.unwrap() })
    }
}

/// Answers every write at once.
struct Willing;

impl Sink for Willing {
    fn put(&self, _: Record) -> BoxFuture<'static, Result<Certainty, ClientError>> {
        Box::pin(std::future::ready(Ok(Certainty::Once)))
    }
}

fn source(text: &str) -> mpsc::Receiver<Result<Batch, ReadError>> {
    let mut reader = RecordReader::new(text.as_bytes(), RecordFormat::Tsv);
    let (sender, receiver) = mpsc::channel(64);
    loop {
        let (batch, fault) = Batch::read(&mut reader);
        let at_end = batch.is_empty();
        if !at_end {
            sender.try_send(Ok(batch)).unwrap();
        }
        if let Some(fault) = fault {
            sender.try_send(Err(fault)).unwrap();
            return receiver;
        }
        if at_end {
            return receiver;
        }
    }
}

fn thousand_records() -> String {
    let lines: Vec<String> = (0..1000).map(|number| format!("k{number}\tv\n")).collect();
    lines.concat()
}

fn unknown() -> ClientError {
    ClientError::OutcomeUnknown {
        reason: "lost".to_owned(),
    }
}

/// Runs until nothing moves any more.
macro_rules! settle {
    ($run:expr) => {
        for _ in 0..20 {
            tokio::select! {
                biased;
                _ = &mut $run => panic!("the import ended"),
                () = tokio::task::yield_now() => {}
            }
        }
    };
}

#[tokio::test]
async fn all_records_are_counted_to_the_last_byte() {
    let text = thousand_records();
    let mut pipeline = Pipeline::new(&Willing, 0, &|_| {});
    assert!(matches!(pipeline.run(source(&text)).await, Stop::End));
    assert_eq!(
        pipeline.outcome(),
        Outcome {
            records: 1000,
            offset: text.len() as u64
        }
    );
}

#[tokio::test]
async fn only_the_unbroken_run_of_acknowledged_records_counts() {
    let sink = Held::default();
    let mut pipeline = Pipeline::new(&sink, 0, &|_| {});
    {
        let run = pipeline.run(source("a\t1\nb\t2\nc\t3\n"));
        tokio::pin!(run);
        settle!(run);
        assert_eq!(sink.names(), ["a=1", "b=2", "c=3"]);
        sink.answer("c=3", Ok(Certainty::Once));
        sink.answer("a=1", Ok(Certainty::Once));
        settle!(run);
        sink.answer("b=2", Err(unknown()));
        assert!(matches!(run.await, Stop::Refused { record: 2, .. }));
    }
    assert_eq!(
        pipeline.outcome(),
        Outcome {
            records: 1,
            offset: 4
        }
    );
}

#[tokio::test]
async fn a_key_that_is_being_written_waits() {
    let sink = Held::default();
    let mut pipeline = Pipeline::new(&sink, 0, &|_| {});
    let run = pipeline.run(source("a\t1\na\t2\n"));
    tokio::pin!(run);
    settle!(run);
    assert_eq!(sink.names(), ["a=1"]);
    sink.answer("a=1", Ok(Certainty::Once));
    settle!(run);
    assert_eq!(sink.names(), ["a=2"]);
    sink.answer("a=2", Ok(Certainty::Once));
    assert!(matches!(run.await, Stop::End));
}

#[tokio::test]
async fn what_is_under_way_is_bounded() {
    let sink = Held::default();
    let text = thousand_records();
    let mut pipeline = Pipeline::new(&sink, 0, &|_| {});
    let run = pipeline.run(source(&text));
    tokio::pin!(run);
    settle!(run);
    assert_eq!(*sink.most.lock().unwrap(), REQUESTS_MAX);
}

#[tokio::test]
async fn a_fault_of_the_input_comes_after_what_was_read_before() {
    let mut pipeline = Pipeline::new(&Willing, 100, &|_| {});
    let stop = pipeline.run(source("a\t1\nwrong\nb\t2\n")).await;
    assert!(matches!(stop, Stop::Input(ReadError::Line { line: 2, .. })));
    assert_eq!(pipeline.outcome().records, 1);
}

#[tokio::test]
async fn a_key_in_doubt_is_not_written_again() {
    let sink = Held::default();
    let mut pipeline = Pipeline::new(&sink, 0, &|_| {});
    {
        let run = pipeline.run(source("a\t1\nb\t2\na\t3\n"));
        tokio::pin!(run);
        settle!(run);
        sink.answer("a=1", Ok(Certainty::Perhaps));
        sink.answer("b=2", Ok(Certainty::Once));
        assert!(matches!(run.await, Stop::Doubtful { record: 3 }));
    }
    assert_eq!(pipeline.outcome().records, 2);
}
