// The pipelines of a plan (py_runtime/plan.py), compiled all at once.

import { failure } from "./failure.js";

const BINDING_TYPES = { r: "read-only-storage", w: "storage" };

/** Compile all pipelines at once; a failure names the operator, the kernel and the line. */
export async function compile(device, plan, onProgress) {
  const modules = plan.shaders.map((code) => device.createShaderModule({ code }));
  const layouts = new Map();
  const layoutOf = (access) => {
    if (!layouts.has(access)) {
      const entries = [...access].map((letter, binding) => ({
        binding,
        visibility: GPUShaderStage.COMPUTE,
        buffer: { type: BINDING_TYPES[letter] },
      }));
      const group = device.createBindGroupLayout({ entries });
      layouts.set(access, { group, pipeline: device.createPipelineLayout({ bindGroupLayouts: [group] }) });
    }
    return layouts.get(access);
  };
  let done = 0;
  const compileOne = async ({ shader, constants, access, label }) => {
    const layout = layoutOf(access);
    try {
      const pipeline = await device.createComputePipelineAsync({
        label,
        layout: layout.pipeline,
        compute: { module: modules[shader], entryPoint: "main", constants },
      });
      onProgress?.(++done, plan.pipelines.length);
      return { pipeline, group: layout.group };
    } catch (error) {
      const { messages } = await modules[shader].getCompilationInfo();
      const first = messages.find((message) => message.type === "error");
      const where = first ? `line ${first.lineNum}: ${first.message}` : error.message;
      throw failure("GPUError", `the kernel of ${label} does not compile; ${where}`);
    }
  };
  return Promise.all(plan.pipelines.map(compileOne));
}
