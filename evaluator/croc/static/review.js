// Keys of the review page, and the dark scheme where the system asks for it.
"use strict";
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark", dark.matches);
paint();
dark.addEventListener("change", paint);

const KEYS = {
  f: [["prompt", "keep"]],
  d: [["prompt", "drop"]],
  j: [["contrast", "keep"]],
  k: [["contrast", "drop"]],
  b: [["prompt", "keep"], ["contrast", "keep"]],
  x: [["prompt", "drop"], ["contrast", "drop"]],
};

// What is typed while the next row is on its way belongs to no row.
let sent = false;
document.addEventListener("submit", (event) => {
  if (sent) event.preventDefault();
  sent = true;
});
addEventListener("pageshow", () => { sent = false; });

document.addEventListener("keydown", (event) => {
  const form = document.getElementById("row");
  const inText = event.target.matches("input:not([type=radio])");
  if (!form || sent || inText || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  const key = event.key.toLowerCase();
  if (key === "u") document.getElementById("undo").requestSubmit();
  else if (key === "n") document.getElementById("skip").click();
  else if (key === "enter" && !event.target.matches("a, button")) form.requestSubmit();
  else if (KEYS[key]) {
    for (const [side, value] of KEYS[key]) {
      const choice = form.querySelector(`input[name=${side}][value=${value}]`);
      if (choice) choice.checked = true;
    }
    if (form.checkValidity()) form.requestSubmit();
  } else return;
  event.preventDefault();
});
