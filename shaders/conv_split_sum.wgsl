// The pieces of a split convolution (conv_tile.wgsl) added up: one thread an output element.
//
// partial [SPLITS, count], bias [O] or none, out [N, O, area] with count = N * O * area.
// bias_of and fused are generated.

override SPLITS: u32;
override O: u32;
override area: u32;
override count: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    var sum = bias_of((i / area) % O);
    for (var piece = 0u; piece < SPLITS; piece++) {
        sum += partial[partial_offset + piece * count + i];
    }
    out[out_offset + i] = fused(sum, i);
}
