// Sample planes at points of a grid, bilinear or nearest; one thread an output, in f32.
//
// x [N, C, H, W], grid [N, OH, OW, 2] (x, y from -1 to 1), out [N, C, OH, OW]. MODE 0 bilinear,
// 1 nearest. PADDING 0 zeros, 1 border, 2 reflection. Formulas: ATen's GridSampler.h.

override C: u32;
override H: i32;
override W: i32;
override area: u32;      // OH * OW
override MODE: u32;
override PADDING: u32;
override ALIGN: u32;
override count: u32;

fn unnormalize(at: f32, size: i32) -> f32 {
    if (ALIGN == 1u) {
        return (at + 1.0) / 2.0 * f32(size - 1);
    }
    return ((at + 1.0) * f32(size) - 1.0) / 2.0;
}

// Fold a coordinate back between low / 2 and high / 2.
fn reflect_between(at: f32, twice_low: i32, twice_high: i32) -> f32 {
    if (twice_low == twice_high) {
        return 0.0;
    }
    let low = f32(twice_low) / 2.0;
    let span = f32(twice_high - twice_low) / 2.0;
    let distance = abs(at - low);
    let extra = distance - floor(distance / span) * span;
    let flips = i32(floor(distance / span));
    return select(span - extra + low, extra + low, flips % 2 == 0);
}

fn place(normal: f32, size: i32) -> f32 {
    var at = unnormalize(normal, size);
    if (PADDING == 2u) {
        if (ALIGN == 1u) {
            at = reflect_between(at, 0, 2 * (size - 1));
        } else {
            at = reflect_between(at, -1, 2 * size - 1);
        }
    }
    if (PADDING != 0u) {
        at = clamp(at, 0.0, f32(size - 1));
    }
    return at;
}

fn pixel(plane: u32, y: i32, column: i32) -> f32 {
    if (y < 0 || y >= H || column < 0 || column >= W) {
        return 0.0;
    }
    return f32(x[x_offset + plane + u32(y * W + column)]);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = flat_index(id, groups, 64u);
    if (i >= count) {
        return;
    }
    let n = i / (area * C);
    let at = grid_offset + (n * area + i % area) * 2u;
    let column = place(f32(grid[at]), W);
    let y = place(f32(grid[at + 1u]), H);
    let plane = (i / area) * u32(H * W);
    if (MODE == 1u) {
        out[out_offset + i] = out_elem(pixel(plane, i32(round(y)), i32(round(column))));
        return;
    }
    let y0 = i32(floor(y));
    let x0 = i32(floor(column));
    let dy = y - f32(y0);
    let dx = column - f32(x0);
    let top = pixel(plane, y0, x0) * (1.0 - dx) + pixel(plane, y0, x0 + 1) * dx;
    let bottom = pixel(plane, y0 + 1, x0) * (1.0 - dx) + pixel(plane, y0 + 1, x0 + 1) * dx;
    out[out_offset + i] = out_elem(top * (1.0 - dy) + bottom * dy);
}
