//! Parts Rust source into code, comments and literals, line by line.
//!
//! Just enough of the language that no rule is misled by a brace in a string or by a word in a
//! comment. It knows nested block comments, raw strings and the difference between a character and
//! a lifetime.

/// One source line in two readings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The line without comments and without what stands inside literals.
    pub(super) code: String,
    /// The line with comments, but without what stands inside literals.
    pub(super) text: String,
}

#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    BlockComment {
        depth: usize,
    },
    /// Inside a string; a raw one ends at a quote followed by this many hashes.
    String {
        raw_hashes: Option<usize>,
    },
}

/// Returns the lines of `source` in order.
pub(super) fn lines(source: &str) -> Vec<Line> {
    let characters: Vec<char> = source.chars().collect();
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        if character == '\n' {
            if let State::LineComment = state {
                state = State::Code;
            }
            lines.push(Line::default());
            at += 1;
            continue;
        }
        let line = lines
            .last_mut()
            .expect("there is a first line from the start");
        let rest = &characters[at..];
        let (next, width) = step(
            state,
            rest,
            at.checked_sub(1).map(|before| characters[before]),
        );
        let literal = matches!((state, next), (State::String { .. }, State::String { .. }));
        let comment = matches!(state, State::LineComment | State::BlockComment { .. })
            || matches!(next, State::LineComment | State::BlockComment { .. });
        // A line end inside a step would be lost; only an escaped one in a string can be.
        let width = rest
            .iter()
            .take(width)
            .position(|&found| found == '\n')
            .unwrap_or(width)
            .max(1);
        if !literal {
            line.text.extend(&rest[..width]);
            if !comment {
                line.code.extend(code(&rest[..width]));
            }
        }
        state = next;
        at += width;
    }
    lines
}

/// What of `token` counts as code: a character literal keeps its quotes only.
fn code(token: &[char]) -> Vec<char> {
    match token {
        ['\'', .., '\''] => vec!['\'', '\''],
        _ => token.to_vec(),
    }
}

/// The state after the token at the start of `rest`, and the number of characters in that token.
fn step(state: State, rest: &[char], before: Option<char>) -> (State, usize) {
    match (state, rest) {
        (State::Code, ['/', '/', ..]) => (State::LineComment, 2),
        (State::Code, ['/', '*', ..]) => (State::BlockComment { depth: 1 }, 2),
        (State::Code, ['"', ..]) => (State::String { raw_hashes: None }, 1),
        (State::Code, ['r', '"' | '#', ..]) if !is_word(before, rest) => raw_string(rest),
        (State::Code, ['\'', '\\', ..]) => {
            let end = rest.iter().skip(3).position(|&found| found == '\'');
            (State::Code, end.map_or(1, |end| end + 4))
        }
        (State::Code, ['\'', _, '\'', ..]) => (State::Code, 3),
        (State::BlockComment { depth }, ['/', '*', ..]) => {
            (State::BlockComment { depth: depth + 1 }, 2)
        }
        (State::BlockComment { depth: 1 }, ['*', '/', ..]) => (State::Code, 2),
        (State::BlockComment { depth }, ['*', '/', ..]) => {
            (State::BlockComment { depth: depth - 1 }, 2)
        }
        (State::String { raw_hashes: None }, ['\\', ..]) => (state, 2),
        (State::String { raw_hashes: None }, ['"', ..]) => (State::Code, 1),
        (
            State::String {
                raw_hashes: Some(hashes),
            },
            ['"', after @ ..],
        ) if after.iter().take_while(|&&found| found == '#').count() >= hashes => {
            (State::Code, 1 + hashes)
        }
        _ => (state, 1),
    }
}

/// Whether the `r` at the start of `rest` belongs to a longer word (`br"..."` is a raw string all
/// the same).
fn is_word(before: Option<char>, rest: &[char]) -> bool {
    let joined = before.is_some_and(|found| found.is_alphanumeric() || found == '_');
    joined && !(before == Some('b') && rest.len() > 1)
}

fn raw_string(rest: &[char]) -> (State, usize) {
    let hashes = rest[1..].iter().take_while(|&&found| found == '#').count();
    match rest.get(1 + hashes) {
        Some('"') => (
            State::String {
                raw_hashes: Some(hashes),
            },
            2 + hashes,
        ),
        // A raw identifier such as `r#type`.
        _ => (State::Code, 1),
    }
}
