//! Globs and regular expressions that people write: reading, and errors that say what is wrong, at
//! which character, and what to write instead.

use globset::{ErrorKind, Glob, GlobSet, GlobSetBuilder};
use regex::Regex;
use regex_syntax::ast;

/// Text that is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no {form}{}: {what} ({help})", from(.at))]
pub struct PatternError {
    text: String,
    form: &'static str,
    what: String,
    /// The character at which it goes wrong, from 0, where there is one.
    at: Option<usize>,
    help: &'static str,
}

fn from(at: &Option<usize>) -> String {
    at.map_or_else(String::new, |at| format!(", from character {} on", at + 1))
}

/// Reads a glob in which `*` matches `/` too.
///
/// # Errors
/// [`PatternError`].
pub fn glob(text: &str) -> Result<Glob, PatternError> {
    Glob::new(text).map_err(|error| no_glob(text, &error))
}

/// Reads globs of which one must match.
///
/// # Errors
/// [`PatternError`] for the first that is none.
pub fn globs(texts: &[String]) -> Result<GlobSet, PatternError> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        set.add(glob(text)?);
    }
    set.build()
        .map_err(|error| no_glob(&texts.join(" "), &error))
}

fn no_glob(text: &str, error: &globset::Error) -> PatternError {
    PatternError {
        text: text.to_owned(),
        form: "glob",
        what: error.kind().to_string(),
        at: fault_of_glob(text, error.kind()),
        help: "close what is open, or put a character that is meant as itself in brackets, as [[]",
    }
}

/// The character at which a glob is wrong. globset says only what is: the longest text before the
/// fault is a glob, or one that only waits for the `}` of its groups.
fn fault_of_glob(text: &str, kind: &ErrorKind) -> Option<usize> {
    if matches!(kind, ErrorKind::Regex(_)) {
        return None;
    }
    let in_group = !matches!(
        kind,
        ErrorKind::UnclosedAlternates | ErrorKind::UnopenedAlternates
    );
    let is_sound = |at: usize| match Glob::new(&text[..at]) {
        Ok(_) => true,
        Err(error) => in_group && *error.kind() == ErrorKind::UnclosedAlternates,
    };
    let before = text.char_indices().map(|(at, _)| at);
    let last = before.rev().find(|at| is_sound(*at))?;
    Some(text[..last].chars().count())
}

/// Reads a regular expression.
///
/// # Errors
/// [`PatternError`].
pub fn regex(text: &str) -> Result<Regex, PatternError> {
    Regex::new(text).map_err(|error| {
        let (what, at) = fault_of_regex(text).unwrap_or_else(|| (error.to_string(), None));
        PatternError {
            text: text.to_owned(),
            form: "regular expression",
            what,
            at,
            help: r"put a character that is meant as itself after a backslash, as \(",
        }
    })
}

/// What is wrong with the syntax of a regular expression, and the character at which it is.
fn fault_of_regex(text: &str) -> Option<(String, Option<usize>)> {
    let (what, place) = match regex_syntax::parse(text).err()? {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), *error.span()),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), *error.span()),
        _ => return None,
    };
    let ast::Span { start, .. } = place;
    Some((what, Some(text[..start.offset].chars().count())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("a[", 2, "unclosed character class; missing ']'")]
    #[case("ä[b", 2, "unclosed character class; missing ']'")]
    #[case("[a]b[!", 5, "unclosed character class; missing ']'")]
    #[case("{a,[", 4, "unclosed character class; missing ']'")]
    #[case("x[z-a]y", 2, "invalid range; 'z' > 'a'")]
    #[case("ab}c", 3, "unopened alternate group")]
    #[case("{a}{b,c", 4, "unclosed alternate group")]
    #[case("{a,[b]", 1, "unclosed alternate group")]
    #[case("a*\\", 3, "dangling '\\'")]
    fn a_glob_is_wrong_from_a_character_on(
        #[case] text: &str,
        #[case] at: usize,
        #[case] what: &str,
    ) {
        let message = glob(text).expect_err(text).to_string();
        let said = format!("'{text}' is no glob, from character {at} on: {what}");
        assert!(message.starts_with(&said), "{message}");
        assert!(message.ends_with("as [[])"), "{message}");
    }

    #[rstest]
    #[case("(", 1, "unclosed group")]
    #[case("ä[z-a]", 3, "invalid character class range")]
    #[case("ab*{", 4, "unclosed counted repetition")]
    #[case(r"k64\q", 4, "unrecognized escape sequence")]
    fn a_regular_expression_is_wrong_from_a_character_on(
        #[case] text: &str,
        #[case] at: usize,
        #[case] what: &str,
    ) {
        let message = regex(text).expect_err(text).to_string();
        let said = format!("'{text}' is no regular expression, from character {at} on: {what}");
        assert!(message.starts_with(&said), "{message}");
        assert!(!message.contains('\n'), "{message}");
        assert!(message.ends_with(r"as \()"), "{message}");
    }

    #[rstest]
    #[case("[[]a", "[a", "a")]
    #[case("conv.*", "conv.fprop/f32", "matmul")]
    #[case("{a,b[c]}", "bc", "b")]
    fn what_the_help_says_is_a_glob(#[case] text: &str, #[case] yes: &str, #[case] no: &str) {
        let glob = glob(text).expect("a glob").compile_matcher();
        assert!(glob.is_match(yes) && !glob.is_match(no));
        assert!(regex(r"a\(").expect("a regular expression").is_match("a("));
    }

    #[test]
    fn what_is_too_large_goes_wrong_nowhere() {
        let message = regex(r"\w{1000}{1000}").expect_err("too large").to_string();
        assert!(!message.contains("from character"), "{message}");
    }
}
