// Bilinear resize of the last two dimensions; one thread an output, in f32.
//
// x [planes, H, W] -> out [planes, OH, OW]. source = SCALE * o with ALIGN = 1 (corners meet),
// else max(SCALE * (o + 0.5) - 0.5, 0), as PyTorch's area_pixel_compute_source_index.

override H: u32;
override W: u32;
override OH: u32;
override OW: u32;
override SCALE_Y: f32;
override SCALE_X: f32;
override ALIGN: u32;
override count: u32;

fn source(o: u32, scale: f32) -> f32 {
    if (ALIGN == 1u) {
        return scale * f32(o);
    }
    return max(scale * (f32(o) + 0.5) - 0.5, 0.0);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let y = source((i / OW) % OH, SCALE_Y);
    let column = source(i % OW, SCALE_X);
    let plane = x_offset + (i / (OW * OH)) * H * W;
    let y0 = min(u32(y), H - 1u);
    let x0 = min(u32(column), W - 1u);
    let y1 = min(y0 + 1u, H - 1u);
    let x1 = min(x0 + 1u, W - 1u);
    let dy = y - f32(y0);
    let dx = column - f32(x0);
    let top = (1.0 - dx) * f32(x[plane + y0 * W + x0]) + dx * f32(x[plane + y0 * W + x1]);
    let bottom = (1.0 - dx) * f32(x[plane + y1 * W + x0]) + dx * f32(x[plane + y1 * W + x1]);
    out[out_offset + i] = out_elem((1.0 - dy) * top + dy * bottom);
}
