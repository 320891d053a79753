// Softmax or log-softmax along one dimension; one thread a row, in f32.
//
// x and out [outer, SIZE, INNER]; the row of a thread is x[outer, :, inner]. The maximum is
// taken away first, so large inputs do not overflow.

override SIZE: u32;
override INNER: u32;
override LOG: u32;
override count: u32;  // rows

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let start = (i / INNER) * SIZE * INNER + i % INNER;
    var top = f32(x[x_offset + start]);
    for (var k = 1u; k < SIZE; k++) {
        top = max(top, f32(x[x_offset + start + k * INNER]));
    }
    var sum = 0.0;
    for (var k = 0u; k < SIZE; k++) {
        sum += exp(f32(x[x_offset + start + k * INNER]) - top);
    }
    for (var k = 0u; k < SIZE; k++) {
        let value = f32(x[x_offset + start + k * INNER]) - top;
        out[out_offset + start + k * INNER] = out_elem(select(exp(value) / sum, value - log(sum), LOG == 1u));
    }
}
