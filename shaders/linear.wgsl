// out = x weight^T + bias: one thread an output element, in f32.
//
// x [ROWS, K], weight [COLUMNS, K], bias [COLUMNS] or none, out [ROWS, COLUMNS].
// bias_of and fused are generated; fused gets the element's flat index.

override K: u32;
override COLUMNS: u32;
override count: u32;  // ROWS * COLUMNS

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let row = i / COLUMNS;
    let o = i % COLUMNS;
    var sum = bias_of(o);
    for (var k = 0u; k < K; k++) {
        sum += f32(x[x_offset + row * K + k]) * f32(weight[weight_offset + o * K + k]);
    }
    out[out_offset + i] = fused(sum, i);
}
