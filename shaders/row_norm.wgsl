// Normalise rows: layer norm, group norm and RMS norm. One workgroup a row, in f32.
//
// x and out [rows, SIZE]. One pass gathers count, mean and squared distance by Welford's
// method, merged pairwise (Chan et al., 1979), so a large mean costs no accuracy.
// weight_of(row, k), bias_of(row, k) and store_statistics(row, mean, rstd) are generated.
// RMS = 1 leaves the mean in and divides by the root of the mean square.

const THREADS = 64u;

override SIZE: u32;
override EPS: f32;
override RMS: u32;
override rows: u32;

struct Moments {
    count: f32,
    mean: f32,
    distance: f32,  // sum of squared distances to the mean; of squares for RMS
}

var<workgroup> shared_moments: array<Moments, THREADS>;

fn merge(a: Moments, b: Moments) -> Moments {
    let count = a.count + b.count;
    if (count == 0.0) {
        return a;
    }
    if (RMS == 1u) {
        return Moments(count, 0.0, a.distance + b.distance);
    }
    let delta = b.mean - a.mean;
    let part = b.count / count;
    return Moments(count, a.mean + delta * part, a.distance + b.distance + delta * delta * a.count * part);
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let row = group.y * groups.x + group.x;
    let first = x_offset + min(row, rows - 1u) * SIZE;
    var own = Moments(0.0, 0.0, 0.0);
    for (var k = thread; k < SIZE; k += THREADS) {
        let value = f32(x[first + k]);
        own.count += 1.0;
        if (RMS == 1u) {
            own.distance += value * value;
        } else {
            let delta = value - own.mean;
            own.mean += delta / own.count;
            own.distance += delta * (value - own.mean);
        }
    }
    shared_moments[thread] = own;
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        if (thread < half) {
            shared_moments[thread] = merge(shared_moments[thread], shared_moments[thread + half]);
        }
        workgroupBarrier();
    }
    let all = shared_moments[0];
    let rstd = inverseSqrt(all.distance / f32(SIZE) + EPS);
    if (row >= rows) {
        return;
    }
    for (var k = thread; k < SIZE; k += THREADS) {
        let value = (f32(x[first + k]) - all.mean) * rstd;
        out[out_offset + row * SIZE + k] = out_elem(value * weight_of(row, k) + bias_of(row, k));
    }
    if (thread == 0u) {
        store_statistics(row, all.mean, rstd);
    }
}
