// Convolution weights for the matrix routes, once at load.
//
// weight [O, C, KH, KW]  ->  packed [KH*KW*C][O4] with O4 = O rounded up to 4, zeros behind O:
// packed[k * O4 + o] = weight[o, c, ky, kx] with k = (ky * KW + kx) * C + c.
// Threads of a row read weights of one k, so the four channels of a vector are neighbours.

override O: u32;
override C: u32;
override TAPS: u32;  // KH * KW
override O4: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= TAPS * C * O4) {
        return;
    }
    let o = i % O4;
    let k = i / O4;
    let c = k % C;
    let tap = k / C;
    var value = 0.0;
    if (o < O) {
        value = f32(weight[weight_offset + (o * C + c) * TAPS + tap]);
    }
    packed[packed_offset + i] = packed_elem(value);
}
