// Ungrouped 2-D convolution as a matrix product with shared-memory tiles (implicit GEMM).
//
// x [N, C, H, W], packed weights [KH*KW*C][O4] (pack_conv_weight.wgsl), bias [O] or none,
// out [N, O, OH, OW] = packed^T (O x K) times the unfolded input (K x OH*OW), which is never
// stored: each workgroup reads its own K_TILE x PIXEL_TILE piece of it from x.
// A workgroup of THREADS_X x THREADS_Y owns PIXEL_TILE = THREADS_X * PIXELS pixels and
// THREADS_Y * 4 * VECTORS channels; a thread owns 4 * VECTORS channels of PIXELS pixels that
// lie THREADS_X apart, so that neighbours read and write neighbours. Sums in f32.
// THREADS_X, THREADS_Y, PIXELS, VECTORS, K_TILE are set before this text, and PIXEL_TILE
// divides THREADS_X * THREADS_Y: a thread then fills one column of the input tile.

const PIXEL_TILE = THREADS_X * PIXELS;
const VECTOR_TILE = THREADS_Y * VECTORS;
const THREADS = THREADS_X * THREADS_Y;

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

var<workgroup> input_tile: array<f32, K_TILE * PIXEL_TILE>;
var<workgroup> weight_tile: array<vec4<f32>, K_TILE * VECTOR_TILE>;

@compute @workgroup_size(THREADS_X, THREADS_Y)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let n = group.z;
    let plane = H * W;
    let first_vector = group.y * VECTOR_TILE;

    let column = thread % PIXEL_TILE;
    let source_pixel = group.x * PIXEL_TILE + column;
    let in_image = source_pixel < area;
    let top = i32(source_pixel / OW) * STRIDE_Y - PAD_Y;
    let left = i32(source_pixel % OW) * STRIDE_X - PAD_X;
    let image = x_offset + n * C * plane;

    var sums: array<vec4<f32>, PIXELS * VECTORS>;
    for (var k0 = 0u; k0 < K; k0 += K_TILE) {
        for (var row = thread / PIXEL_TILE; row < K_TILE; row += THREADS / PIXEL_TILE) {
            let k = k0 + row;
            let c = k % C;
            let tap = k / C;
            let y = top + i32(tap / KW) * DILATION_Y;
            let at = left + i32(tap % KW) * DILATION_X;
            var value = 0.0;
            if (in_image && k < K && y >= 0 && y < i32(H) && at >= 0 && at < i32(W)) {
                value = f32(x[image + c * plane + u32(y) * W + u32(at)]);
            }
            input_tile[row * PIXEL_TILE + column] = value;
        }
        for (var slot = thread; slot < K_TILE * VECTOR_TILE; slot += THREADS) {
            let k = k0 + slot / VECTOR_TILE;
            let vector = first_vector + slot % VECTOR_TILE;
            var taps = vec4<f32>();
            if (k < K && vector * 4u < O4) {
                taps = vec4<f32>(packed[packed_offset / 4u + k * (O4 / 4u) + vector]);
            }
            weight_tile[slot] = taps;
        }
        workgroupBarrier();
        for (var k = 0u; k < K_TILE; k++) {
            var inputs: array<f32, PIXELS>;
            for (var p = 0u; p < PIXELS; p++) {
                inputs[p] = input_tile[k * PIXEL_TILE + p * THREADS_X + local.x];
            }
            for (var v = 0u; v < VECTORS; v++) {
                let taps = weight_tile[k * VECTOR_TILE + local.y * VECTORS + v];
                for (var p = 0u; p < PIXELS; p++) {
                    sums[v * PIXELS + p] += taps * inputs[p];
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
            let bias = bias_of(o);
            for (var p = 0u; p < PIXELS; p++) {
                let pixel = group.x * PIXEL_TILE + p * THREADS_X + local.x;
                if (pixel < area) {
                    let at = (n * O + o) * area + pixel;
                    out[out_offset + at] = fused(sums[v * PIXELS + p][j] + bias, at);
                }
            }
        }
    }
}
