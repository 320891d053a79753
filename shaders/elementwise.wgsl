// A chain of elementwise operators: out[i] = compute(i) for i < count.
//
// compute is generated from the chain (expression.py); it reads its operands with
// broadcasting. One thread an element.

override count: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    out[out_offset + i] = compute(i);
}
