//! Strings as reports may carry them.

/// `text` without what a report must not carry: ANSI escape sequences, and the characters that
/// XML 1.0 forbids. Carriage returns become line feeds; tabs and line feeds stay.
pub fn clean(text: &str) -> String {
    let plain = anstream::adapter::strip_str(text).to_string();
    plain
        .replace("\r\n", "\n")
        .chars()
        .map(|c| if c == '\r' { '\n' } else { c })
        .filter(|&c| allowed(c))
        .collect()
}

/// [`clean`], on one line.
pub fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether XML 1.0 allows the character and a terminal is left alone by it.
fn allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\u{20}'..='\u{7e}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// A count with thousands separated: `12 345`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A number of milliseconds for people: `0.42 ms`, `12.3 s`, `4 min 10 s`.
pub fn duration(ms: f64) -> String {
    if ms < 1.0 {
        format!("{ms:.2} ms")
    } else if ms < 1000.0 {
        format!("{ms:.0} ms")
    } else if ms < 120_000.0 {
        format!("{:.1} s", ms / 1000.0)
    } else {
        let seconds = (ms / 1000.0).round();
        format!(
            "{:.0} min {:.0} s",
            (seconds / 60.0).floor(),
            seconds % 60.0
        )
    }
}

/// `1 case`, `2 cases`.
pub fn plural(value: u64, singular: &str) -> String {
    let s = if value == 1 { "" } else { "s" };
    format!("{} {singular}{s}", count(value))
}

/// A float as short as it reads back, with an exponent where that is shorter.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 || !value.is_finite() || (1e-4..1e9).contains(&magnitude) {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

/// A margin or another figure that needs three digits.
pub fn figure(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() || value == 0.0 || (0.01..10_000.0).contains(&magnitude) {
        format!("{value:.2}")
    } else {
        format!("{value:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaning_drops_escapes_and_control_characters() {
        assert_eq!(
            clean("a\u{1b}[31mred\u{1b}[0m\0b\u{1}\r\nc\rd\u{fffe}\u{9b}"),
            "aredb\nc\nd"
        );
        assert_eq!(one_line("  a\n\tb  "), "a b");
        assert_eq!(clean("grün 漢 🙂"), "grün 漢 🙂");
    }

    #[test]
    fn figures_for_people() {
        assert_eq!(
            (count(999), count(1_234_567)),
            ("999".into(), "1 234 567".into())
        );
        assert_eq!(duration(0.417), "0.42 ms");
        assert_eq!(duration(250_400.0), "4 min 10 s");
        assert_eq!(plural(1, "case"), "1 case");
        assert_eq!((number(1e-7), number(0.25)), ("1e-7".into(), "0.25".into()));
        assert_eq!(
            (figure(0.5), figure(123456.0)),
            ("0.50".into(), "1.23e5".into())
        );
    }
}
