//! What a judgement by samples compared, and what it may have missed.

use dnn_assay_reference::sample;
use serde::{Deserialize, Serialize};

use super::forms;

/// Shares of the elements for which the probability of a miss is told.
const SHARES: [f64; 3] = [0.1, 0.01, 0.001];

/// A judgement by samples: `compared` of the record is less than `elements`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampledRecord {
    /// Elements of all outputs.
    pub elements: u64,
    /// Elements of each output that were drawn at random, beside those at chosen places.
    pub random: u64,
    /// Chosen elements that could not be computed by themselves, and were not compared.
    pub left_out: u64,
    /// How likely a fault is missed that hits a share of the elements.
    pub misses: Vec<Miss>,
    /// Sums over channels, which touch every element.
    pub sums: Option<SumsRecord>,
    /// Why there are no such sums.
    pub no_sums: Option<String>,
}

/// The probability that no element drawn at random is among a share of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Miss {
    /// The share of the elements that are wrong.
    pub share: f64,
    /// The probability that all draws miss them.
    pub probability: f64,
}

/// Sums over the channels of an output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SumsRecord {
    /// Sums that were compared.
    pub sums: u64,
    /// Elements in each.
    pub channels: u64,
    /// Sums beyond their bound.
    pub outside: u64,
    /// Sums that overflow and say nothing.
    pub unsummed: u64,
    /// The largest distance over its bound.
    #[serde(with = "forms::float")]
    pub margin: f64,
}

impl SampledRecord {
    /// What so many draws miss.
    pub fn misses(random: u64) -> Vec<Miss> {
        let draws = usize::try_from(random).unwrap_or(usize::MAX);
        let shares = SHARES.iter();
        shares
            .map(|&share| Miss {
                share,
                probability: sample::miss_probability(share, draws),
            })
            .collect()
    }
}
