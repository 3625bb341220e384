//! The first help screen, in two groups.

use std::fmt::Write as _;

use clap::Command;

/// What most people use, in the order in which they meet it.
const EVERYDAY: [&str; 6] = ["check", "run", "list", "explain", "report", "init"];

/// The command with its subcommands in two groups. Texts come from the definitions.
pub fn grouped(command: Command) -> Command {
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n\n");
    let all: Vec<(String, String)> = command
        .get_subcommands()
        .map(|sub| {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            (sub.get_name().to_owned(), about)
        })
        .collect();
    let everyday = EVERYDAY
        .iter()
        .filter_map(|name| all.iter().find(|(n, _)| n == name));
    group(&mut text, "Everyday", everyday);
    let more = all
        .iter()
        .filter(|(name, _)| !EVERYDAY.contains(&name.as_str()));
    group(&mut text, "More", more);
    text.push_str("Options:\n{options}{after-help}\n");
    command.help_template(text)
}

fn group<'a>(out: &mut String, title: &str, commands: impl Iterator<Item = &'a (String, String)>) {
    let _ = writeln!(out, "{title}:");
    for (name, about) in commands {
        let _ = writeln!(out, "  {name:<12} {about}");
    }
    out.push('\n');
}
