//! Reports of a discovery.

use std::io::{self, Write};

use super::admit::{Discovered, PluginFate};
use crate::report::style::{BAD, BOLD, DIM, GOOD, ODD};
use crate::report::text::one_line;

/// One JSON document.
///
/// # Errors
/// What `out` says.
pub fn write_json(discovered: &Discovered, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, discovered)?;
    writeln!(out)
}

/// Lines for people: places, files in the order of loading, what is passed over.
///
/// # Errors
/// What `out` says.
pub fn write_text(discovered: &Discovered, out: &mut dyn Write) -> io::Result<()> {
    for (place, why) in &discovered.places {
        let place = place.display().to_string();
        writeln!(
            out,
            "searched {} {}",
            BOLD.paint(&one_line(&place)),
            DIM.paint(why)
        )?;
    }
    for (number, plugin) in (1..).zip(&discovered.plugins) {
        write_plugin(number, plugin, out)?;
    }
    for ignored in &discovered.ignored {
        let word = match ignored.is_error {
            true => BAD.paint("dropped"),
            false => DIM.paint("passed over"),
        };
        let path = ignored.path.display().to_string();
        writeln!(
            out,
            "{word} {}: {}",
            one_line(&path),
            one_line(&ignored.why)
        )?;
    }
    let left = discovered.plugins.iter().filter(|p| p.dropped.is_none());
    let engines = left.clone().flat_map(|plugin| &plugin.engines);
    let engines = engines.filter(|engine| engine.dropped.is_none()).count();
    writeln!(
        out,
        "hipDNN would have {} of {} plugins and {engines} engines",
        left.count(),
        discovered.plugins.len()
    )
}

fn write_plugin(number: usize, plugin: &PluginFate, out: &mut dyn Write) -> io::Result<()> {
    let path = one_line(&plugin.path.display().to_string());
    if let Some(message) = &plugin.dropped {
        writeln!(out, "{number}. {path} {}", BAD.paint("dropped"))?;
        return writeln!(out, "     {}", one_line(message));
    }
    let name = plugin.name.as_deref().unwrap_or_default();
    writeln!(
        out,
        "{number}. {path} {} {}",
        GOOD.paint("loaded"),
        one_line(name)
    )?;
    for engine in &plugin.engines {
        let name = one_line(&engine.name);
        match &engine.dropped {
            None => writeln!(out, "     {} {name}", engine.id)?,
            Some(why) => {
                let word = BAD.paint("dropped");
                writeln!(out, "     {} {name} {word}: {}", engine.id, one_line(why))?;
            }
        }
    }
    if let Some(text) = &plugin.before_2026 {
        let label = ODD.paint("the host of November 2025:");
        writeln!(out, "     {label} {}", one_line(text))?;
    }
    Ok(())
}
