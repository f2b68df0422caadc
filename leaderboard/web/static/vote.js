// Keys of the page of votes, and what it says to those who hear it.
"use strict";
const KEYS = {
  1: "left", ArrowLeft: "left", 2: "right", ArrowRight: "right", 3: "equal", 4: "both_bad",
};
const BY_KEY = "assay-vote-keys";
const ballot = document.getElementById("ballot");
const said = document.getElementById("said");
const byKey = document.getElementById("by-key");

// An answer to images that nobody saw would count, so there is none before both are there.
const images = [...(ballot?.querySelectorAll("img") ?? [])];
const update = () => {
  const ready = images.every((one) => one.complete && one.naturalWidth);
  for (const button of ballot?.querySelectorAll("button") ?? []) button.disabled = !ready;
  if (images.some((one) => one.complete && !one.naturalWidth)) {
    said.textContent = "An image cannot be shown, so this pair cannot be answered. Load the page again.";
    said.classList.add("as-refused");
  }
};
for (const one of images) {
  one.addEventListener("load", update);
  one.addEventListener("error", update);
}
update();

if (byKey) {
  document.getElementById("keys").style.visibility = "";  // It has its place from the start, so nothing shifts.
  try { byKey.checked = localStorage.getItem(BY_KEY) !== "off"; } catch { /* for this page only */ }
  byKey.addEventListener("change", () => {
    try { localStorage.setItem(BY_KEY, byKey.checked ? "on" : "off"); } catch { /* for this page only */ }
  });
}

// What is pressed while the next pair is on its way belongs to no pair.
let sent = false;
document.addEventListener("submit", (event) => {
  if (sent) event.preventDefault();
  sent = true;
});
addEventListener("pageshow", () => {
  sent = false;
  // A live region is read when its text changes, not when the page comes with it.
  if (!said?.textContent) return;
  const text = said.textContent;
  said.textContent = "";
  setTimeout(() => { said.textContent = text; }, 100);
});

document.addEventListener("keydown", (event) => {
  const choice = KEYS[event.key];
  const inside = event.target === document.body || ballot?.contains(event.target);
  if (!choice || sent || !inside || !byKey?.checked || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const button = ballot.querySelector(`button[value=${choice}]`);
  if (button.disabled) return;
  event.preventDefault();
  button.focus();
  button.click();
});
