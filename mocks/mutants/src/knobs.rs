//! The knobs of the engine, one of each constraint and both global ones, and what can be wrong
//! about them. Without a fault they are declared, taken and refused as they should be.

use dnn_assay_graph::wire::{Knob, KnobConstraint, KnobSetting, KnobValue};
use dnn_assay_graph::{Attributes, Graph};
use dnn_assay_plugin_sdk::Error;

/// What is wrong about a knob.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KnobFault {
    /// A default that its own constraint excludes.
    DefaultOutside,
    /// The least value makes no plan.
    LeastRefused,
    /// Every value makes a plan.
    AnythingTaken,
    /// A value other than the default changes the results.
    OtherResults,
    /// `global.benchmarking` = 1 changes the results.
    BenchmarkingOtherResults,
    /// Executions fail with `global.benchmarking` = 1: nothing was primed.
    BenchmarkingFails,
    /// Plans want one byte more than the limit.
    LimitExceeded,
    /// The limit is offered for graphs without a convolution too.
    LimitEverywhere,
    /// The limit's default is its least value.
    LimitDefaultLeast,
    /// Less than the least limit makes a plan.
    LimitBelowLeast,
}

const BENCHMARKING: &str = "global.benchmarking";
const LIMIT: &str = "global.workspace_size_limit";
const TILE: &str = "mutant.tile";
const ORDER: &str = "mutant.order";
const SHARE: &str = "mutant.share";

/// Bytes of workspace of the thriftiest and of the greediest way.
const LEAST: i64 = 1024;
const MOST: i64 = 65_536;

/// What the host has chosen.
#[derive(Clone, Copy, Default)]
pub struct Chosen {
    limit: Option<i64>,
    /// Outputs are doubled.
    pub spoils: bool,
    /// Executions fail.
    pub fails: bool,
    more: usize,
}

impl Chosen {
    /// Bytes of workspace that the plan wants for its knobs: all that the limit allows.
    pub fn workspace(self) -> usize {
        self.limit
            .map_or(0, |limit| limit.clamp(0, MOST) as usize + self.more)
    }
}

/// The knobs offered for a graph.
pub fn declared(graph: &Graph, fault: Option<KnobFault>) -> Vec<Knob> {
    let int = |name: &str, default, (min, max, step)| {
        let constraint = KnobConstraint::Int {
            min,
            max,
            step,
            valid_values: Vec::new(),
        };
        knob(name, KnobValue::Int(default), constraint)
    };
    let tile = match fault {
        Some(KnobFault::DefaultOutside) => 24,
        _ => 32,
    };
    let orders = ["rows", "columns"].map(str::to_owned).to_vec();
    let mut knobs = vec![
        int(BENCHMARKING, 0, (0, 1, 1)),
        int(TILE, tile, (16, 64, 16)),
        knob(
            ORDER,
            KnobValue::Text("rows".to_owned()),
            KnobConstraint::Text {
                max_length: 16,
                valid_values: orders,
            },
        ),
        knob(
            SHARE,
            KnobValue::Float(0.5),
            KnobConstraint::Float { min: 0.0, max: 1.0 },
        ),
    ];
    if is_convolution(graph) || fault == Some(KnobFault::LimitEverywhere) {
        let default = match fault {
            Some(KnobFault::LimitDefaultLeast) => LEAST,
            _ => MOST,
        };
        knobs.push(int(LIMIT, default, (LEAST, MOST, 1)));
    }
    knobs
}

fn knob(name: &str, default_value: KnobValue, constraint: KnobConstraint) -> Knob {
    Knob {
        knob_id: name.to_owned(),
        description: String::new(),
        default_value,
        constraint: Some(constraint),
        deprecated: false,
    }
}

fn is_convolution(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| {
        matches!(
            node.attributes,
            Attributes::ConvolutionFwd(_)
                | Attributes::ConvolutionBwd(_)
                | Attributes::ConvolutionWrw(_)
        )
    })
}

/// Takes the host's settings.
///
/// # Errors
/// A knob that the graph does not have, or a value outside its constraint.
pub fn choose(
    graph: &Graph,
    settings: &[KnobSetting],
    fault: Option<KnobFault>,
) -> Result<Chosen, Error> {
    let knobs = declared(graph, fault);
    let mut chosen = Chosen {
        more: usize::from(fault == Some(KnobFault::LimitExceeded)),
        ..Chosen::default()
    };
    for KnobSetting { knob_id, value } in settings {
        let knob = knobs.iter().find(|knob| knob.knob_id == *knob_id);
        let Some(knob) = knob else {
            return Err(Error::invalid_value(format!("there is no knob {knob_id}")));
        };
        if !takes(knob, value, fault) {
            let text = format!("{knob_id}: the value is outside its constraint");
            return Err(Error::invalid_value(text));
        }
        match (knob_id.as_str(), value) {
            (LIMIT, KnobValue::Int(limit)) => chosen.limit = Some(*limit),
            (BENCHMARKING, KnobValue::Int(1)) => {
                chosen.spoils |= fault == Some(KnobFault::BenchmarkingOtherResults);
                chosen.fails |= fault == Some(KnobFault::BenchmarkingFails);
            }
            (TILE, KnobValue::Int(tile)) if *tile != 32 => {
                chosen.spoils |= fault == Some(KnobFault::OtherResults);
            }
            _ => {}
        }
    }
    Ok(chosen)
}

fn takes(knob: &Knob, value: &KnobValue, fault: Option<KnobFault>) -> bool {
    let lax = match fault {
        Some(KnobFault::AnythingTaken) => true,
        Some(KnobFault::LimitBelowLeast) => knob.knob_id == LIMIT,
        _ => false,
    };
    match (&knob.constraint, value) {
        (Some(KnobConstraint::Int { min, max, step, .. }), KnobValue::Int(value)) => {
            let least = fault == Some(KnobFault::LeastRefused) && value == min;
            let inside = (min..=max).contains(&value) && (value - min) % step == 0;
            !least && (inside || lax)
        }
        (Some(KnobConstraint::Float { min, max }), KnobValue::Float(value)) => {
            (min..=max).contains(&value) || lax
        }
        (Some(KnobConstraint::Text { valid_values, .. }), KnobValue::Text(value)) => {
            valid_values.contains(value) || lax
        }
        _ => lax,
    }
}
