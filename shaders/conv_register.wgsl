// Ungrouped 2-D convolution without barriers: CHANNELS x 4 outputs a thread, in registers.
//
// x [N, C, H, W], packed weights [KH*KW*C][O4] (pack_conv_weight.wgsl), bias [O] or none,
// out [N, O, OH, OW]. A thread owns 4 * VECTORS output channels of PIXELS neighbouring pixels
// (pixels count row by row); every weight vector is used for all its pixels.
// Sums in f32. For adapters that run on the CPU, where a barrier costs more than the loads
// that shared memory saves. VECTORS and PIXELS are set before this text.

override C: u32;
override H: u32;
override W: u32;
override O: u32;
override O4: u32;      // O rounded up to 4
override OW: u32;
override area: u32;    // OH * OW
override KH: u32;
override KW: u32;
override STRIDE_Y: i32;
override STRIDE_X: i32;
override PAD_Y: i32;
override PAD_X: i32;
override DILATION_Y: i32;
override DILATION_X: i32;
override quads: u32;   // ceil(area / PIXELS)
override blocks: u32;  // ceil(O / (4 * VECTORS))
override count: u32;   // quads * blocks * N

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let first_pixel = (i % quads) * PIXELS;
    let first_vector = ((i / quads) % blocks) * VECTORS;
    let n = i / (quads * blocks);

    var top: array<i32, PIXELS>;
    var left: array<i32, PIXELS>;
    for (var p = 0u; p < PIXELS; p++) {
        let pixel = first_pixel + p;
        // pixels behind the last one read nothing: they start below the input
        top[p] = select(i32(H) + PAD_Y, i32(pixel / OW) * STRIDE_Y - PAD_Y, pixel < area);
        left[p] = i32(pixel % OW) * STRIDE_X - PAD_X;
    }
    var sums: array<vec4<f32>, PIXELS * VECTORS>;
    for (var v = 0u; v < VECTORS; v++) {
        let o = (first_vector + v) * 4u;
        let start = vec4(bias_of(min(o, O - 1u)), bias_of(min(o + 1u, O - 1u)),
                         bias_of(min(o + 2u, O - 1u)), bias_of(min(o + 3u, O - 1u)));
        for (var p = 0u; p < PIXELS; p++) {
            sums[v * PIXELS + p] = start;
        }
    }
    let plane = H * W;
    for (var ky = 0u; ky < KH; ky++) {
        for (var kx = 0u; kx < KW; kx++) {
            var source: array<u32, PIXELS>;
            var mask: array<f32, PIXELS>;
            for (var p = 0u; p < PIXELS; p++) {
                let y = top[p] + i32(ky) * DILATION_Y;
                let column = left[p] + i32(kx) * DILATION_X;
                let inside = y >= 0 && y < i32(H) && column >= 0 && column < i32(W);
                source[p] = x_offset + n * C * plane + select(0u, u32(y) * W + u32(column), inside);
                mask[p] = select(0.0, 1.0, inside);
            }
            var tap = (packed_offset + (ky * KW + kx) * C * O4) / 4u + first_vector;
            for (var c = 0u; c < C; c++) {
                var inputs: array<f32, PIXELS>;
                for (var p = 0u; p < PIXELS; p++) {
                    inputs[p] = select(0.0, f32(x[source[p] + c * plane]), mask[p] > 0.0);
                }
                for (var v = 0u; v < VECTORS; v++) {
                    let taps = vec4<f32>(packed[tap + v]);
                    for (var p = 0u; p < PIXELS; p++) {
                        sums[v * PIXELS + p] += taps * inputs[p];
                    }
                }
                tap += O4 / 4u;
            }
        }
    }
    for (var v = 0u; v < VECTORS; v++) {
        for (var p = 0u; p < PIXELS; p++) {
            let pixel = first_pixel + p;
            for (var j = 0u; j < 4u; j++) {
                let o = (first_vector + v) * 4u + j;
                if (o < O && pixel < area) {
                    let at = (n * O + o) * area + pixel;
                    out[out_offset + at] = fused(sums[v * PIXELS + p][j], at);
                }
            }
        }
    }
}
