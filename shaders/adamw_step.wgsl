// One step of AdamW in place; one thread an element, in f32.
//
// param, m and v are read and written through the same binding. CORRECTION1 and 2 are
// 1 - beta^t, so the kernel counts no steps.

override count: u32;
override LR: f32;
override BETA1: f32;
override REST1: f32;  // 1 - BETA1, which f32 would not give exactly
override BETA2: f32;
override REST2: f32;
override EPS: f32;
override DECAY: f32;
override CORRECTION1: f32;
override CORRECTION2: f32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let g = f32(grad[grad_offset + i]);
    let first = BETA1 * f32(m[m_offset + i]) + REST1 * g;
    let second = BETA2 * f32(v[v_offset + i]) + REST2 * g * g;
    let step = (first / CORRECTION1) / (sqrt(second / CORRECTION2) + EPS);
    let decayed = f32(param[param_offset + i]) * (1.0 - LR * DECAY);
    param[param_offset + i] = elem(decayed - LR * step);
    m[m_offset + i] = elem(first);
    v[v_offset + i] = elem(second);
}
