use std::path::Path;

use super::rules::{Severity, findings};
use super::{lexer, links};

/// Asserts which faults and remarks `source` at `path` has, as `line: message`.
fn check(path: &str, source: &str, expected: &[&str]) {
    let found: Vec<String> = findings(Path::new(path), source)
        .iter()
        .map(|finding| {
            let kind = if finding.severity == Severity::Fault {
                "fault"
            } else {
                "remark"
            };
            format!("{kind} {}: {}", finding.line, finding.message)
        })
        .collect();
    assert_eq!(found, expected, "{source}");
}

#[test]
fn code_and_comments_are_told_apart_from_literals() {
    let source = "let a = \"{ // not\"; // yes {\nlet b = r#\"}\"#; let c = '{'; let d: &'static str = \"\\\"{\";";
    let code: Vec<String> = lexer::lines(source)
        .into_iter()
        .map(|line| line.code)
        .collect();
    let expected = [
        "let a = \"\"; ",
        "let b = r#\"\"#; let c = ''; let d: &'static str = \"\";",
    ];
    assert_eq!(code, expected);
}

#[test]
fn block_comments_nest() {
    let code: String = lexer::lines("a /* b /* c */ d */ e")
        .into_iter()
        .map(|line| line.code)
        .collect();
    assert_eq!(code.replace(' ', ""), "ae");
}

#[test]
fn marks_are_found_in_code_and_comments_but_not_in_strings() {
    check(
        "src/a.rs",
        "//! A.\n// FIXME later\n",
        &["fault 2: left-over mark FIXME"],
    );
    check(
        "src/a.rs",
        "//! A.\nfn f() { todo!() }\n",
        &["fault 2: left-over mark todo!"],
    );
    check("src/a.rs", "//! A.\nconst A: &str = \"FIXME\";\n", &[]);
    check(
        "src/tests.rs",
        "#[ignore = \"slow\"]\nfn f() {}\n",
        &["fault 1: ignored test"],
    );
}

#[test]
fn module_without_essay_is_a_fault_and_a_test_file_needs_none() {
    check(
        "src/a.rs",
        "fn f() {}\n",
        &["fault 1: no module essay (`//!` on the first line)"],
    );
    check("src/a/tests.rs", "fn f() {}\n", &[]);
}

#[test]
fn path_of_one_machine_is_a_fault_in_any_text() {
    let path = concat!("/", "work/main");
    let fault = concat!("fault 1: path of one machine: /", "work/");
    check("docs/a.md", &format!("see {path}\n"), &[fault]);
    check("docs/a.md", &format!("see home{path}\n"), &[]);
}

#[test]
fn long_function_is_remarked_at_its_first_line() {
    let source = format!(
        "//! A.\nfn f() {{\n{}}}\nfn g() {{}}\n",
        "    let s = \"}\";\n".repeat(69)
    );
    check("src/a.rs", &source, &["remark 2: function f of 71 lines"]);
}

#[test]
fn width_of_a_line_leaves_out_what_stands_in_strings() {
    check(
        "src/a.rs",
        &format!("//! A.\nconst A: &str = \"{}\";\n", "x".repeat(200)),
        &[],
    );
    check(
        "src/a.rs",
        &format!("//! A.{}\n", "x".repeat(95)),
        &["remark 1: line of 101 columns"],
    );
}

#[test]
fn file_is_measured_without_the_tests_at_its_end() {
    let body = "const A: u8 = 1;\n".repeat(499);
    check(
        "src/a.rs",
        &format!("//! A.\n{body}#[cfg(test)]\nmod tests {{\n{body}}}\n"),
        &[],
    );
    check(
        "src/a.rs",
        &format!("//! A.\n{body}{body}"),
        &["remark 1: file of 1000 lines"],
    );
}

#[test]
fn link_to_a_file_that_is_not_there_is_a_fault() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = "[a](Cargo.toml) [b](../none.md#x)\n[c](https://example.org) [d](#below)\n";
    let findings = links::broken(root, Path::new("README.md"), page);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].message, "link to nothing: ../none.md#x");
}
