// Where pictures come from: files, drops, the clipboard, the camera.

/** Call `use(blob)` for each picture that is chosen, dropped or pasted. */
export function acceptPictures(area, input, use) {
  input.addEventListener("change", () => {
    const [file] = input.files;
    input.value = "";
    if (file) {
      use(file);
    }
  });
  for (const type of ["dragenter", "dragover"]) {
    area.addEventListener(type, (event) => {
      event.preventDefault();
      area.classList.add("over");
    });
  }
  for (const type of ["dragleave", "drop"]) {
    area.addEventListener(type, () => area.classList.remove("over"));
  }
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    if (file) {
      use(file);
    }
  });
  document.addEventListener("paste", ({ clipboardData }) => {
    const item = [...(clipboardData?.items ?? [])].find(({ type }) => type.startsWith("image/"));
    if (item) {
      use(item.getAsFile());
    }
  });
}

/** The camera as a stream of frames; the next is taken when the last one is done with. */
export class Camera {
  constructor(video, button) {
    this.video = video;
    this.button = button;
    this.stream = null;
    this.onFrame = async () => {};
  }

  get running() {
    return this.stream !== null;
  }

  async toggle() {
    if (this.running) {
      this.stop();
    } else {
      await this.start();
    }
  }

  async start() {
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    } catch (error) {
      const message = `the camera can't be used (${error.message}). Is there one, and is it allowed for this page?`;
      throw Object.assign(new Error(message), { name: "CameraError" });
    }
    this.video.srcObject = this.stream;
    await this.video.play();
    this.show("Stop the camera", true);
    this.loop();
  }

  async loop() {
    while (this.running) {
      await this.onFrame(await createImageBitmap(this.video));
    }
  }

  stop() {
    for (const track of this.stream.getTracks()) {
      track.stop();
    }
    this.stream = null;
    this.video.srcObject = null;
    this.show("Use the camera", false);
  }

  show(text, active) {
    this.button.textContent = text;
    this.button.classList.toggle("active", active);
  }
}
