// A bar for each kernel of a run, from `method.report()`.

const TIMERS = {
  "timestamp-query": "timed on the GPU",
  wall: "timed from outside, each kernel on its own, since this adapter has no timestamps",
};

const element = (name, className, text = "") => {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
};

/** Shows a report as bars; the slowest kernel's bar is full. */
export class ProfileView {
  constructor(list, summary, sort, save) {
    this.list = list;
    this.summary = summary;
    this.sort = sort;
    this.save = save;
    this.report = null;
    sort.addEventListener("change", () => this.draw());
    save.addEventListener("click", () => this.download());
  }

  show(report) {
    this.report = report;
    this.save.hidden = false;
    const { total_ms, dispatches, timer, bytes } = report;
    const megabytes = (count) => `${(count / 1e6).toFixed(1)} MB`;
    this.summary.textContent =
      `${total_ms.toFixed(2)} ms in ${dispatches} kernels, ${TIMERS[timer]}; ` +
      `${megabytes(bytes.weights + bytes.prepared)} weights, ${megabytes(bytes.activations)} activations`;
    this.draw();
  }

  draw() {
    if (!this.report) {
      return;
    }
    const kernels = [...this.report.kernels];
    if (this.sort.checked) {
      kernels.sort((a, b) => b.milliseconds - a.milliseconds);
    }
    const longest = Math.max(...kernels.map(({ milliseconds }) => milliseconds), Number.MIN_VALUE);
    this.list.replaceChildren(...kernels.map((kernel) => this.bar(kernel, longest)));
  }

  bar({ label, kernel, milliseconds, share }, longest) {
    const item = document.createElement("li");
    item.dataset.share = share;
    item.dataset.milliseconds = milliseconds;
    const name = element("span", "name", `${label} `);
    name.append(element("span", "kernel", kernel));
    const track = element("div", "track");
    const fill = element("div", "fill");
    fill.style.width = `${(100 * milliseconds) / longest}%`;
    track.append(fill);
    item.append(name, track, element("span", "value", `${milliseconds.toFixed(3)} ms`));
    return item;
  }

  download() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(this.report, null, 1)], { type: "application/json" }));
    link.download = `${this.report.method}-profile.json`;
    link.click();
    URL.revokeObjectURL(link.href);
  }
}
