// Ungrouped 2-D convolution as a matrix product with shared-memory tiles (implicit GEMM).
//
// x [N, C, H, W], packed weights [KH*KW*C][O4] (pack_conv_weight.wgsl), bias [O] or none,
// out [N, O, OH, OW] = packed^T (O x K) times the unfolded input (K x OH*OW), which is never
// stored: each workgroup reads its own K_TILE x PIXEL_TILE piece of it from x.
// A workgroup of THREADS_X x THREADS_Y owns PIXEL_TILE = THREADS_X * PIXELS pixels and
// THREADS_Y * 4 * VECTORS channels; a thread owns 4 * VECTORS channels of PIXELS pixels that
// lie THREADS_X apart, so that neighbours read and write neighbours. Sums in f32.
// What the next step needs is read from memory while this one is computed.
// With SPLITS > 1 the sum over K is cut in pieces, one a workgroup, that store() keeps apart and
// conv_split_sum.wgsl adds: for few pixels and long sums there would be too few workgroups.
// THREADS_X, THREADS_Y, PIXELS, VECTORS, K_TILE, SPLITS are set before this text. PIXEL_TILE divides
// THREADS, so a thread fills one column of the input tile; THREADS divides both tiles' sizes.

const PIXEL_TILE = THREADS_X * PIXELS;
const VECTOR_TILE = THREADS_Y * VECTORS;
const THREADS = THREADS_X * THREADS_Y;
const INPUT_LOADS = K_TILE * PIXEL_TILE / THREADS;  // of a thread, in a step
const WEIGHT_LOADS = K_TILE * VECTOR_TILE / THREADS;
const ROW_STEP = THREADS / PIXEL_TILE;

override C: u32;
override H: u32;
override W: u32;
override O: u32;
override O4: u32;
override OW: u32;
override area: u32;      // OH * OW
override K: u32;         // KH * KW * C
override KW: u32;
override STRIDE_Y: i32;
override STRIDE_X: i32;
override PAD_Y: i32;
override PAD_X: i32;
override DILATION_Y: i32;
override DILATION_X: i32;
override K_PIECE: u32;    // of the sum, a multiple of K_TILE; K rounded up when SPLITS is 1

var<workgroup> input_tile: array<f32, K_TILE * PIXEL_TILE>;
var<workgroup> weight_tile: array<vec4<f32>, K_TILE * VECTOR_TILE>;

struct Column {
    image: u32,  // where the image starts in x
    top: i32,
    left: i32,
    inside: bool,
}

/// Where tap (ky, kx) of a pixel reads in its plane, or -1 outside of the picture.
fn tap_offset(column: Column, tap: u32) -> i32 {
    let y = column.top + i32(tap / KW) * DILATION_Y;
    let at = column.left + i32(tap % KW) * DILATION_X;
    let inside = column.inside && y >= 0 && y < i32(H) && at >= 0 && at < i32(W);
    return select(-1, y * i32(W) + at, inside);
}

fn load_inputs(column: Column, k0: u32, first_row: u32, end: u32) -> array<f32, INPUT_LOADS> {
    var values: array<f32, INPUT_LOADS>;
    let plane = H * W;
    if (C % K_TILE == 0u) {  // a step then stays within one tap
        let at = tap_offset(column, k0 / C);
        let start = column.image + (k0 % C + first_row) * plane + u32(max(at, 0));
        for (var j = 0u; j < INPUT_LOADS; j++) {
            values[j] = select(0.0, f32(x[start + j * ROW_STEP * plane]), at >= 0);
        }
        return values;
    }
    for (var j = 0u; j < INPUT_LOADS; j++) {
        let k = k0 + first_row + j * ROW_STEP;
        let at = tap_offset(column, k / C);
        let from_x = column.image + (k % C) * plane + u32(max(at, 0));
        values[j] = select(0.0, f32(x[from_x]), at >= 0 && k < end);
    }
    return values;
}

fn load_weights(k0: u32, first_vector: u32, thread: u32, end: u32) -> array<vec4<f32>, WEIGHT_LOADS> {
    var values: array<vec4<f32>, WEIGHT_LOADS>;
    for (var j = 0u; j < WEIGHT_LOADS; j++) {
        let slot = thread + j * THREADS;
        let k = k0 + slot / VECTOR_TILE;
        let vector = first_vector + slot % VECTOR_TILE;
        if (k < end && vector * 4u < O4) {
            values[j] = vec4<f32>(packed[packed_offset / 4u + k * (O4 / 4u) + vector]);
        }
    }
    return values;
}

@compute @workgroup_size(THREADS_X, THREADS_Y)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let n = group.z / SPLITS;
    let piece = group.z % SPLITS;
    let first_vector = group.y * VECTOR_TILE;
    let first_row = thread / PIXEL_TILE;
    let own_pixel = group.x * PIXEL_TILE + thread % PIXEL_TILE;
    let column = Column(
        x_offset + n * C * H * W,
        i32(own_pixel / OW) * STRIDE_Y - PAD_Y,
        i32(own_pixel % OW) * STRIDE_X - PAD_X,
        own_pixel < area,
    );
    let begin = piece * K_PIECE;
    let end = min(begin + K_PIECE, K);

    var sums: array<vec4<f32>, PIXELS * VECTORS>;
    var inputs = load_inputs(column, begin, first_row, end);
    var weights = load_weights(begin, first_vector, thread, end);
    for (var k0 = begin; k0 < end; k0 += K_TILE) {
        for (var j = 0u; j < INPUT_LOADS; j++) {
            input_tile[(first_row + j * ROW_STEP) * PIXEL_TILE + thread % PIXEL_TILE] = inputs[j];
        }
        for (var j = 0u; j < WEIGHT_LOADS; j++) {
            weight_tile[thread + j * THREADS] = weights[j];
        }
        workgroupBarrier();
        if (k0 + K_TILE < end) {
            inputs = load_inputs(column, k0 + K_TILE, first_row, end);
            weights = load_weights(k0 + K_TILE, first_vector, thread, end);
        }
        for (var k = 0u; k < K_TILE; k++) {
            var row: array<f32, PIXELS>;
            for (var p = 0u; p < PIXELS; p++) {
                row[p] = input_tile[k * PIXEL_TILE + p * THREADS_X + local.x];
            }
            for (var v = 0u; v < VECTORS; v++) {
                let taps = weight_tile[k * VECTOR_TILE + local.y * VECTORS + v];
                for (var p = 0u; p < PIXELS; p++) {
                    sums[v * PIXELS + p] += taps * row[p];
                }
            }
        }
        workgroupBarrier();
    }
    for (var v = 0u; v < VECTORS; v++) {
        for (var j = 0u; j < 4u; j++) {
            let o = (first_vector + local.y * VECTORS + v) * 4u + j;
            if (o >= O) {
                continue;
            }
            for (var p = 0u; p < PIXELS; p++) {
                let pixel = group.x * PIXEL_TILE + p * THREADS_X + local.x;
                if (pixel < area) {
                    store(sums[v * PIXELS + p][j], piece, o, (n * O + o) * area + pixel);
                }
            }
        }
    }
}
