// New rows into a cache, in place: out[b, position + s, :] = x[b, s, :].
//
// x [B, ROWS, ROW], out [B, CAPACITY, ROW]; target_row(i) is generated (ops/cache.py). Rows
// outside the cache are left out. One thread an element.

override count: u32;
override ROW: u32;
override ROWS: u32;
override CAPACITY: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    let row = target_row(i);
    if (i >= count || row < 0 || row >= i32(CAPACITY)) {
        return;
    }
    let batch = i / (ROWS * ROW);
    out[out_offset + (batch * CAPACITY + u32(row)) * ROW + i % ROW] = out_elem(x[x_offset + i]);
}
