//! The text of `dnn-assay explain`: what a case is, and where each number of its bound comes from.

use std::io::{self, Write};

use dnn_assay_graph::schema::Role;
use dnn_assay_graph::{Graph, Node, Tensor};
use dnn_assay_reference::exact::Exactness;
use dnn_assay_reference::{
    Account, Criterion, Estimate, Evaluation, Figure, Values, account, decoys, dtype, last_terms,
};

use crate::judge::{Rules, exactness_note};
use crate::suite::SuiteCase;

/// A case with everything that is known of it without a plugin.
#[derive(Clone, Copy)]
pub struct Explained<'a> {
    /// The case.
    pub case: &'a SuiteCase,
    /// Its graph.
    pub graph: &'a Graph,
    /// Its data.
    pub inputs: &'a Values,
    /// The reference.
    pub evaluation: &'a Evaluation,
    /// The rules.
    pub rules: &'a Rules,
    /// The seed of the data.
    pub seed: u64,
}

/// Writes the text.
///
/// # Errors
/// What `out` says.
pub fn explain(explained: &Explained<'_>, out: &mut dyn Write) -> io::Result<()> {
    let case = explained.case;
    writeln!(out, "{}", case.id)?;
    writeln!(out, "tier {}, tags {}", case.tier, case.tags.join(" "))?;
    writeln!(out, "\nNodes")?;
    for (index, node) in explained.graph.nodes.iter().enumerate() {
        write_node(index, node, out)?;
    }
    writeln!(out, "\nTensors")?;
    for tensor in &explained.graph.tensors {
        write_tensor(explained, tensor, out)?;
    }
    let exactness = explained.rules.exactness(
        explained.graph,
        case.case.fill(),
        explained.inputs,
        explained.evaluation,
    );
    write_constants(explained.rules, out)?;
    for tensor in explained.graph.outputs() {
        write_output(explained, tensor, exactness.as_ref(), out)?;
    }
    Ok(())
}

fn write_node(index: usize, node: &Node, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "  {index} {} ({}), computes in {}",
        node.name,
        node.attributes.kind(),
        node.compute_type.short_name()
    )?;
    for (role, arrow) in [(Role::Input, "reads "), (Role::Output, "writes")] {
        let mut names = Vec::new();
        node.attributes.visit_uids(role, &mut |field, uid| {
            names.push(format!("{} = {uid}", field.short_name()))
        });
        writeln!(out, "      {arrow} {}", names.join(", "))?;
    }
    Ok(())
}

fn write_tensor(explained: &Explained<'_>, tensor: &Tensor, out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "  {:>3} {:<14} {:<5} {:?} strides {:?}",
        tensor.uid,
        tensor.name,
        tensor.data_type.short_name(),
        tensor.dims,
        tensor.strides
    )?;
    if let Some(value) = tensor.value {
        return writeln!(out, ", the value {value:?}");
    }
    if tensor.is_virtual {
        return writeln!(out, ", virtual");
    }
    write!(out, ", {} bytes", tensor.byte_size().unwrap_or(0))?;
    match explained.inputs.get(&tensor.uid) {
        Some(values) => {
            let (low, high) = range(values);
            writeln!(out, ", filled with values in [{low}, {high}]")
        }
        None => writeln!(out, ", written by the engine"),
    }
}

fn range(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (low, high)
}

fn write_constants(rules: &Rules, out: &mut dyn Write) -> io::Result<()> {
    let factor = &rules.tolerances.bound.sum_factor;
    writeln!(out, "\nConstants of the bound")?;
    writeln!(
        out,
        "  a sum of K products y = Σaᵢbᵢ: e = {}·u·√K·(|y| + Q), Q = √Σ(aᵢbᵢ)²",
        factor.value
    )?;
    writeln!(out, "      {}: {}", factor.value, factor.why)?;
    writeln!(
        out,
        "  a function of the textbook formula: its error in units of u; suites/tolerances/pointwise.yaml"
    )?;
    for (name, quoted) in rules.tolerances.bound.functions.all() {
        writeln!(out, "      {name} {}: {}", quoted.value, quoted.why)?;
    }
    writeln!(
        out,
        "  u = 2⁻²⁴ for f32 accumulators; an output adds u·(|y| + e) + ½·(smallest subnormal) of its type"
    )?;
    write_traits(rules, out)
}

/// The numbers that declared traits change.
fn write_traits(rules: &Rules, out: &mut dyn Write) -> io::Result<()> {
    let arithmetic = &rules.arithmetic;
    if rules.traits.is_empty() {
        return writeln!(out, "  no trait is declared");
    }
    writeln!(out, "  declared traits: {}", rules.traits)?;
    let half = |roundoff: f64| roundoff.log2();
    if let Some(roundoff) = arithmetic.accumulator_roundoff {
        writeln!(out, "      u of accumulators is 2^{:.0}", half(roundoff))?;
    }
    if arithmetic.linear_growth {
        writeln!(out, "      every sum grows as K·u·S, S = Σ|aᵢbᵢ|")?;
    }
    if arithmetic.partial_roundoff > 0.0 {
        let (factor, roundoff) = (arithmetic.sum_factor, half(arithmetic.partial_roundoff));
        writeln!(
            out,
            "      partial sums add {factor}·2^{roundoff:.0}·√K·(|y| + Q)"
        )?;
    }
    if arithmetic.product_roundoff > 0.0 {
        let roundoff = half(arithmetic.product_roundoff);
        writeln!(
            out,
            "      rounded operands add 8·2^{roundoff:.0}·(|y| + Q)"
        )?;
    }
    if arithmetic.transform > 0.0 {
        let transform = arithmetic.transform;
        writeln!(
            out,
            "      convolutions err by {transform} times the largest e of the tensor"
        )?;
    }
    if arithmetic.one_pass_variance {
        writeln!(
            out,
            "      variances carry the rounding of Σx²/M and of mean²"
        )?;
    }
    if arithmetic.flushes_denormals {
        writeln!(out, "      zero is right for a denormal, read or written")?;
    }
    Ok(())
}

fn write_output(
    explained: &Explained<'_>,
    tensor: &Tensor,
    exactness: Option<&Exactness>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(estimate) = explained.evaluation.tensors.get(&tensor.uid) else {
        return Ok(());
    };
    writeln!(out, "\nOutput {} (uid {})", tensor.name, tensor.uid)?;
    let Some(criterion) = explained
        .rules
        .criterion(explained.graph, tensor, exactness)
    else {
        return writeln!(out, "  the table has no number for this operation and type");
    };
    writeln!(out, "  criterion {criterion}")?;
    if let Some(note) = exactness.and_then(exactness_note) {
        writeln!(out, "  {note}")?;
    }
    write_bounds(explained, tensor, estimate, out)?;
    write_decoys(explained, tensor, estimate, &criterion, out)
}

/// The bound of the element with the median bound, part by part.
fn write_bounds(
    explained: &Explained<'_>,
    tensor: &Tensor,
    estimate: &Estimate,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut order: Vec<usize> = (0..estimate.value.len()).collect();
    order.sort_by(|&a, &b| estimate.error[a].total_cmp(&estimate.error[b]));
    let u = dtype::unit_roundoff(tensor.data_type);
    let half = 0.5 * dtype::smallest_subnormal(tensor.data_type);
    for (what, index) in [
        ("smallest", order.first()),
        ("median", order.get(order.len() / 2)),
        ("largest", order.last()),
    ] {
        let Some(&index) = index else { continue };
        let y = estimate.value[index];
        let e = f64::from(estimate.error[index]);
        let rounding = u * (y.abs() + e);
        writeln!(
            out,
            "  {what:>8} bound, element {index}: y = {y:.9e}, arithmetic {e:.3e} + rounding {rounding:.3e} + {half:.3e} = {:.3e}",
            e + rounding + half
        )?;
        let accounts = account(
            explained.graph,
            explained.inputs,
            &explained.rules.arithmetic,
            tensor.uid,
            index,
        );
        for account in accounts.map_err(io::Error::other)? {
            write_account(explained, &account, out)?;
        }
    }
    Ok(())
}

/// Every number behind the uncertainty of one element of one node.
fn write_account(
    explained: &Explained<'_>,
    account: &Account,
    out: &mut dyn Write,
) -> io::Result<()> {
    let node = explained.graph.nodes.get(account.node);
    let tensor = explained.graph.tensor(account.uid);
    let name = node.map_or("", |node| node.name.as_str());
    let tensor = tensor.map_or("", |tensor| tensor.name.as_str());
    writeln!(
        out,
        "      {} {name}, {tensor}[{}] = {:.6e}, e = {:.3e}",
        account.node, account.index, account.value, account.error
    )?;
    for Figure { name, value, error } in &account.figures {
        match error {
            Some(error) if *error > 0.0 => {
                writeln!(out, "          {name} = {value:.6e} ± {error:.3e}")?;
            }
            _ => writeln!(out, "          {name} = {value:.6e}")?,
        }
    }
    for Figure { name, value, .. } in &account.parts {
        writeln!(out, "        + {value:.3e}  {name}")?;
    }
    Ok(())
}

fn write_decoys(
    explained: &Explained<'_>,
    tensor: &Tensor,
    estimate: &Estimate,
    criterion: &Criterion,
    out: &mut dyn Write,
) -> io::Result<()> {
    let terms = last_terms(explained.graph, explained.inputs, tensor.uid);
    let report = decoys::check_with_terms(tensor, estimate, criterion, terms.as_deref())
        .map_err(io::Error::other)?;
    let names = |decoys: &[decoys::Decoy]| {
        let names: Vec<String> = decoys.iter().map(ToString::to_string).collect();
        names.join(", ")
    };
    let accepted = if report.accepted.is_empty() {
        "none accepted".to_owned()
    } else {
        format!("accepted: {}; the case is weak", names(&report.accepted))
    };
    writeln!(
        out,
        "  decoys that differ from the reference: {}; {accepted}",
        names(&report.applicable)
    )?;
    if report.blind_to_last_tap {
        writeln!(
            out,
            "  blind to the last tap: no last term is larger than its bound; the fill `edges` sees it"
        )?;
    }
    Ok(())
}
