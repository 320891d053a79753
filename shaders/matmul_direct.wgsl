// Matrix product, one thread an output element, in f32: out[b] = fused(a[b] times b[b]).
//
// a [batch, ROWS, K], b [batch, K, COLUMNS] or, with B_TRANSPOSED, [batch, COLUMNS, K]; out
// [batch, ROWS, COLUMNS]. A batch stride of 0 shares a matrix. fused(value, i) is generated.

override ROWS: u32;
override COLUMNS: u32;
override K: u32;
override A_BATCH: u32;       // elements from one a to the next
override B_BATCH: u32;
override B_TRANSPOSED: u32;
override count: u32;         // batch * ROWS * COLUMNS

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let column = i % COLUMNS;
    let row = (i / COLUMNS) % ROWS;
    let batch = i / (COLUMNS * ROWS);
    var from_a = a_offset + batch * A_BATCH + row * K;
    var from_b = b_offset + batch * B_BATCH + select(column, column * K, B_TRANSPOSED == 1u);
    let step = select(COLUMNS, 1u, B_TRANSPOSED == 1u);
    var sum = 0.0;
    for (var k = 0u; k < K; k++) {
        sum += f32(a[from_a + k]) * f32(b[from_b + k * step]);
    }
    out[out_offset + i] = fused(sum, i);
}
