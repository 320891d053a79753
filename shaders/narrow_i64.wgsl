// int64 constants as int32, saturating: x holds the low word, then the high one.

override count: u32;  // elements

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let low = x[x_offset + 2u * i];
    let high = x[x_offset + 2u * i + 1u];
    if (high == (low >> 31u)) {
        out[out_offset + i] = low;
    } else {
        out[out_offset + i] = select(2147483647, -2147483647 - 1, high < 0);
    }
}
