// Boxes on a picture, and the same as a list that can be read aloud.

const COLOURS = ["#e8590c", "#1971c2", "#2f9e44", "#9c36b5", "#e03131", "#0c8599", "#f08c00", "#6741d9"];

const colourOf = (label) => COLOURS[[...label].reduce((sum, letter) => sum + letter.codePointAt(0), 0) % COLOURS.length];

const percent = (score) => `${Math.round(score * 100)}%`;

/** Draw a picture and its detections at the picture's own size. */
export function drawPicture(canvas, picture, detections) {
  canvas.width = picture.width;
  canvas.height = picture.height;
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0);
  const unit = Math.max(1, Math.min(picture.width, picture.height) / 240); // lines and text fit the picture
  context.lineWidth = 2 * unit;
  context.font = `600 ${7 * unit + 6}px system-ui, sans-serif`;
  context.textBaseline = "top";
  for (const { label, score, box } of detections) {
    const colour = colourOf(label);
    const text = `${label} ${percent(score)}`;
    const height = 7 * unit + 12;
    const width = context.measureText(text).width + 8;
    const x = Math.min(box.xmin, picture.width - width);
    const y = box.ymin >= height ? box.ymin - height : box.ymin;
    context.strokeStyle = colour;
    context.strokeRect(box.xmin, box.ymin, box.xmax - box.xmin, box.ymax - box.ymin);
    context.fillStyle = colour;
    context.fillRect(x, y, width, height);
    context.fillStyle = "#fff";
    context.fillText(text, x + 4, y + 3);
  }
  const names = detections.map(({ label, score }) => `${label} ${percent(score)}`);
  canvas.setAttribute("aria-label", names.length ? `Picture with ${names.join(", ")}` : "Picture, nothing found yet");
}

/** The detections as list items. */
export function listDetections(list, detections) {
  const items = detections.map(({ label, score }) => {
    const item = document.createElement("li");
    item.dataset.label = label;
    item.dataset.score = score.toFixed(4);
    const name = document.createElement("span");
    name.textContent = label;
    const value = document.createElement("span");
    value.textContent = percent(score);
    item.append(name, value);
    return item;
  });
  if (!items.length) {
    const none = document.createElement("li");
    none.className = "none";
    none.textContent = "Nothing above this score.";
    items.push(none);
  }
  list.replaceChildren(...items);
}
