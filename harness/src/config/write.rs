//! The file that `dnn-assay init` writes.

use std::fmt::Write as _;

/// What a plugin was found to be.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The plugin file as the configuration names it.
    pub plugin: String,
    /// Memory kind and why.
    pub memory: (String, String),
    /// Engines, by name.
    pub engines: Vec<String>,
    /// Wire generation and why.
    pub wire: (String, String),
}

/// A configuration for the plugin, with what can be said at each place.
pub fn commented(plan: &Plan) -> String {
    let mut out = String::new();
    let engines = plan.engines.join(", ");
    let _ = write!(
        out,
        "\
# What `dnn-assay check` holds this project's plugins to. Found from any folder below this one;
# flags on the command line beat it. `dnn-assay schema` prints its JSON Schema for editors.
# yaml-language-server: $schema=dnn-assay.schema.json
schema: 1

# Plugin files, or folders whose .so files are all plugins; relative to this file.
# Found in it: engines {engines}; wire format {wire} ({wire_why}).
plugins:
  - {plugin}

# Memory that the plugin works on: host, hip, cuda or mock-hip. Left out, it is found out from the
# file, which says {memory} ({memory_why}).
# device: {memory}

# Variables for the process that loads the plugin.
# environment:
#   MIOPEN_LOG_LEVEL: \"3\"

# Suites by name, or YAML files of your own: `dnn-assay list` shows the cases.
suites: [smoke]

# What the engines' arithmetic is known to do beyond correct rounding in f32, such as f16 sums;
# each widens the bound, and only where it applies.
# `dnn-assay traits {plugin}` measures them.
# traits:
#   - {{trait: xf32, engine: NAME, when: {{op: conv, dtype: f32}}, reason: why it computes so}}

# What is known to fail. Every failure prints its entry, ready to paste here; the four last keys
# are compulsory. A case that passes against its entry is red; so is an expired entry with
# --nightly.
waive: []
# waive:
#   - filter: op=conv.wgrad dtype=bf16
#     expect: fail(numeric)
#     reason: the last tile column is not written
#     owner: me@example.org
#     link: https://example.org/issues/1
#     expires: 2027-06-30

# What must be accepted: `dnn-assay claims PLUGIN --write claims.yaml` records it.
# claims: [claims.yaml]

# Least numbers of verified cases, so that the gate cannot go quiet.
floors:
  verified: 1
",
        wire = comment(&plan.wire.0),
        wire_why = comment(&plan.wire.1),
        plugin = scalar(&plan.plugin),
        memory = comment(&plan.memory.0),
        memory_why = comment(&plan.memory.1),
        engines = comment(&engines),
    );
    out
}

/// A text that stays inside its comment.
fn comment(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// A YAML scalar: JSON strings are YAML strings.
fn scalar(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
