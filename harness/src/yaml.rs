//! YAML files that people write: reading, and errors that show the line, a caret and the nearest
//! known key. The only module that names the YAML library.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess,
};

/// A text with its name: a file, or a name of embedded data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// File path or embedded name, for messages.
    pub name: String,
    /// The YAML.
    pub text: String,
}

/// A step from a node of a document to one below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into the value of this key.
    Key(&'static str),
    /// Into this item of a list, from 0.
    Item(usize),
}

/// Something wrong with a file, at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, in one line, lower case.
    pub title: String,
    /// Where.
    pub at: Place,
    /// A second place, such as the first of two equal ids.
    pub other: Option<Box<Place>>,
    /// What to do.
    pub help: Vec<String>,
}

/// A part of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The text.
    pub source: Source,
    /// Bytes of it.
    pub span: Range<usize>,
    /// What stands at the caret.
    pub label: String,
}

/// Reads a document.
///
/// # Errors
/// A [`Problem`] for what is no YAML, for unknown and missing keys, and for wrong types.
pub fn read<T: DeserializeOwned>(source: &Source) -> Result<T, Box<Problem>> {
    serde_yaml::from_str(&source.text).map_err(|error| Box::new(explain(source, &error)))
}

/// The bytes at which the node begins that `path` leads to; `None` where the path leads nowhere.
///
/// The library gives places only to errors, so this reads the document again and fails on purpose
/// at the node. It costs a second reading, and is only for messages.
pub fn locate(text: &str, path: &[Step]) -> Option<usize> {
    let error = Seek(path)
        .deserialize(serde_yaml::Deserializer::from_str(text))
        .err()?;
    if !error.to_string().contains(HERE) {
        return None;
    }
    let location = error.location()?;
    Some(offset(text, location.line(), location.column()))
}

/// The 1-based line of a byte.
pub fn line_of(text: &str, at: usize) -> u32 {
    let breaks = text.as_bytes()[..at.min(text.len())]
        .iter()
        .filter(|&&b| b == b'\n')
        .count();
    u32::try_from(breaks + 1).unwrap_or(u32::MAX)
}

/// The known word nearest to `word`, if one is near enough to be what was meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

impl Source {
    /// A named text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
        }
    }

    /// The whole line in which a byte lies, or what the scalar there spans.
    pub fn place(&self, at: usize, label: impl Into<String>) -> Place {
        Place {
            span: token(&self.text, at),
            source: self.clone(),
            label: label.into(),
        }
    }

    /// The node that `path` leads to.
    pub fn place_of(&self, path: &[Step], label: impl Into<String>) -> Place {
        self.place(locate(&self.text, path).unwrap_or(0), label)
    }

    /// A part of the scalar that `path` leads to: `within` counts bytes of its value. Where the
    /// value is not written as it is (folded, escaped), the place is the whole scalar.
    pub fn place_within(
        &self,
        path: &[Step],
        value: &str,
        within: &Range<usize>,
        label: impl Into<String>,
    ) -> Place {
        let mut place = self.place_of(path, label);
        let start = place.span.start;
        let written = self.text.get(start..).unwrap_or_default();
        let quote = usize::from(written.starts_with(['"', '\'']));
        if written.get(quote..).is_some_and(|w| w.starts_with(value)) {
            let base = start + quote;
            let low = within.start.min(value.len());
            let high = within.end.clamp(low, value.len());
            place.span = base + low..base + high;
        }
        place
    }
}

impl Place {
    /// 1-based line.
    pub fn line(&self) -> u32 {
        line_of(&self.source.text, self.span.start)
    }
}

impl Problem {
    /// A problem at one place.
    pub fn new(title: impl Into<String>, at: Place) -> Self {
        Self {
            title: title.into(),
            at,
            other: None,
            help: Vec::new(),
        }
    }

    /// With advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// With a second place.
    #[must_use]
    pub fn other(mut self, place: Place) -> Self {
        self.other = Some(Box::new(place));
        self
    }

    /// The problem with its source lines, in colour or plain.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut group = Group::with_title(Level::ERROR.primary_title(self.title.as_str()));
        let mut places = vec![(&self.at, AnnotationKind::Primary)];
        if let Some(other) = &self.other {
            places.push((other, AnnotationKind::Context));
        }
        // Two places in one text are one snippet: the library draws both carets in it.
        let same = places.len() == 2 && places[0].0.source == places[1].0.source;
        let chunks = if same {
            places.chunks(2)
        } else {
            places.chunks(1)
        };
        for chunk in chunks {
            let source = &chunk[0].0.source;
            let mut snippet = Snippet::source(source.text.as_str()).path(source.name.as_str());
            for (place, kind) in chunk {
                let span = within(&source.text, &place.span);
                snippet = snippet.annotation(kind.span(span).label(place.label.as_str()));
            }
            group = group.element(snippet);
        }
        for help in &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Problem {}

/// Makes a problem of the library's error.
fn explain(source: &Source, error: &serde_yaml::Error) -> Problem {
    let at = error.location().map_or(0, |location| {
        offset(&source.text, location.line(), location.column())
    });
    let text = error.to_string();
    let message = match error.location() {
        Some(l) => text
            .replace(&format!(" at line {} column {}", l.line(), l.column()), "")
            .replace(&format!(" at position {}", l.index()), ""),
        None => text,
    };
    for (what, prefix) in [("key", "unknown field `"), ("name", "unknown variant `")] {
        let Some((_, rest)) = message.split_once(prefix) else {
            continue;
        };
        let Some((word, rest)) = rest.split_once('`') else {
            continue;
        };
        let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
        let place = source.place(at, format!("unknown {what}"));
        let problem = Problem::new(format!("unknown {what} `{word}`"), place);
        let problem = match nearest(word, known.iter().copied()) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem,
        };
        return problem.help(format!("known here: {}", known.join(", ")));
    }
    Problem::new(message, source.place(at, ""))
}

/// The byte at a 1-based line and column, both as the library counts them: characters, and any of
/// YAML's line breaks.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let mut chars = text.char_indices().peekable();
    let (mut at_line, mut at_column) = (1, 1);
    while let Some((index, c)) = chars.next() {
        if (at_line, at_column) >= (line, column) {
            return index;
        }
        let cr_lf = c == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n');
        if !cr_lf && matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}') {
            (at_line, at_column) = (at_line + 1, 1);
        } else {
            at_column += 1;
        }
    }
    text.len()
}

/// From `at` to the end of the word or quoted text there.
fn token(text: &str, at: usize) -> Range<usize> {
    let at = within(text, &(at..at)).start;
    let rest = &text[at..];
    let quoted = rest
        .chars()
        .next()
        .filter(|c| matches!(c, '"' | '\''))
        .and_then(|quote| rest[1..].find(quote))
        .map(|end| end + 2);
    let length = quoted.unwrap_or_else(|| {
        rest.find(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | ']' | '}'))
            .unwrap_or(rest.len())
    });
    at..at + length.max(rest.chars().next().map_or(0, char::len_utf8))
}

/// The span clamped to the text and to whole characters.
fn within(text: &str, span: &Range<usize>) -> Range<usize> {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(span.start);
    start..floor(span.end).max(start)
}

/// The mark of an error that [`Seek`] raised on purpose.
const HERE: &str = "\u{1}here\u{1}";

/// Walks down a path and fails at its end.
struct Seek<'a>(&'a [Step]);

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

macro_rules! stop_at_scalar {
    ($($method:ident: $type:ty),*) => {
        $(fn $method<E: serde::de::Error>(self, _: $type) -> Result<(), E> { self.scalar() })*
    };
}

impl Seek<'_> {
    fn scalar<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.0.is_empty() {
            return Err(E::custom(HERE));
        }
        Ok(())
    }
}

impl<'de> serde::de::Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node on the path")
    }

    stop_at_scalar!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128,
        visit_u128: u128, visit_f64: f64, visit_str: &str);

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.scalar()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.0.split_first() else {
            return Err(serde::de::Error::custom(HERE));
        };
        let mut index = 0;
        loop {
            if *step == Step::Item(index) {
                if items.next_element_seed(Seek(rest))?.is_none() {
                    return Ok(());
                }
            } else if items.next_element::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.0.split_first() else {
            return Err(serde::de::Error::custom(HERE));
        };
        while let Some(key) = entries.next_key::<Key>()? {
            if matches!(step, Step::Key(wanted) if key.0.as_deref() == Some(*wanted)) {
                entries.next_value_seed(Seek(rest))?;
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// A key of a mapping: a text, or something that no path names.
struct Key(Option<String>);

impl<'de> serde::Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Other(IgnoredAny),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Text(text) => Self(Some(text)),
            Form::Other(_) => Self(None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const TEXT: &str = "a: 1\r\nlist:\r\n  - \"é\"\r\n  - {b: 'x y', c: [1, 2]}\r\n  - 漢字\r\n";

    #[rstest]
    #[case(&[Step::Key("a")], "1")]
    #[case(&[Step::Key("list"), Step::Item(0)], "\"é\"")]
    #[case(&[Step::Key("list"), Step::Item(1), Step::Key("b")], "'x y'")]
    #[case(&[Step::Key("list"), Step::Item(1), Step::Key("c"), Step::Item(1)], "2")]
    #[case(&[Step::Key("list"), Step::Item(2)], "漢字")]
    fn nodes_are_found(#[case] path: &[Step], #[case] expected: &str) {
        let at = locate(TEXT, path).expect("the path leads to a node");
        assert_eq!(&TEXT[token(TEXT, at)], expected);
    }

    #[test]
    fn paths_that_lead_nowhere_find_nothing() {
        assert_eq!(locate(TEXT, &[Step::Key("b")]), None);
        assert_eq!(locate(TEXT, &[Step::Key("list"), Step::Item(3)]), None);
        assert_eq!(locate("a: [", &[Step::Key("b")]), None);
    }

    #[test]
    fn a_part_of_a_scalar() {
        let source = Source::new("x", TEXT);
        let path = [Step::Key("list"), Step::Item(1), Step::Key("b")];
        let place = source.place_within(&path, "x y", &(2..3), "");
        assert_eq!((&TEXT[place.span.clone()], place.line()), ("y", 4));
        // An escaped scalar is marked as a whole.
        let source = Source::new("x", "a: \"x\\ty\"\n");
        let place = source.place_within(&[Step::Key("a")], "x\ty", &(2..3), "");
        assert_eq!(&source.text[place.span], "\"x\\ty\"");
    }

    #[test]
    fn the_nearest_word() {
        assert_eq!(
            nearest("dtpyes", ["ops", "dtypes", "shapes"]),
            Some("dtypes")
        );
        assert_eq!(nearest("zzz", ["ops", "dtypes"]), None);
    }
}
