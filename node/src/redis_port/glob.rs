//! Redis' patterns: `*`, `?`, `[a-z]`, `[^a]`, and a backslash before what is meant literally.
//!
//! Matching takes time in proportion to pattern times key at most: a star that fails goes on from
//! the last star only, which is enough because an earlier star could match no more than it.

use bytes::Bytes;

/// The longest pattern. Matching takes time in proportion to its length, for every key that is
/// looked at.
pub(super) const PATTERN_BYTES_MAX: usize = 1_024;

/// A pattern for keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob {
    pattern: Bytes,
}

impl Glob {
    pub(super) fn new(pattern: &[u8]) -> Self {
        Self {
            pattern: Bytes::copy_from_slice(pattern),
        }
    }

    /// What every key that matches begins with.
    pub(super) fn prefix(&self) -> &[u8] {
        let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let end = self.pattern.iter().position(special);
        &self.pattern[..end.unwrap_or(self.pattern.len())]
    }

    pub(super) fn matches(&self, text: &[u8]) -> bool {
        let (mut pattern, mut rest) = (&self.pattern[..], text);
        // Behind the last star: where the pattern goes on, and what it has not taken yet.
        let mut star: Option<(&[u8], &[u8])> = None;
        loop {
            if let [b'*', behind @ ..] = pattern {
                star = Some((behind, rest));
                pattern = behind;
                continue;
            }
            let stepped = match rest {
                [] if pattern.is_empty() => return true,
                [byte, behind @ ..] => one(pattern, *byte).map(|pattern| (pattern, behind)),
                [] => None,
            };
            if let Some(stepped) = stepped {
                (pattern, rest) = stepped;
                continue;
            }
            let Some((behind, [_, taken @ ..])) = star else {
                return false;
            };
            star = Some((behind, taken));
            (pattern, rest) = (behind, taken);
        }
    }
}

/// The rest of the pattern if its first element matches the byte.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => class(rest, byte),
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (*literal == byte).then_some(rest),
    }
}

/// The rest behind a class, which begins behind its bracket, if the byte is in it. A class without
/// end takes up the rest of the pattern.
fn class(mut pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let negated = pattern.first() == Some(&b'^');
    if negated {
        pattern = &pattern[1..];
    }
    let mut found = false;
    loop {
        pattern = match pattern {
            [] => break,
            [b']', rest @ ..] => {
                pattern = rest;
                break;
            }
            [b'\\', literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
            [low, b'-', high, rest @ ..] => {
                found |= (*low.min(high)..=*low.max(high)).contains(&byte);
                rest
            }
            [literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
        };
    }
    (found != negated).then_some(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, text: &str, expected: bool) {
        let matches = Glob::new(pattern.as_bytes()).matches(text.as_bytes());
        assert_eq!(matches, expected, "{pattern} on {text}");
    }

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "anything"),
            ("a*c", "abcbc"),
            ("a**c", "ac"),
            ("*a*b*", "xaxbx"),
            ("h?llo", "hello"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-c]llo", "hbllo"),
            ("h[c-a]llo", "hbllo"),
            ("\\*", "*"),
            ("[\\]]", "]"),
            ("[a", "a"),
            ("a\\", "a\\"),
        ] {
            check(pattern, text, true);
        }
        for (pattern, text) in [
            ("", "a"),
            ("?", ""),
            ("a*c", "abcb"),
            ("h[^e]llo", "hello"),
            ("h[a-c]llo", "hdllo"),
            ("\\*", "a"),
            ("abc", "abcd"),
            ("*a", "ab"),
        ] {
            check(pattern, text, false);
        }
    }

    #[test]
    fn many_stars_take_no_longer_than_pattern_times_key() {
        let pattern = "a*".repeat(500) + "b";
        check(&pattern, &"a".repeat(5_000), false);
    }

    #[test]
    fn literal_start_of_a_pattern_is_its_prefix() {
        for (pattern, prefix) in [
            ("user:*", "user:"),
            ("*", ""),
            ("a\\*", "a"),
            ("abc", "abc"),
        ] {
            assert_eq!(Glob::new(pattern.as_bytes()).prefix(), prefix.as_bytes());
        }
    }
}
