// Reductions over any dimensions: one thread an output.
//
// The elements of output i are x[base(i) + reduced(r)] for r < SIZE. What is gathered is
// generated (ops/reductions.py): `start()`, `step(state, value, r)` and `finish(state)`,
// with `value_type` the type in which values are read. Floats gather in f32, integers in i32.

override SIZE: u32;
override count: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let first = x_offset + base(i);
    var state = start();
    for (var r = 0u; r < SIZE; r++) {
        state = step(state, value_type(x[first + reduced(r)]), r);
    }
    out[out_offset + i] = finish(state);
}
