// Sum or mean along one dimension; one thread a row, in f32.
//
// x [outer, SIZE, INNER] -> out [outer, INNER]; the result is the sum times FACTOR.

override SIZE: u32;
override INNER: u32;
override FACTOR: f32;
override count: u32;  // rows

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let start = (i / INNER) * SIZE * INNER + i % INNER;
    var sum = 0.0;
    for (var k = 0u; k < SIZE; k++) {
        sum += f32(x[x_offset + start + k * INNER]);
    }
    out[out_offset + i] = out_elem(sum * FACTOR);
}
