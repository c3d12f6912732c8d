//! The table against a simple model: whatever happens, no slot is lost, none is used twice, and
//! every caller gets exactly one result.

use std::collections::BTreeMap;
use std::time::Duration;

use kelp_wire::Status;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const SLOTS: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Insert { deadline: u64 },
    Answer { which: usize },
    Abandon { which: usize },
    Take { which: usize },
    Expire,
    End,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..10_u64).prop_map(|deadline| Step::Insert { deadline }),
        3 => (0..SLOTS).prop_map(|which| Step::Answer { which }),
        1 => (0..SLOTS).prop_map(|which| Step::Abandon { which }),
        3 => (0..SLOTS).prop_map(|which| Step::Take { which }),
        1 => Just(Step::Expire),
        1 => Just(Step::End),
    ]
}

/// What the model knows of a used slot.
#[derive(Clone, Copy, Debug, Default)]
struct Model {
    is_owed: bool,
    is_awaited: bool,
    has_result: bool,
    deadline: u64,
}

struct Pair {
    table: InFlight,
    model: BTreeMap<usize, Model>,
    start: Instant,
    now: u64,
}

impl Pair {
    fn at(&self, time: u64) -> Instant {
        self.start + Duration::from_secs(time)
    }

    fn pick(&self, which: usize) -> Option<usize> {
        let count = self.model.len().max(1);
        self.model.keys().nth(which % count).copied()
    }

    fn insert(&mut self, deadline: u64) {
        assert_eq!(self.table.has_room(), self.model.len() < SLOTS);
        if !self.table.has_room() {
            return;
        }
        let next = self.table.next();
        let index = self.table.insert(Owed {
            opcode: Opcode::Get,
            is_write: false,
            deadline: self.at(self.now + deadline),
            frame_bytes: 1,
            frame_end: 0,
        });
        assert_eq!(index, next);
        let model = Model {
            is_owed: true,
            is_awaited: true,
            has_result: false,
            deadline: self.now + deadline,
        };
        assert!(
            self.model.insert(index.0, model).is_none(),
            "slot is used twice"
        );
    }

    fn answer(&mut self, index: usize) {
        let id = SlotIndex(index).request_id();
        let response = Response::new(id, Opcode::Get, Status::NotFound);
        let accepted = self
            .table
            .accept(&response, Bytes::copy_from_slice, &mut Vec::new());
        let slot = self.model.get_mut(&index).expect("picked from the model");
        assert_eq!(accepted.is_ok(), slot.is_owed);
        slot.is_owed = false;
        slot.has_result |= slot.is_awaited;
    }

    fn take(&mut self, index: usize) {
        let mut context = Context::from_waker(Waker::noop());
        let slot = self.model.get_mut(&index).expect("picked from the model");
        if !slot.is_awaited {
            return;
        }
        let result = self.table.poll(SlotIndex(index), &mut context);
        assert_eq!(result.is_ready(), slot.has_result);
        if result.is_ready() {
            slot.is_awaited = false;
            slot.has_result = false;
        }
    }

    fn abandon(&mut self, index: usize) {
        let slot = self.model.get_mut(&index).expect("picked from the model");
        if slot.is_awaited {
            self.table.abandon(SlotIndex(index));
            slot.is_awaited = false;
            slot.has_result = false;
        }
    }

    fn expire(&mut self) {
        self.now += 3;
        let now = self.at(self.now);
        self.table.expire(now, 0, &mut Vec::new());
        for slot in self.model.values_mut() {
            slot.has_result |= slot.is_awaited && slot.is_owed && slot.deadline <= self.now;
        }
    }

    fn end(&mut self) {
        let reason = CloseReason::ClosedByNode;
        self.table.fail_all(&reason, 0, &mut Vec::new());
        for slot in self.model.values_mut() {
            slot.has_result |= slot.is_awaited;
            slot.is_owed = false;
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Insert { deadline } => self.insert(deadline),
            Step::Answer { which } => self.pick(which).into_iter().for_each(|i| self.answer(i)),
            Step::Abandon { which } => self.pick(which).into_iter().for_each(|i| self.abandon(i)),
            Step::Take { which } => self.pick(which).into_iter().for_each(|i| self.take(i)),
            Step::Expire => self.expire(),
            Step::End => self.end(),
        }
        self.model.retain(|_, slot| slot.is_owed || slot.is_awaited);
        let owed = self.model.values().filter(|slot| slot.is_owed).count();
        assert_eq!(self.table.owed_count, owed);
        assert_eq!(self.table.owed_bytes, owed);
        assert_eq!(
            self.table.slots.len() - self.table.free.len(),
            self.model.len()
        );
    }
}

proptest! {
    #[test]
    fn table_agrees_with_the_model(steps in vec(steps(), 0..200)) {
        let mut pair = Pair {
            table: InFlight::new(SLOTS, usize::MAX),
            model: BTreeMap::new(),
            start: Instant::now(),
            now: 0,
        };
        for step in &steps {
            pair.step(step);
        }
    }
}
