// Depthwise 2-D convolution: one filter a channel, a strip of STRIP outputs a thread.
//
// x [N, C, H, W], weight [C, 1, KH, KW], bias [C] or none, out [N, C, OH, OW].
// A thread reads each input of its row once and uses it for all outputs that it touches.
// Sums in f32. STRIP, KW, STRIDE_X and SPAN = (STRIP - 1) * STRIDE_X + KW are set before
// this text, since they size arrays; columns are not dilated.

override C: u32;
override H: u32;
override W: u32;
override OH: u32;
override OW: u32;
override KH: u32;
override STRIDE_Y: i32;
override PAD_Y: i32;
override PAD_X: i32;
override DILATION_Y: i32;
override strips: u32;  // strips a row
override count: u32;   // strips in all

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let ox = (i % strips) * u32(STRIP);
    let row = i / strips;  // of all rows of all planes
    let oy = row % OH;
    let plane = row / OH;
    let c = plane % C;
    var sums: array<f32, STRIP>;
    let start = bias_of(c);
    for (var s = 0; s < STRIP; s++) {
        sums[s] = start;
    }
    let left = i32(ox) * STRIDE_X - PAD_X;
    for (var ky = 0u; ky < KH; ky++) {
        let y = i32(oy) * STRIDE_Y - PAD_Y + i32(ky) * DILATION_Y;
        if (y < 0 || y >= i32(H)) {
            continue;
        }
        let line = x_offset + (plane * H + u32(y)) * W;
        var inputs: array<f32, SPAN>;
        for (var j = 0; j < SPAN; j++) {
            let column = left + j;
            let inside = column >= 0 && column < i32(W);
            inputs[j] = select(0.0, f32(x[line + u32(clamp(column, 0, i32(W) - 1))]), inside);
        }
        for (var kx = 0; kx < KW; kx++) {
            let tap = f32(weight[weight_offset + (c * KH + ky) * u32(KW) + u32(kx)]);
            for (var s = 0; s < STRIP; s++) {
                sums[s] += inputs[s * STRIDE_X + kx] * tap;
            }
        }
    }
    for (var s = 0; s < STRIP; s++) {
        if (ox + u32(s) < OW) {
            let at = row * OW + ox + u32(s);
            out[out_offset + at] = fused(sums[s], at);
        }
    }
}
