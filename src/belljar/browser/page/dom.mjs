// What the parts of the demonstration page share.
export const $ = (id) => document.getElementById(id);

export const make = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

export const formatSize = (size) => (size < 1024 ? `${size} B` : size < 1 << 20 ? `${(size / 1024).toFixed(1)} kB` : `${(size / (1 << 20)).toFixed(1)} MB`);

export function offerDownload(bytes, name) {
  const link = make("a", { href: URL.createObjectURL(new Blob([bytes])), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Shift+Enter in a text area, or Enter if `alone`, sends its form. */
export function sendOnEnter(area, alone = false) {
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.shiftKey === alone) return;
    event.preventDefault();
    area.form.requestSubmit();
  });
}
