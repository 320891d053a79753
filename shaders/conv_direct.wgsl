// 2-D convolution, one thread an output element: any groups, stride, padding, dilation.
//
// x [N, C, H, W], weight [O, C/groups, KH, KW], bias [O] or none, out [N, O, OH, OW].
// Sums in f32. bias_of and fused are generated; fused gets the element's flat index.
// The route for what no faster one takes; 1-D convolutions come with H = KH = OH = 1.

override C_GROUP: u32;   // input channels a group
override O_GROUP: u32;   // output channels a group
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
    let first_channel = n * C + (o / O_GROUP) * C_GROUP;
    var sum = bias_of(o);
    for (var ky = 0u; ky < KH; ky++) {
        let y = i32(oy) * STRIDE_Y - PAD_Y + i32(ky) * DILATION_Y;
        if (y < 0 || y >= i32(H)) {
            continue;
        }
        for (var kx = 0u; kx < KW; kx++) {
            let column = i32(ox) * STRIDE_X - PAD_X + i32(kx) * DILATION_X;
            if (column < 0 || column >= i32(W)) {
                continue;
            }
            var source = x_offset + (first_channel * H + u32(y)) * W + u32(column);
            var tap = weight_offset + (o * C_GROUP * KH + ky) * KW + kx;
            for (var c = 0u; c < C_GROUP; c++) {
                sum += f32(x[source]) * f32(weight[tap]);
                source += H * W;
                tap += KH * KW;
            }
        }
    }
    out[out_offset + i] = fused(sum, i);
}
