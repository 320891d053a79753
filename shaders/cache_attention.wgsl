// Attention of new rows over a cache: out = softmax(q kT * SCALE + bias) v, over the columns
// before position + ROWS; with CAUSAL, each row over those up to its own.
//
// q and out [B, ROWS, HEADS, DEPTH]; k and v [B, CAPACITY, HEADS / SHARED, DEPTH]. A workgroup
// makes one row of one head: 64 columns at a time, a thread scores one column, then all threads
// add up the values, each its own OWN channels. The softmax is taken as it goes (maximum and
// sum so far, in f32), so no row of scores is stored (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018). A row that may see nothing is NaN, as in PyTorch.

override count: u32;
override ROWS: u32;
override HEADS: u32;
override SHARED: u32;
override CAPACITY: u32;
override DEPTH: u32;
override CAUSAL: u32;
override SCALE: f32;

const COLUMNS = 64u;
const LOWEST = -3.4e38;

var<workgroup> scores: array<f32, COLUMNS>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let item = group.y * groups.x + group.x;
    if (item >= count) {
        return;
    }
    let head = item % HEADS;
    let row = (item / HEADS) % ROWS;
    let batch = item / (HEADS * ROWS);
    let position = max(start_position(), 0);
    let seen = u32(position) + select(ROWS, row + 1u, CAUSAL == 1u);
    let end = min(seen, CAPACITY);
    let query = q_offset + item * DEPTH;
    let width = HEADS / SHARED;
    let first = (batch * CAPACITY * width + head / SHARED) * DEPTH;

    var top = LOWEST;
    var sum = 0.0;
    var own: array<f32, OWN>;
    for (var base = 0u; base < end; base += COLUMNS) {
        let column = base + thread;
        if (column < end) {
            let key = k_offset + first + column * width * DEPTH;
            var score = 0.0;
            for (var d = 0u; d < DEPTH; d++) {
                score += f32(q[query + d]) * f32(k[key + d]);
            }
            scores[thread] = score * SCALE + bias(row, column);
        }
        workgroupBarrier();
        let here = min(COLUMNS, end - base);
        var highest = top;
        for (var j = 0u; j < here; j++) {
            highest = max(highest, scores[j]);
        }
        let shrink = exp(top - highest);
        top = highest;
        sum *= shrink;
        for (var o = 0u; o < OWN; o++) {
            own[o] *= shrink;
        }
        for (var j = 0u; j < here; j++) {
            let weight = exp(scores[j] - top);
            sum += weight;
            let value = v_offset + first + (base + j) * width * DEPTH;
            for (var o = 0u; o < OWN; o++) {
                own[o] += weight * f32(v[value + min(thread + o * COLUMNS, DEPTH - 1u)]);
            }
        }
        workgroupBarrier();
    }
    for (var o = 0u; o < OWN; o++) {
        let d = thread + o * COLUMNS;
        if (d < DEPTH) {
            out[out_offset + item * DEPTH + d] = out_elem(own[o] / sum);
        }
    }
}
