//! The extents of a convolution.

/// Output extent along one axis: `(input + pre + post − dilation·(filter − 1) − 1) / stride + 1`,
/// rounded down; 0 or less if the filter does not fit the padded input.
///
/// `None` where stride is less than 1 or an intermediate does not fit in i64.
pub fn conv_output_extent(
    input: i64,
    filter: i64,
    pre: i64,
    post: i64,
    stride: i64,
    dilation: i64,
) -> Option<i64> {
    if stride < 1 {
        return None;
    }
    let reach = dilation
        .checked_mul(filter.checked_sub(1)?)?
        .checked_add(1)?;
    let room = input
        .checked_add(pre)?
        .checked_add(post)?
        .checked_sub(reach)?;
    room.div_euclid(stride).checked_add(1)
}
