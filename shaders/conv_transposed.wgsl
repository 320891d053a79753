// 2-D transposed convolution, one thread an output element.
//
// x [N, C, H, W], weight [C, O/groups, KH, KW], bias [O] or none, out [N, O, OH, OW].
// An output gathers the inputs that would have scattered to it: y * STRIDE = oy + PAD - ky * DILATION.
// Sums in f32. bias_of and fused are generated.

override C_GROUP: u32;
override O_GROUP: u32;
override C: u32;
override H: u32;
override W: u32;
override O: u32;
override OH: u32;
override OW: u32;
override KH: u32;
override KW: u32;
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
    let ox = i % OW;
    let oy = (i / OW) % OH;
    let o = (i / (OW * OH)) % O;
    let n = i / (OW * OH * O);
    let group = o / O_GROUP;
    var sum = bias_of(o);
    for (var ky = 0u; ky < KH; ky++) {
        let y = i32(oy) + PAD_Y - i32(ky) * DILATION_Y;
        if (y < 0 || y % STRIDE_Y != 0 || y / STRIDE_Y >= i32(H)) {
            continue;
        }
        for (var kx = 0u; kx < KW; kx++) {
            let column = i32(ox) + PAD_X - i32(kx) * DILATION_X;
            if (column < 0 || column % STRIDE_X != 0 || column / STRIDE_X >= i32(W)) {
                continue;
            }
            let at = u32(y / STRIDE_Y) * W + u32(column / STRIDE_X);
            for (var c = 0u; c < C_GROUP; c++) {
                let channel = group * C_GROUP + c;
                let tap = ((channel * O_GROUP + o % O_GROUP) * KH + ky) * KW + kx;
                sum += f32(x[x_offset + (n * C + channel) * H * W + at]) * f32(weight[weight_offset + tap]);
            }
        }
    }
    out[out_offset + i] = fused(sum, i);
}
