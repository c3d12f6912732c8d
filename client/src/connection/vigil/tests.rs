//! Silence, step by step.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn vigil(now: Instant) -> Vigil {
    Vigil::new(now, SECOND, SECOND * 5)
}

#[test]
fn silence_leads_from_doubt_to_death() {
    let start = Instant::now();
    let mut vigil = vigil(start);
    assert_eq!(vigil.next_look(start), start + SECOND);
    assert_eq!(vigil.look(start, start), Finding::Well);
    assert_eq!(vigil.look(start + SECOND, start), Finding::Doubtful);
    assert_eq!(vigil.next_look(start), start + SECOND * 5);
    assert_eq!(vigil.look(start + SECOND * 4, start), Finding::Well);
    assert_eq!(vigil.look(start + SECOND * 5, start), Finding::Dead);
}

#[test]
fn any_sign_of_life_begins_anew() {
    let start = Instant::now();
    let mut vigil = vigil(start);
    assert_eq!(vigil.look(start + SECOND, start), Finding::Doubtful);
    vigil.note_life(start + SECOND * 2);
    assert_eq!(vigil.next_look(start), start + SECOND * 3);
    assert_eq!(vigil.look(start + SECOND * 3, start), Finding::Doubtful);
}

#[test]
fn time_without_debt_is_not_silence() {
    let start = Instant::now();
    let mut vigil = vigil(start);
    let owes_since = start + SECOND * 100;
    assert_eq!(vigil.look(owes_since, owes_since), Finding::Well);
    assert_eq!(vigil.next_look(owes_since), owes_since + SECOND);
}

#[test]
fn death_never_comes_before_doubt() {
    let start = Instant::now();
    let mut vigil = Vigil::new(start, SECOND, Duration::ZERO);
    assert_eq!(vigil.look(start + SECOND * 9, start), Finding::Doubtful);
    assert_eq!(vigil.look(start + SECOND * 9, start), Finding::Dead);
}
