// Copy with a computed source index: out[target(i)] = x[source(i)] for i < count.
//
// source and target are generated (ops/copy.py): permute, expand, slice, cat and their
// kin are all this kernel. Element types differ at most in width (f16 and f32).

override count: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    out[out_offset + target_index(i)] = out_elem(x[x_offset + source_index(i)]);
}
