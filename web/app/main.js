// The demo page: a picture in, named boxes out, and where the time went.

import { pipeline, Runtime } from "../pteron.js";
import { Camera, acceptPictures } from "./sources.js";
import { drawPicture, listDetections } from "./picture.js";
import { ProfileView } from "./profile.js";
import { ProgramView } from "./program.js";

const MODEL = "models/nanodet";
const FIRST_SAMPLE = "samples/astronaut.png";
const STEADY_RUNS = 5; // the steady time is the median of the last ones

const $ = (id) => document.getElementById(id);

const state = {
  runtime: null,
  loadError: null, // why there is no detector, for whoever asks it to look
  detect: null,
  picture: null, // what the canvas shows: an ImageBitmap
  detections: [],
  recent: [],
  busy: Promise.resolve(),
};

function say(text) {
  $("status").textContent = text;
}

function showProgress({ loaded, total, message }) {
  const bar = $("progress");
  bar.hidden = false;
  if (total > 0) {
    bar.value = loaded / total;
  } else {
    bar.removeAttribute("value");
  }
  say(`${message} …`);
}

function showError(error) {
  const place = $("error");
  place.hidden = !error;
  place.textContent = error ? `${error.name}: ${error.message}` : "";
  if (error) {
    $("progress").hidden = true;
    say("That did not work.");
  }
}

function fail(error) {
  throw error;
}

/** Do `work` after what is running, with its errors shown in words. */
function enqueue(work) {
  state.busy = state.busy.then(async () => {
    showError(null);
    try {
      await work();
    } catch (error) {
      showError(error);
    }
  });
  return state.busy;
}

function showAdapter({ vendor, architecture, description, software, features }) {
  const place = $("adapter");
  const name = description || [vendor, architecture].filter(Boolean).join(" ") || "unnamed adapter";
  const halves = features.includes("shader-f16") ? ", with f16" : "";
  place.textContent = software
    ? `Adapter: ${name}. This is a software adapter: it runs on the processor, and a GPU is many times faster.`
    : `Adapter: ${name}${halves}`;
  place.classList.toggle("software", software);
}

const milliseconds = (value) => (value == null ? "–" : value < 1000 ? `${value.toFixed(1)} ms` : `${(value / 1000).toFixed(2)} s`);

function showTimes() {
  const sorted = [...state.recent].sort((a, b) => a - b);
  const times = { ...state.detect?.timings, steady_ms: sorted[sorted.length >> 1] };
  for (const place of document.querySelectorAll("[data-time]")) {
    place.textContent = milliseconds(times[place.dataset.time]);
  }
}

function showDetections() {
  drawPicture($("picture"), state.picture, state.detections);
  listDetections($("detections"), state.detections);
}

async function detectOnce() {
  const first = state.detect.timings.first_ms === null;
  state.detections = await state.detect(state.picture, { threshold: Number($("threshold").value) });
  if (!first) {
    state.recent = [...state.recent, state.detect.timings.last_ms].slice(-STEADY_RUNS);
  }
  showDetections();
  showTimes();
}

async function showPicture(source) {
  const blob = typeof source === "string" ? await (await fetch(source)).blob() : source;
  try {
    state.picture = await createImageBitmap(blob);
  } catch {
    const error = new Error("this file is no picture that the browser can read. Give a PNG, a JPEG or a WebP.");
    throw Object.assign(error, { name: "PictureError" });
  }
  state.detections = [];
  drawPicture($("picture"), state.picture, []);
}

function usePicture(source, pressed = null) {
  for (const button of document.querySelectorAll("[data-sample]")) {
    button.setAttribute("aria-pressed", String(button === pressed));
  }
  return enqueue(async () => {
    await showPicture(source);
    if (!state.detect) {
      throw state.loadError;
    }
    say("Looking …");
    await detectOnce();
    const count = state.detections.length;
    say(`Found ${count} ${count === 1 ? "thing" : "things"} in ${milliseconds(state.detect.timings.last_ms)}.`);
  });
}

async function runTen() {
  for (let i = 1; i <= 10; i++) {
    say(`Run ${i} of 10 …`);
    await detectOnce();
  }
  say(`Ten runs, the last in ${milliseconds(state.detect.timings.last_ms)}.`);
}

async function load() {
  try {
    await loadDetector();
  } catch (error) {
    state.loadError = error;
    throw error;
  }
}

async function loadDetector() {
  state.runtime = await Runtime.create({ onProgress: showProgress });
  showAdapter(state.runtime.info);
  state.detect = await pipeline("detect", MODEL, { runtime: state.runtime, onProgress: showProgress });
  $("model-name").textContent = `${state.detect.manifest.title}, ${state.detect.manifest.labels.length} classes`;
  $("threshold").value = state.detect.manifest.postprocessing.score_threshold;
  $("threshold-value").textContent = Number($("threshold").value).toFixed(2);
  $("progress").hidden = true;
  for (const id of ["again", "profile-button"]) {
    $(id).disabled = false;
  }
  showTimes();
  say("Ready.");
}

function connect() {
  for (const button of document.querySelectorAll("[data-sample]")) {
    button.addEventListener("click", () => usePicture(button.dataset.sample, button));
  }
  $("again").addEventListener("click", () => enqueue(runTen));
  $("threshold").addEventListener("input", () => {
    $("threshold-value").textContent = Number($("threshold").value).toFixed(2);
  });
  $("threshold").addEventListener("change", () => {
    if (state.detect && state.picture) {
      enqueue(detectOnce);
    }
  });
  acceptPictures($("drop"), $("file"), (blob) => usePicture(blob));

  const profile = new ProfileView($("profile"), $("profile-summary"), $("profile-sort"), $("profile-save"));
  $("profile-button").addEventListener("click", () =>
    enqueue(async () => {
      say("Profiling …");
      const rounds = state.runtime.info.software ? 1 : 5; // seconds each on a software adapter, and steady there
      profile.show(await state.detect.method.report({ rounds }));
      say("Profiled.");
    }),
  );

  const program = new ProgramView($("program-view"), () => state.runtime ?? fail(state.loadError), profile);
  $("program").addEventListener("change", ({ target }) => {
    const [file] = target.files;
    target.value = "";
    if (file) {
      enqueue(async () => {
        say(`Opening ${file.name} …`);
        await program.open(file, showProgress);
        $("progress").hidden = true;
        say(`${file.name} ran.`);
      });
    }
  });

  const camera = new Camera($("video"), $("camera"));
  camera.onFrame = (bitmap) =>
    enqueue(async () => {
      state.picture = bitmap;
      await detectOnce();
    });
  $("camera").addEventListener("click", () =>
    enqueue(async () => {
      say(camera.running ? "Camera off." : "Asking for the camera …");
      await camera.toggle();
      if (camera.running) {
        say("Camera on. Press the button again to stop.");
      }
    }),
  );
}

connect();
enqueue(load);
usePicture(FIRST_SAMPLE, document.querySelector(`[data-sample="${FIRST_SAMPLE}"]`));
