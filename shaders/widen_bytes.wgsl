// 8-bit constants (bool, uint8, int8) as one 32-bit element each: x holds four a word.

override count: u32;  // elements

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    out[out_offset + i] = extractBits(source_elem(x[x_offset + i / 4u]), (i % 4u) * 8u, 8u);
}
