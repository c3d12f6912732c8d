use super::*;

const PAGE: &str = r#"
uid = "one"
title = "One"
description = "A page."
[[row]]
title = "Row"
[[row.panel]]
title = "Wide"
description = "What is to be seen in it."
width = 16
unit = "s"
queries = [{ expr = 'up{job="$job"}', legend = "{{instance}}" }]
[[row.panel]]
title = "Next"
description = "What is to be seen in it."
width = 12
unit = "s"
queries = [{ expr = 'rate(a{job="$job"}[5m])', legend = "" }]
"#;

#[test]
fn panels_that_do_not_fit_begin_a_new_line() {
    let dashboard = Board::parse(PAGE).expect("the page is well").render();
    let places = dashboard["panels"]
        .as_array()
        .expect("panels are a list")
        .iter();
    let places: Vec<_> = places
        .map(|panel| (panel["gridPos"]["x"].clone(), panel["gridPos"]["y"].clone()))
        .collect();
    assert_eq!(
        places,
        [
            (0.into(), 0.into()),
            (0.into(), 1.into()),
            (0.into(), 9.into())
        ]
    );
}

#[test]
fn a_fixed_rate_and_a_missing_legend_are_faults() {
    let faults = Board::parse(PAGE).expect("the page is well").faults();
    assert_eq!(faults.len(), 2, "{faults:?}");
}

#[test]
fn an_unknown_word_in_a_page_is_an_error() {
    assert!(Board::parse(&PAGE.replace("width = 12", "with = 12")).is_err());
    assert!(Board::parse(&PAGE.replace("width = 12", "width = 25")).is_err());
}
