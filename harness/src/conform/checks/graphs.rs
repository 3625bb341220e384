//! Graphs that are cut, changed, empty, or newer than the plugin.

use crate::conform::check::{Check, Level, Outcome, finding, fine, not_applicable};
use crate::conform::draft::{HANDLE, room};
use crate::conform::lab::{DIRT, Lab};
use crate::conform::links::SCHEMAS;
use crate::worker::script::{Call, Data, Value};
use dnn_assay_graph::Graph;
use dnn_assay_graph::wire::{read_graph, write_graph};

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "graph/truncated",
        Level::Recommended,
        "a graph that is cut is neither taken nor a crash",
        SCHEMAS,
        truncated,
    ),
    Check::new(
        "graph/mutated",
        Level::Recommended,
        "a graph with a changed byte is never a crash",
        SCHEMAS,
        mutated,
    ),
    Check::new(
        "graph/empty",
        Level::Recommended,
        "a graph without nodes is declined or refused, not a crash",
        SCHEMAS,
        empty,
    ),
    Check::new(
        "graph/unknown-fields",
        Level::Recommended,
        "fields that a newer schema appends are ignored: FlatBuffers tables grow at the end",
        SCHEMAS,
        unknown_fields,
    ),
];

/// Asks about each graph in one process; whether it was taken. A crash is a finding that names
/// the graph.
fn ask(
    lab: &Lab<'_>,
    graphs: &[(String, Vec<u8>)],
) -> Result<Vec<bool>, crate::conform::check::Stop> {
    let mut draft = lab.ready();
    let first = draft.steps.list.len();
    for (_, bytes) in graphs {
        let blob = draft.blob(bytes);
        draft.steps.call(Call::GetApplicableEngineIds {
            handle: HANDLE,
            graph: Data::Blob(blob),
            room: room(lab.engine_count()),
        });
    }
    let (seen, end) = lab.attempt(draft)?;
    if let Some(text) = end {
        let at = seen.results.len().checked_sub(first);
        let which = at
            .and_then(|at| graphs.get(at))
            .map(|(what, _)| what.as_str());
        return finding(format!("{}: {text}", which.unwrap_or("asked about graphs")));
    }
    let taken = |i: usize| {
        let result = &seen.results[first + i];
        result.status == Some(0) && matches!(result.value, Value::Ids { count, .. } if count > 0)
    };
    Ok((0..graphs.len()).map(taken).collect())
}

fn bytes_of(lab: &Lab<'_>) -> Result<Vec<u8>, crate::conform::check::Stop> {
    match lab.unproven().first() {
        Some(sample) => Ok(sample.bytes.clone()),
        None => not_applicable("the plugin takes none of the graphs that it was asked about"),
    }
}

fn truncated(lab: &Lab<'_>) -> Outcome {
    let whole = bytes_of(lab)?;
    // The last eighth may be padding, or the name of something that nobody reads.
    let end = whole.len() * 7 / 8;
    let step = end.div_ceil(120).max(1);
    let graphs: Vec<_> = (1..end)
        .step_by(step)
        .map(|length| {
            (
                format!("the first {length} bytes"),
                whole[..length].to_vec(),
            )
        })
        .collect();
    let taken = ask(lab, &graphs)?;
    match taken.iter().position(|taken| *taken) {
        Some(i) => finding(format!(
            "{} of {} are taken for a graph",
            graphs[i].0,
            whole.len()
        )),
        None => Ok(format!("{} lengths", graphs.len())),
    }
}

fn mutated(lab: &Lab<'_>) -> Outcome {
    let whole = bytes_of(lab)?;
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let graphs: Vec<_> = (0..240)
        .map(|_| {
            let mut bytes = whole.clone();
            let at = next() as usize % bytes.len();
            let mask = (next() % 255 + 1) as u8;
            bytes[at] ^= mask;
            (format!("byte {at} xor {mask:#04x}"), bytes)
        })
        .collect();
    ask(lab, &graphs)?;
    Ok(format!("{} graphs", graphs.len()))
}

fn empty(lab: &Lab<'_>) -> Outcome {
    bytes_of(lab)?;
    let Ok(bytes) = write_graph(&Graph::default(), lab.generation()) else {
        return not_applicable("an empty graph cannot be written");
    };
    let graphs = [("a graph without nodes".to_owned(), bytes)];
    match ask(lab, &graphs)?.first() {
        Some(true) => finding("a graph without nodes is taken"),
        _ => fine(),
    }
}

fn unknown_fields(lab: &Lab<'_>) -> Outcome {
    let known = lab.first()?;
    let Some(bytes) = with_unknown_fields(&known.sample.bytes) else {
        return not_applicable("the graph cannot be extended");
    };
    let mut newer = known.sample.clone();
    newer.bytes = bytes;
    let mut draft = lab.ready();
    let bench = draft.lay(&newer);
    let at = draft
        .steps
        .applicable(HANDLE, bench.graph, lab.engine_count());
    draft.steps.plan(HANDLE, &bench, 0);
    let run = draft.steps.execute(HANDLE, &bench, 0, DIRT[0]);
    draft.steps.destroy_plan(HANDLE, 0);
    let seen = lab.run(draft)?;
    match seen.ids(at) {
        Ok(ids) if ids.contains(&known.sample.engine) => {}
        _ => return finding("the graph is declined when its table has fields of a newer schema"),
    }
    lab.same(
        &known,
        &seen.outputs(&run),
        "with unknown fields in the graph",
    )?;
    fine()
}

/// The same graph with a vtable that has four more fields than any schema today. They lie where
/// the table's first field lies, so that every verifier is content.
fn with_unknown_fields(bytes: &[u8]) -> Option<Vec<u8>> {
    const FIELDS: usize = 32;
    let u16_at = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let table = u32_at(0)? as usize;
    let back = u32_at(table)? as i32;
    let vtable = usize::try_from(i64::try_from(table).ok()? - i64::from(back)).ok()?;
    let size = usize::from(u16_at(vtable)?);
    let old: Vec<u8> = bytes.get(vtable..vtable + size)?.to_vec();
    let fields = old[4..]
        .chunks_exact(2)
        .map(|f| u16::from_le_bytes([f[0], f[1]]));
    let some_field = fields.clone().find(|offset| *offset != 0)?;
    let mut new = bytes.to_vec();
    new.resize(new.len().next_multiple_of(8), 0);
    let at = new.len();
    let mut entries: Vec<u16> = fields.collect();
    entries.resize(FIELDS - 4, 0);
    entries.extend([some_field; 4]);
    new.extend(((4 + 2 * FIELDS) as u16).to_le_bytes());
    new.extend(&old[2..4]);
    new.extend(entries.iter().flat_map(|entry| entry.to_le_bytes()));
    new.resize(new.len().next_multiple_of(8), 0);
    let back = i32::try_from(table as i64 - at as i64).ok()?;
    new[table..table + 4].copy_from_slice(&back.to_le_bytes());
    read_graph(&new).is_ok().then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::sample::{GRAPHS, graph_of};
    use dnn_assay_graph::wire::Generation;

    #[test]
    fn a_graph_with_unknown_fields_is_the_same_graph() {
        for generation in [Generation::Current, Generation::Nov2025] {
            let graph = graph_of(GRAPHS[0]).expect("a case has a graph");
            let bytes = write_graph(&graph, generation).expect("it can be written");
            let newer = with_unknown_fields(&bytes).expect("it can be extended");
            assert_ne!(newer, bytes);
            assert_eq!(read_graph(&newer), read_graph(&bytes));
        }
    }
}
