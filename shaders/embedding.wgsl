// Rows of a table: out[r, :] = x[row_of(r) - FIRST, :], for the rows that this part of the table has.
//
// x is rows FIRST to FIRST + ROWS of the table [V, WIDTH]; row_of(i) is generated (ops/lookup.py)
// and gives the row of the whole table for output element i. One thread an element.

override count: u32;
override WIDTH: u32;
override FIRST: u32;
override ROWS: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let row = row_of(i) - FIRST;
    if (row < ROWS) {
        out[out_offset + i] = out_elem(x[x_offset + row * WIDTH + i % WIDTH]);
    }
}
