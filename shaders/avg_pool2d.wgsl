// Average pooling over windows; one thread an output. Sums in f32.
//
// x [planes, H, W] -> out [planes, OH, OW]. The divisor is DIVISOR where that is not 0, else
// the window's size with padding (COUNT_PAD = 1; what reaches past the padding does not
// count) or without.

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
override COUNT_PAD: u32;
override DIVISOR: f32;
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
    let bottom = min(top + KH, i32(H) + PAD_Y);
    let right = min(left + KW, i32(W) + PAD_X);
    let padded = (bottom - top) * (right - left);
    var sum = 0.0;
    var inside = 0;
    for (var y = max(top, 0); y < min(bottom, i32(H)); y++) {
        for (var column = max(left, 0); column < min(right, i32(W)); column++) {
            sum += f32(x[x_offset + plane + u32(y) * W + u32(column)]);
            inside++;
        }
    }
    var divisor = DIVISOR;
    if (divisor == 0.0) {
        divisor = f32(select(inside, padded, COUNT_PAD == 1u));
    }
    out[out_offset + i] = out_elem(sum / divisor);
}
