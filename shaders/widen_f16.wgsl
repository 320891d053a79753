// f16 constants as f32, for devices without shader-f16: x holds two halves a word.

override count: u32;  // elements

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (2u * i >= count) {
        return;
    }
    let pair = unpack2x16float(x[x_offset + i]);
    out[out_offset + 2u * i] = pair.x;
    if (2u * i + 1u < count) {
        out[out_offset + 2u * i + 1u] = pair.y;
    }
}
