// Matrix product with shared-memory tiles, in f32; layouts as in matmul_direct.wgsl.
//
// A workgroup of 16 x 16 threads owns a 64 x 64 piece of the output, a thread 4 x 4 of it:
// rows 16 apart and columns 16 apart, so that neighbours read and write neighbours.

const SIDE = 16u;
const EACH = 4u;
const TILE = SIDE * EACH;
const K_TILE = 16u;

override ROWS: u32;
override COLUMNS: u32;
override K: u32;
override A_BATCH: u32;
override B_BATCH: u32;
override B_TRANSPOSED: u32;

var<workgroup> tile_a: array<f32, K_TILE * TILE>;  // [k][row]
var<workgroup> tile_b: array<f32, K_TILE * TILE>;  // [k][column]

@compute @workgroup_size(SIDE, SIDE)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let start_a = a_offset + group.z * A_BATCH;
    let start_b = b_offset + group.z * B_BATCH;
    var sums: array<array<f32, EACH>, EACH>;
    for (var k0 = 0u; k0 < K; k0 += K_TILE) {
        for (var j = 0u; j < EACH; j++) {
            let slot = thread + j * SIDE * SIDE;
            // along k for what lies row by row, so that neighbours read neighbours
            let k = k0 + slot % K_TILE;
            let row = group.y * TILE + slot / K_TILE;
            var value = 0.0;
            if (row < ROWS && k < K) {
                value = f32(a[start_a + row * K + k]);
            }
            tile_a[(slot % K_TILE) * TILE + slot / K_TILE] = value;
            value = 0.0;
            if (B_TRANSPOSED == 1u) {
                let column = group.x * TILE + slot / K_TILE;
                if (column < COLUMNS && k < K) {
                    value = f32(b[start_b + column * K + k]);
                }
                tile_b[(slot % K_TILE) * TILE + slot / K_TILE] = value;
            } else {
                let column = group.x * TILE + slot % TILE;
                let depth = k0 + slot / TILE;
                if (column < COLUMNS && depth < K) {
                    value = f32(b[start_b + depth * COLUMNS + column]);
                }
                tile_b[slot] = value;
            }
        }
        workgroupBarrier();
        for (var k = 0u; k < K_TILE; k++) {
            var own_a: array<f32, EACH>;
            for (var j = 0u; j < EACH; j++) {
                own_a[j] = tile_a[k * TILE + j * SIDE + local.y];
            }
            for (var c = 0u; c < EACH; c++) {
                let value = tile_b[k * TILE + c * SIDE + local.x];
                for (var j = 0u; j < EACH; j++) {
                    sums[j][c] += own_a[j] * value;
                }
            }
        }
        workgroupBarrier();
    }
    for (var j = 0u; j < EACH; j++) {
        for (var c = 0u; c < EACH; c++) {
            let row = group.y * TILE + j * SIDE + local.y;
            let column = group.x * TILE + c * SIDE + local.x;
            if (row < ROWS && column < COLUMNS) {
                let i = (group.z * ROWS + row) * COLUMNS + column;
                out[out_offset + i] = fused(sums[j][c], i);
            }
        }
    }
}
