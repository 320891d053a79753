// Max pooling over windows; one thread an output. Padding never wins; NaN always does.
//
// x [planes, H, W] -> out [planes, OH, OW] and, with WITH_INDICES, indices [planes, OH, OW]:
// the winner's place in its plane, row by row, the first of equals (as PyTorch).

override H: u32;
override W: u32;
override OH: u32;
override OW: u32;
override KH: i32;
override KW: i32;
override STRIDE_Y: i32;
override STRIDE_X: i32;
override PAD_Y: i32;
override PAD_X: i32;
override DILATION_Y: i32;
override DILATION_X: i32;
override count: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let top = i32((i / OW) % OH) * STRIDE_Y - PAD_Y;
    let left = i32(i % OW) * STRIDE_X - PAD_X;
    let plane = (i / (OW * OH)) * H * W;
    var best = 0.0;
    var winner = -1;
    for (var ky = 0; ky < KH; ky++) {
        let y = top + ky * DILATION_Y;
        if (y < 0 || y >= i32(H)) {
            continue;
        }
        for (var kx = 0; kx < KW; kx++) {
            let column = left + kx * DILATION_X;
            if (column < 0 || column >= i32(W)) {
                continue;
            }
            let at = y * i32(W) + column;
            let value = f32(x[x_offset + plane + u32(at)]);
            if (winner < 0 || value > best || is_nan(value)) {
                best = value;
                winner = at;
            }
        }
    }
    out[out_offset + i] = out_elem(best);
    store_index(i, winner);
}
